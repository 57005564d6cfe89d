// How much of a graph is drawn: names where they can be read, marks where they cannot, and from afar one path for each state,
// in which failures keep a size that can be seen. Pure.

import type { TaskStatus } from '../look/states';
import type { Item } from './scene';
import { READABLE, type View } from './view';

export type Detail = 'near' | 'middle' | 'far';

/** More boxes than this are drawn as paths: each costs the browser an element or more. */
export const MOST_BOXES = 420;
/** More lines than this are left out from afar, where they are a grey mass. */
export const MOST_LINES = 6000;

export function detail_of(boxes: number, scale: number): Detail {
  if (boxes > MOST_BOXES || scale < 0.12) return 'far';
  return scale < READABLE ? 'middle' : 'near';
}

/** What is worth seeing when several stand on one spot, worst first. */
const WORTH: readonly TaskStatus[] = [
  'failed',
  'running',
  'parked',
  'available',
  'pending',
  'canceled',
  'skipped',
  'succeeded',
];

/** A state that many steps have together: the one that most wants to be seen. */
export function worst(states: Iterable<TaskStatus>): TaskStatus {
  let best = WORTH.length;
  for (const state of states) best = Math.min(best, WORTH.indexOf(state));
  return WORTH[best] ?? 'pending';
}

/** Pixels of a spot: what falls on the same one is drawn once. */
const SPOT = 2;
const SMALLEST = 1.5;
const FAILED_SIZE = 7;

/**
 * A path for each state, in pixels of the screen. Shape as well as colour tells them apart: what has ended is a low bar, what runs a
 * full box, what waits an outline (drawn so by its class), what failed a lozenge of a fixed size.
 */
export function far_paths(
  items: readonly Item[],
  places: readonly number[],
  status_of: (item: Item) => TaskStatus,
  view: View,
): Map<TaskStatus, string> {
  const spots = new Map<number, { place: number; worth: number }>();
  for (const place of places) {
    const item = items[place]!;
    const worth = WORTH.indexOf(status_of(item));
    const x = Math.round(((item.x - view.x) * view.scale) / SPOT);
    const y = Math.round(((item.y - view.y) * view.scale) / SPOT);
    const spot = (y + 32_768) * 65_536 + (x + 32_768);
    const known = spots.get(spot);
    if (known === undefined) spots.set(spot, { place, worth });
    else if (worth < known.worth) [known.place, known.worth] = [place, worth];
  }
  const parts = new Map<TaskStatus, string[]>();
  for (const { place, worth } of spots.values()) {
    const status = WORTH[worth] ?? 'pending';
    let list = parts.get(status);
    if (list === undefined) parts.set(status, (list = []));
    list.push(shape(status, items[place]!, view));
  }
  return new Map([...parts].map(([status, list]) => [status, list.join('')]));
}

function shape(status: TaskStatus, item: Item, view: View): string {
  const x = (item.x - view.x) * view.scale;
  const y = (item.y - view.y) * view.scale;
  const width = Math.max(SMALLEST, item.width * view.scale);
  const height = Math.max(SMALLEST, item.height * view.scale);
  if (status === 'failed') {
    const half = Math.max(FAILED_SIZE, height) / 2;
    return `M${round(x + width / 2)} ${round(y + height / 2 - half)}l${round(half)} ${round(half)}l${round(-half)} ${round(half)}l${round(-half)} ${round(-half)}z`;
  }
  const is_low = status === 'succeeded' || status === 'skipped';
  const high = is_low ? Math.max(SMALLEST, height / 2) : height;
  return `M${round(x)} ${round(y + height - high)}h${round(width)}v${round(high)}h${round(-width)}z`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
