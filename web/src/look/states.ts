// Every state that something can be in: its colour and its shape. Never colour alone.

export const TASK_STATUSES = ['pending', 'available', 'running', 'parked', 'succeeded', 'failed', 'canceled', 'skipped'] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];

/** A colour of the tokens (`--state-NAME`). */
export type Tone = 'waiting' | 'ready' | 'running' | 'parked' | 'succeeded' | 'failed' | 'canceled' | 'skipped';

/** Drawn in a box of 16 x 16 with the stroke of the tone. `filled` fills the outline and cuts the sign out of it. */
export type Shape = { tone: Tone; outline: string; sign: string; filled: boolean; dashed?: boolean };

const circle = 'M8 1.5a6.5 6.5 0 1 1 0 13a6.5 6.5 0 1 1 0-13z';
const octagon = 'M5.3 1.5h5.4l3.8 3.8v5.4l-3.8 3.8H5.3l-3.8-3.8V5.3z';
const square = 'M3.5 2h9a1.5 1.5 0 0 1 1.5 1.5v9a1.5 1.5 0 0 1-1.5 1.5h-9A1.5 1.5 0 0 1 2 12.5v-9A1.5 1.5 0 0 1 3.5 2z';
const diamond = 'M8 1.2L14.8 8L8 14.8L1.2 8z';

const waiting: Shape = { tone: 'waiting', outline: circle, sign: '', filled: false, dashed: true };
const ready: Shape = { tone: 'ready', outline: circle, sign: 'M8 7v2', filled: false };
const running: Shape = { tone: 'running', outline: circle, sign: 'M6.6 5.2v5.6l4.4-2.8z', filled: true };
const parked: Shape = { tone: 'parked', outline: square, sign: 'M6.2 5.5v5M9.8 5.5v5', filled: false };
const succeeded: Shape = { tone: 'succeeded', outline: circle, sign: 'M4.9 8.3l2.2 2.2l4-4.6', filled: true };
const failed: Shape = { tone: 'failed', outline: octagon, sign: 'M5.7 5.7l4.6 4.6M10.3 5.7l-4.6 4.6', filled: true };
const canceled: Shape = { tone: 'canceled', outline: circle, sign: 'M4.2 11.8l7.6-7.6', filled: false };
const skipped: Shape = { tone: 'skipped', outline: diamond, sign: 'M5.6 8h4.8', filled: false };

/** States of runs, tasks, attempts, nodes and containers. */
export const SHAPES: Record<string, Shape> = {
  pending: waiting,
  queued: waiting,
  starting: waiting,
  available: ready,
  idle: ready,
  ready,
  running,
  active: running,
  busy: running,
  paused: parked,
  parked,
  dormant: parked,
  draining: parked,
  drained: parked,
  succeeded,
  done: succeeded,
  alive: succeeded,
  'takes work': succeeded,
  'runs its own': running,
  failed,
  lost: failed,
  unknown: failed,
  canceled,
  canceling: canceled,
  revoked: canceled,
  expired: canceled,
  removed: canceled,
  terminated: canceled,
  skipped,
};

/** A state that this page does not know is shown by its word and a shape of its own. */
export function shape_of(state: string): Shape {
  return SHAPES[state] ?? { tone: 'waiting', outline: square, sign: '', filled: false };
}
