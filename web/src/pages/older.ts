// Lists of runs that are not looked at to their end: what may be said of a page with a cursor, and pages that were asked for before. Pure.
import type { Overview, RunSummary } from '../api/types';

export interface Page {
  runs: readonly RunSummary[];
  next_cursor?: string | null;
}

/**
 * What of all that runs is shown. A cursor alone says only that not every run was looked at, so the figures of the overview decide; those
 * count what waits apart, so a full page with a cursor has more behind it as well.
 */
export function shown_of(page: Page, limit: number, runs: Overview['runs']): 'all' | 'first' | 'none' | 'none_seen' {
  const has_more = Boolean(page.next_cursor) && (runs.is_partial || runs.running > page.runs.length || page.runs.length >= limit);
  if (page.runs.length > 0) return has_more ? 'first' : 'all';
  return has_more ? 'none_seen' : 'none';
}

/**
 * The first page as it is now, and behind it what was seen before. Ids grow with time: what was seen and is not older than the last run
 * that the first page looked at would be on it if it still matched.
 */
export function joined(first: Page, before: Page | null): Page {
  const end = first.next_cursor;
  if (before === null || !end) return first;
  const there = new Set(first.runs.map((run) => run.run));
  const older = before.runs.filter((run) => run.run < end && !there.has(run.run));
  return { runs: [...first.runs, ...older], next_cursor: before.next_cursor };
}
