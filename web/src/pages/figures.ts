// The figures on top of the overview, each with where it leads, and whether more was there than was counted. Pure.
import type { Overview } from '../api/types';
import { href, type RunStatus } from '../route/routes';
import type { Key } from '../words';

export interface Figure {
  word: Key;
  n: number;
  state: string;
  to: string;
  /** There are more: it is the least that it can be. */
  is_partial: boolean;
}

export function figures_of(seen: Overview): Figure[] {
  const since = new Date(Date.parse(seen.observed_at) - seen.ended.window_s * 1000).toISOString();
  const runs = (status: RunStatus[], from?: string): string => href({ page: 'runs', filter: { status, ...(from ? { since: from } : {}) } });
  const now = (word: Key, n: number, state: string, status: RunStatus[]): Figure => ({ word, n, state, to: runs(status), is_partial: seen.runs.is_partial });
  const late = (word: Key, n: number, status: RunStatus): Figure => ({ word, n, state: status, to: runs([status], since), is_partial: seen.ended.is_partial });
  return [
    now('overview.running', seen.runs.running, 'running', ['running']),
    now('overview.waiting', seen.runs.waiting, 'queued', ['queued', 'running']),
    now('overview.paused', seen.runs.paused, 'paused', ['queued', 'running']),
    late('overview.succeeded', seen.ended.succeeded, 'succeeded'),
    late('overview.failed', seen.ended.failed, 'failed'),
    late('overview.canceled', seen.ended.canceled, 'canceled'),
  ];
}
