import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { de } from './de';
import { en } from './en';
import { say, type Word } from './words';

const texts = (word: Word): string[] => (typeof word === 'string' ? [word] : [word.one, word.other]);
const gaps = (word: Word): string[] => [...new Set(texts(word).flatMap((text) => text.match(/\{\w+\}/g) ?? []))].sort();

test('a language has the same gaps as English, in every word', () => {
  for (const [key, word] of Object.entries(en)) expect(gaps(de[key as keyof typeof en]), key).toEqual(gaps(word));
  expect(Object.keys(de).sort()).toEqual(Object.keys(en).sort());
});

test('nothing is left untranslated by accident', () => {
  const same = Object.entries(en).filter(([key, word]) => {
    const other = de[key as keyof typeof en];
    // A sentence, that is; many a single word is the same in both.
    return texts(word).join() === texts(other).join() && /\p{L} \p{L}/u.test(texts(word).join().replace(/\{\w+\}/g, ''));
  });
  expect(same.map(([key]) => key)).toEqual([]);
});

test('a number chooses the form and is written as the language does', () => {
  const word = { one: '{n} run of {name}', other: '{n} runs of {name}' };
  expect(say(word, { n: 1, name: 'x' }, 'en')).toBe('1 run of x');
  expect(say(word, { n: 0, name: 'x' }, 'en')).toBe('0 runs of x');
  expect(say(word, { n: 12345, name: 'x' }, 'de')).toBe('12.345 runs of x');
});

test('what is put into a gap is never read for gaps again', () => {
  expect(say('{a} {b}', { a: '{b}', b: '$&' }, 'en')).toBe('{b} $&');
});

const root = fileURLToPath(new URL('../../..', import.meta.url));

test('every reason that a task can have is said in words, and as the command line says it', () => {
  const described = JSON.parse(readFileSync(join(root, 'docs/reference/openapi.json'), 'utf8')) as { components: { schemas: { Reason: { enum: string[] } } } };
  const reasons = described.components.schemas.Reason.enum;
  expect(reasons.length).toBeGreaterThan(15);
  const sentences = readFileSync(join(root, 'crates/laneway/src/progress/sentence.rs'), 'utf8');
  const told = new Map([...sentences.matchAll(/Reason::(\w+) => "(.+)",/g)].map(([, name = '', text]) => [name.replace(/\B[A-Z]/g, '_$&').toLowerCase(), text]));
  for (const reason of reasons) {
    expect(en[`reason.${reason}` as keyof typeof en], reason).toBe(told.get(reason));
    expect(de[`reason.${reason}` as keyof typeof en], reason).toBeDefined();
  }
});

test('every word is said somewhere', () => {
  const source = fileURLToPath(new URL('..', import.meta.url));
  const text = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(svelte|ts)$/.test(name) && !name.startsWith('words'))
    .map((name) => readFileSync(join(source, name), 'utf8'))
    .join('\n');
  // A key that is put together from a word of the server, or of a list, is there by its beginning.
  const parts = [...text.matchAll(/t\(`([\w.]+\.)\$\{/g)].map((match) => match[1] ?? '');
  const kinds = ['state.', 'role.', 'reason.', 'gate.', 'act.', ...parts];
  const unsaid = Object.keys(en).filter((key) => !text.includes(`'${key}'`) && !kinds.some((kind) => key.startsWith(kind)));
  expect(unsaid).toEqual([]);
});
