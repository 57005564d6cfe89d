// An event of a node or a pool as one line: its own fields, without those that every event has. Pure.
import type { StreamEvent } from '../api/stream';

const COMMON = new Set(['event', 'seq', 'at', 'node', 'session', 'v', 'version', 'pool', 'container']);

export function detail_of(event: StreamEvent): string {
  return Object.entries(event)
    .filter(([name, value]) => !COMMON.has(name) && !is_empty(value))
    .map(([name, value]) => `${name}: ${plain(value)}`)
    .join(', ');
}

function is_empty(value: unknown): boolean {
  return value === null || value === undefined || value === '' || (typeof value === 'object' && Object.keys(value as object).length === 0);
}

function plain(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  const parts = Object.entries(value).map(([name, part]) => `${name}=${plain(part)}`);
  return parts.length === 1 ? (parts[0] ?? '') : `{${parts.join(', ')}}`;
}

/** Behind what is kept, newest first, at most so many. */
export function kept(before: readonly StreamEvent[], added: readonly StreamEvent[], most: number): StreamEvent[] {
  return [...[...added].reverse(), ...before].slice(0, most);
}

const RUN = /([0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12})/;

/** A text cut at the ids of runs in it. */
export function parts_of(text: string): { text: string; run?: string }[] {
  return text
    .split(RUN)
    .filter((part) => part !== '')
    .map((part) => (RUN.test(part) ? { text: part, run: part } : { text: part }));
}

/** Newer entries before older ones, newest first and each once; null if there may be some between them that nobody has read. */
export function joined_before<E extends { seq: number }>(newer: readonly E[], older: readonly E[]): E[] | null {
  const oldest = newer.at(-1)?.seq;
  const newest = older[0]?.seq;
  if (oldest === undefined) return [...older];
  if (newest !== undefined && newest < oldest - 1) return null;
  return [...newer, ...older.filter((entry) => entry.seq < oldest)];
}
