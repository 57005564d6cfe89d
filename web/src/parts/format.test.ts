import { expect, test } from 'vitest';
import { bytes, countdown, duration, relative, short_run } from './format';
import { pieces_of } from './sentence';

test('durations are short and never lie by rounding up to sixty', () => {
  const cases: [number, string][] = [
    [0, '0 ms'],
    [-5, '0 ms'],
    [999, '999 ms'],
    [1000, '1.0 s'],
    [9_960, '10 s'],
    [59_499, '59 s'],
    [59_500, '1 m 00 s'],
    [60_000, '1 m 00 s'],
    [3_599_999, '1 h 00 m'],
    [3_725_000, '1 h 02 m'],
    [90_000_000, '1 d 1 h'],
  ];
  for (const [ms, text] of cases) expect(duration(ms), String(ms)).toBe(text);
});

test('what is left counts down to nothing, and is never said shorter than it is', () => {
  const cases: [number, string][] = [
    [-5, '0:00'],
    [0, '0:00'],
    [1, '0:01'],
    [9_000, '0:09'],
    [59_001, '1:00'],
    [245_000, '4:05'],
    [3_600_000, '1:00:00'],
    [7_389_000, '2:03:09'],
    [273_600_000, '3 d 04:00:00'],
  ];
  for (const [ms, text] of cases) expect(countdown(ms), String(ms)).toBe(text);
});

test('sizes', () => {
  expect([0, 1023, 1024, 10_240, 67_108_864].map(bytes)).toEqual(['0 B', '1023 B', '1.0 KiB', '10 KiB', '64 MiB']);
});

test('moments before and after now', () => {
  expect(relative(0, 500, 'en')).toBe('now');
  expect(relative(0, 90_000, 'en')).toBe('1 min. ago');
  expect(relative(7_200_000, 0, 'de')).toBe('in 2 Std.');
});

test('the end of an id tells runs apart', () => {
  expect(short_run('0199f2a0-0000-7000-8000-1a2b3c4d5e6f')).toBe('1a2b3c4d5e6f');
});

test('a sentence is cut at its code and its moments, and nothing of it is lost', () => {
  expect(pieces_of('waits for the signal `go` since 2026-11-17T17:07:12.655Z; `a b` sends it')).toEqual([
    { text: 'waits for the signal ', kind: 'text' },
    { text: 'go', kind: 'code' },
    { text: ' since ', kind: 'text' },
    { text: '2026-11-17T17:07:12.655Z', kind: 'moment' },
    { text: '; ', kind: 'text' },
    { text: 'a b', kind: 'code' },
    { text: ' sends it', kind: 'text' },
  ]);
  expect(pieces_of('one ` and <b>no more</b>')).toEqual([{ text: 'one ` and <b>no more</b>', kind: 'text' }]);
  expect(pieces_of('')).toEqual([]);
});
