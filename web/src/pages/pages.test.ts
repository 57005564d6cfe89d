import { expect, test } from 'vitest';
import type { Fault, Outcome, Overview, Param } from '../api/types';
import { bars } from '../parts/outcomes';
import { figures_of } from './figures';
import { text_of, values_of } from './form';
import { offset_of, pieces_of } from './marks';
import { from_local, to_local } from './moments';
import { detail_of, joined_before, kept, parts_of } from './told';

const param = (name: string, type: string, more: Partial<Param> = {}): Param => ({ name, type, required: false, default: null, choices: [], ...more });

test('fields become values of their types', () => {
  const params = ['string', 'integer', 'number', 'boolean', 'list', 'object'].map((type) => param(type, type));
  const typed = { string: ' 007 ', integer: ' 42 ', number: '-1.5', boolean: 'false', list: '["a", 1]', object: '{"a": null}' };
  expect(values_of(params, typed)).toEqual({
    values: { string: ' 007 ', integer: 42, number: -1.5, boolean: false, list: ['a', 1], object: { a: null } },
    faults: [],
  });
});

test('what is wrong is said for every field at once, and nothing is sent for an empty one', () => {
  const params = [
    param('must', 'string', { required: true }),
    param('has', 'integer', { required: true, default: 2 }),
    param('count', 'integer'),
    param('size', 'number'),
    param('list', 'list'),
  ];
  const { values, faults } = values_of(params, { count: '1.5', size: 'much', list: '[', has: '' });
  expect(values).toEqual({});
  expect(faults.map((fault) => [fault.name, fault.key])).toEqual([
    ['must', 'form.lacks'],
    ['count', 'form.not_integer'],
    ['size', 'form.not_number'],
    ['list', 'form.not_json'],
  ]);
  expect(values_of([param('big', 'integer')], { big: '99999999999999999999' }).faults.length).toBe(1);
});

test('a choice keeps its type', () => {
  expect(values_of([param('n', 'integer', { choices: [1, 2] })], { n: text_of(2) }).values).toEqual({ n: 2 });
});

const fault = (line: number, column: number, end_line: number, end_column: number): Fault => ({
  line,
  column,
  end_line,
  end_column,
  message: '',
  help: null,
});
const drawn = (text: string, faults: Fault[]) =>
  pieces_of(text, faults).map((pieces) => pieces.map((piece) => (piece.faulty ? `[${piece.text}]` : piece.text)).join(''));

test('faults are marked where they are, over lines and behind wide characters', () => {
  expect(drawn('ab😀cd\nxy', [fault(1, 4, 1, 6)])).toEqual(['ab😀[cd]', 'xy']);
  expect(drawn('abc\ndef\nghi', [fault(1, 2, 3, 2)])).toEqual(['a[bc]', '[def]', '[g]hi']);
  expect(drawn('abc', [fault(1, 2, 1, 2)])).toEqual(['a[b]c']);
  expect(drawn('abc', [fault(1, 9, 1, 9)])).toEqual(['ab[c]']);
  expect(drawn('', [fault(1, 1, 1, 1)])).toEqual(['']);
});

test('the caret finds a line and a column', () => {
  const text = 'ab\n😀cd\nef';
  expect(text.slice(offset_of(text, 2, 2))).toBe('cd\nef');
  expect(offset_of(text, 9, 1)).toBe(text.length);
});

test('a moment survives the field it is typed into', () => {
  expect(from_local(to_local('2026-03-29T10:05:00Z'))).toBe('2026-03-29T10:05:00Z');
  expect(to_local('nonsense')).toBe('');
  expect(from_local('')).toBeUndefined();
});

test('an event is told by its own fields', () => {
  const event = { event: 'node_draining', seq: 4, at: '', node: 'a', session: 's', why: { reason: 'drained', by: 'me' }, returned: 0, labels: {} };
  expect(detail_of(event)).toBe('why: {reason=drained, by=me}, returned: 0');
  const numbered = (seq: number) => ({ ...event, seq });
  expect(kept([numbered(2), numbered(1)], [numbered(3), numbered(4)], 3).map((one) => one.seq)).toEqual([4, 3, 2]);
});

test('bars are oldest first and never without height', () => {
  const outcome = (run: string, took_ms: number | null): Outcome => ({ run, status: 'succeeded', took_ms, at: `2026-01-0${run}T00:00:00Z` });
  const shown = bars([outcome('3', 400), outcome('2', null), outcome('1', 100)]);
  expect(shown.map((bar) => [bar.outcome.run, bar.height])).toEqual([
    ['1', 9],
    ['2', 4],
    ['3', 14],
  ]);
});

test('ids of runs are found in a text, and nothing is lost of it', () => {
  const run = '01a1e9a5-3fda-704e-93a7-6315d2852990';
  expect(parts_of(`run ${run} of <b>`)).toEqual([{ text: 'run ' }, { text: run, run }, { text: ' of <b>' }]);
  expect(parts_of('')).toEqual([]);
});

test('pages of entries are joined without a gap or a repeat', () => {
  const entries = (...seqs: number[]) => seqs.map((seq) => ({ seq }));
  expect(joined_before(entries(6, 5, 4), entries(5, 4, 3))).toEqual(entries(6, 5, 4, 3));
  expect(joined_before(entries(6, 5), entries(4, 3))).toEqual(entries(6, 5, 4, 3));
  expect(joined_before(entries(9, 8), entries(6))).toBeNull();
  expect(joined_before(entries(), entries(2, 1))).toEqual(entries(2, 1));
  expect(joined_before(entries(2, 1), entries())).toEqual(entries(2, 1));
});

test('a figure of which there may be more says so, and leads to the runs that it counts', () => {
  const seen = (runs: boolean, ended: boolean): Overview => ({
    observed_at: '2026-11-16T12:00:00.000Z',
    runs: { running: 3, waiting: 2, paused: 1, is_partial: runs },
    ended: { window_s: 86_400, succeeded: 6, failed: 5, canceled: 4, is_partial: ended },
    minutes: [],
    minutes_are_partial: false,
    failing: [],
    waiting: [],
    waiting_is_partial: false,
  });
  const partial = (figures: ReturnType<typeof figures_of>) => figures.filter((figure) => figure.is_partial).map((figure) => figure.n);
  expect(figures_of(seen(false, false)).map((figure) => figure.n)).toEqual([3, 2, 1, 6, 5, 4]);
  expect(partial(figures_of(seen(false, false)))).toEqual([]);
  expect(partial(figures_of(seen(true, false)))).toEqual([3, 2, 1]);
  expect(partial(figures_of(seen(false, true)))).toEqual([6, 5, 4]);
  const failed = figures_of(seen(false, false)).find((figure) => figure.word === 'overview.failed');
  expect(failed?.to).toBe('/runs?since=2026-11-15T12%3A00%3A00.000Z&status=failed');
});
