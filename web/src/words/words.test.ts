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
