import { expect, test } from 'vitest';
import type { Overview, RunSummary } from '../api/types';
import { joined, shown_of, type Page } from './older';

const page = (ids: string[], next_cursor: string | null): Page => ({ runs: ids.map((run) => ({ run }) as RunSummary), next_cursor });
const ids = (of: Page) => of.runs.map((run) => run.run);

test('a cursor alone does not say that more runs', () => {
  const count = (running: number, is_partial = false): Overview['runs'] => ({ running, waiting: 0, paused: 0, is_partial });
  const three = page(['9', '8', '7'], '1');
  expect(shown_of(three, 10, count(3))).toBe('all');
  expect(shown_of(three, 10, count(4))).toBe('first');
  expect(shown_of(three, 10, count(3, true))).toBe('first');
  expect(shown_of(three, 3, count(0))).toBe('first');
  expect(shown_of(page(['9'], null), 10, count(2))).toBe('all');
  expect(shown_of(page([], '1'), 10, count(0))).toBe('none');
  expect(shown_of(page([], '1'), 10, count(2))).toBe('none_seen');
  expect(shown_of(page([], null), 10, count(0))).toBe('none');
});

test('older pages stay while the first one is asked for again', () => {
  const before = page(['8', '7', '4', '2'], '1');
  expect(ids(joined(page(['8', '7'], '5'), before))).toEqual(['8', '7', '4', '2']);
  expect(joined(page(['8', '7'], '5'), before).next_cursor).toBe('1');
  // 9 is new and 8 does not match any more; 7 has moved behind the last that was looked at, and is there once.
  expect(ids(joined(page(['9'], '7x'), before))).toEqual(['9', '7', '4', '2']);
  expect(ids(joined(page(['9', '7', '4'], '3'), before))).toEqual(['9', '7', '4', '2']);
  // All of it was looked at.
  expect(joined(page(['9'], null), before)).toEqual(page(['9'], null));
});
