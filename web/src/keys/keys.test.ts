import { expect, test } from 'vitest';
import { best, fit } from './found';
import { chosen, matches, typed } from './sequence';

const press = (key: string, more: Partial<Record<'ctrlKey' | 'metaKey' | 'altKey', boolean>> = {}) =>
  typed({ key, ctrlKey: false, metaKey: false, altKey: false, ...more });

test('a press is written as bindings write it', () => {
  expect(press('k', { ctrlKey: true })).toBe('mod+k');
  expect(press('K', { metaKey: true })).toBe('mod+k');
  expect(press('?')).toBe('?');
  expect(press(' ')).toBe('Space');
  expect(press('Shift')).toBeNull();
  expect(press('x', { altKey: true })).toBeNull();
});

test('keys that follow each other count by how they end', () => {
  expect(matches('g r', ['x', 'g', 'r'])).toBe(true);
  expect(matches('g r', ['g', 'x', 'r'])).toBe(false);
  expect(matches('r', ['g', 'r'])).toBe(true);
  expect(matches('g r', ['r'])).toBe(false);
});

test('of bindings that fit the longest works, and of those the newest', () => {
  const bindings = ['g k', 'k', 'x', 'k'].map((keys, index) => ({ keys, index }));
  expect(chosen(bindings, ['g', 'k'])?.index).toBe(0);
  expect(chosen(bindings, ['j', 'k'])?.index).toBe(3);
  expect(chosen(bindings, ['y'])).toBeNull();
});

test('letters in their order find, and the closest comes first', () => {
  expect(fit('Nightly report', 'nr')).not.toBeNull();
  expect(fit('Nightly report', 'rn')).toBeNull();
  const entries = ['Sunday runs', 'Runs', 'A workflow that returns'].map((text) => ({ text }));
  expect(best(entries, 'runs', 3).map((entry) => entry.text)[0]).toBe('Runs');
  expect(best(entries, '', 2).map((entry) => entry.text)).toEqual(['Sunday runs', 'Runs']);
});
