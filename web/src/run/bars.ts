// The timeline of a run: a bar for each attempt, by step or by node and slot. Slots are not recorded; attempts of a node that ran side by
// side stand in different lanes, and never more of them than ran at once. Pure.

import type { StreamEvent } from '../api/stream';
import { moment, type Task } from './fold';

export interface Bar {
  task: string;
  step: string;
  attempt: number;
  node: string | null;
  start: number;
  /** `null` while it goes on. */
  end: number | null;
  /** running, parked, succeeded, failed, canceled, lost, returned. */
  state: string;
}

export interface Lane {
  /** Of the step, or of the node. */
  name: string;
  /** From 0 on, among the lanes of that name. */
  slot: number;
  bars: Bar[];
}

/** The last attempt of each task: what the tasks themselves tell. */
export function bars_of(tasks: Iterable<Task>): Bar[] {
  const bars: Bar[] = [];
  for (const task of tasks) {
    if (task.started_at === null) continue;
    const is_open = task.status === 'running' || task.status === 'parked';
    // Pending again after a failed attempt: it took what its holder measured.
    const end = is_open ? null : (task.finished_at ?? (task.took_ms === null ? null : task.started_at + task.took_ms));
    if (end === null && !is_open) continue;
    const state = task.status === 'pending' ? 'failed' : task.status;
    bars.push({ task: task.name, step: task.step, attempt: task.attempt, node: task.node, start: task.started_at, end, state });
  }
  return bars;
}

/** Every attempt, from the whole history. */
export class History {
  readonly bars: Bar[] = [];
  readonly #open = new Map<string, Bar>();

  add(event: StreamEvent): void {
    if (typeof event.step !== 'string') return;
    const at = moment(event.at) ?? 0;
    const open = this.#open.get(event.step);
    switch (event.event) {
      case 'task_started':
      case 'task_parked': {
        const is_parked = event.event === 'task_parked';
        const bar: Bar = {
          task: event.step,
          step: step_of(event.step),
          attempt: typeof event.attempt === 'number' ? event.attempt : 0,
          node: typeof event.node === 'string' ? event.node : null,
          start: at,
          end: null,
          state: is_parked ? 'parked' : 'running',
        };
        this.#open.set(event.step, bar);
        this.bars.push(bar);
        break;
      }
      case 'task_finished':
      case 'task_retrying':
      case 'task_lost':
      case 'task_returned':
        if (open === undefined) break;
        open.end = at;
        open.state = ended_as(event);
        this.#open.delete(event.step);
        break;
    }
  }
}

function ended_as(event: StreamEvent): string {
  switch (event.event) {
    case 'task_retrying':
      return 'failed';
    case 'task_lost':
      return 'lost';
    case 'task_returned':
      return 'returned';
    default:
      return typeof event.status === 'string' ? event.status : 'succeeded';
  }
}

function step_of(name: string): string {
  return /^(.*)\[\d+\]$/.exec(name)?.[1] ?? name;
}

/** Those of one name share as few lanes as they can: each bar goes to the first lane that is free when it starts. */
export function lanes_of(bars: readonly Bar[], by: 'step' | 'node', now: number): Lane[] {
  const lanes = new Map<string, Lane[]>();
  const ends = new Map<string, number[]>();
  const ordered = [...bars].sort((a, b) => a.start - b.start || compare(a.task, b.task));
  for (const bar of ordered) {
    // What waits holds no slot of any node.
    if (by === 'node' && (bar.node === null || bar.state === 'parked')) continue;
    const name = by === 'node' ? bar.node! : bar.step;
    let own = lanes.get(name);
    let free = ends.get(name);
    if (own === undefined || free === undefined) {
      lanes.set(name, (own = []));
      ends.set(name, (free = []));
    }
    let slot = free.findIndex((end) => end <= bar.start);
    if (slot === -1) slot = own.push({ name, slot: own.length, bars: [] }) - 1;
    own[slot]!.bars.push(bar);
    free[slot] = bar.end ?? Math.max(now, bar.start);
  }
  const sorted = by === 'node' ? [...lanes].sort(([a], [b]) => compare(a, b)) : [...lanes];
  return sorted.flatMap(([, own]) => own);
}

/** From the first start to the last end, with something to see even of a run that took no time. */
export function span_of(bars: readonly Bar[], now: number): { from: number; to: number } {
  let [from, to] = [Infinity, -Infinity];
  for (const bar of bars) {
    from = Math.min(from, bar.start);
    to = Math.max(to, bar.end ?? now);
  }
  return from === Infinity ? { from: now, to: now + 1 } : { from, to: Math.max(to, from + 1) };
}

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000, 43_200_000, 86_400_000];

/** Moments behind the start of a span at which a scale has its marks: at most `most`, at round numbers. */
export function ticks(length_ms: number, most: number): number[] {
  const step = STEPS.find((candidate) => length_ms / candidate <= most) ?? Math.ceil(length_ms / most / 86_400_000) * 86_400_000;
  const marks: number[] = [];
  for (let at = 0; at <= length_ms; at += step) marks.push(at);
  return marks;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
