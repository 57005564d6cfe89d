import { expect, test } from 'vitest';
import { diff, fold } from './diff';

const SIGN = { same: ' ', added: '+', removed: '-' } as const;
const drawn = (before: string, after: string) => diff(before, after).map((line) => SIGN[line.kind] + line.text);

test('the shortest way from one text to the other', () => {
  expect(drawn('a\nb\nc\n', 'a\nx\nc\n')).toEqual([' a', '-b', '+x', ' c']);
  expect(drawn('', 'a\n')).toEqual(['+a']);
  expect(drawn('a\n', '')).toEqual(['-a']);
  expect(drawn('a\nb', 'a\nb')).toEqual([' a', ' b']);
  expect(drawn('a\nb\nc\na\nb\nb\na', 'c\nb\na\nb\na\nc').filter((line) => line[0] !== ' ').length).toBe(5);
});

test('whatever the texts, each side can be read off the lines', () => {
  let seed = 7;
  const chance = (n: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
  for (let round = 0; round < 300; round += 1) {
    const text = () => Array.from({ length: chance(12) }, () => 'abc'[chance(3)]).join('\n');
    const [before, after] = [text(), text()];
    const lines = diff(before, after);
    const side = (gone: string) => lines.filter((line) => line.kind !== gone).map((line) => line.text);
    expect(side('added').join('\n')).toBe(before);
    expect(side('removed').join('\n')).toBe(after);
    const numbers = lines.map((line) => line.now).filter((now) => now !== null);
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
  }
});

test('texts that have nothing in common are not compared for ever', () => {
  const text = (letter: string) => Array.from({ length: 4000 }, (_, index) => letter + index).join('\n');
  const start = performance.now();
  expect(diff(text('a'), text('b')).length).toBe(8000);
  expect(performance.now() - start).toBeLessThan(5_000);
});

test('what stayed the same is left out but for a few lines', () => {
  const before = Array.from({ length: 30 }, (_, index) => `line ${index}`);
  const after = before.with(15, 'other');
  const parts = fold(diff(before.join('\n'), after.join('\n')));
  expect(parts.map((part) => (part.kind === 'gap' ? part.count : -part.lines.length))).toEqual([12, -8, 11]);
});
