// What of a layout is drawn: its steps, and in place of the steps of a collapsed group one box. Pure. Nothing is laid out
// anew here: a collapsed group stands where its frame stood, so that opening it moves nothing else.

import type { GraphLayout } from '../api/types';
import type { Box } from './view';

export interface Item extends Box {
  /** Name of the step, or of the group. */
  name: string;
  kind: string;
  is_group: boolean;
  is_for_each: boolean;
  layer: number;
  /** Indices of the layout's nodes that it stands for: itself, or the members. */
  members: number[];
}

export interface Line {
  /** Indices of items. */
  from: number;
  to: number;
  points: [number, number][];
  box: Box;
}

export interface Frame extends Box {
  name: string;
}

export interface Scene {
  width: number;
  height: number;
  items: Item[];
  lines: Line[];
  /** Groups that are open. */
  frames: Frame[];
  /** By index of a layout's node: the item that shows it. */
  shown_by: number[];
  /** By name of a step or of a collapsed group. */
  places: Map<string, number>;
}

const GROUP_HEIGHT = 40;

/** Whether two answers say the same. An answer that is asked for again is another object, and not another graph. */
export function is_same(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  const [names, others] = [Object.keys(one), Object.keys(other)];
  if (names.length !== others.length) return false;
  return names.every((name) => is_same((one as Record<string, unknown>)[name], (other as Record<string, unknown>)[name]));
}

export function scene_of(layout: GraphLayout, collapsed: ReadonlySet<string>): Scene {
  const items: Item[] = [];
  const shown_by: number[] = [];
  const group_items = new Map<string, number>();
  const frames = new Map(layout.groups.map((group) => [group.name, group]));
  layout.nodes.forEach((node, index) => {
    const frame = node.group != null && collapsed.has(node.group) ? frames.get(node.group) : undefined;
    if (frame === undefined) {
      shown_by[index] = items.length;
      items.push({
        name: node.step,
        kind: node.kind,
        is_group: false,
        is_for_each: node.for_each,
        layer: node.layer,
        members: [index],
        x: node.x,
        y: node.y,
        width: node.width,
        height: node.height,
      });
      return;
    }
    const known = group_items.get(frame.name);
    if (known !== undefined) {
      items[known]!.members.push(index);
      shown_by[index] = known;
      return;
    }
    group_items.set(frame.name, items.length);
    shown_by[index] = items.length;
    items.push({
      name: frame.name,
      kind: 'group',
      is_group: true,
      is_for_each: false,
      layer: node.layer,
      members: [index],
      x: frame.x,
      y: frame.y + Math.max(0, frame.height - GROUP_HEIGHT) / 2,
      width: frame.width,
      height: Math.min(frame.height, GROUP_HEIGHT),
    });
  });
  return {
    width: layout.width,
    height: layout.height,
    items,
    lines: lines_of(layout, items, shown_by),
    frames: layout.groups.filter((group) => !collapsed.has(group.name)),
    shown_by,
    places: new Map(items.map((item, place) => [item.name, place])),
  };
}

/** Edges within a collapsed group are gone, those that lead to and from it meet its box, several of one kind become one. */
function lines_of(layout: GraphLayout, items: Item[], shown_by: number[]): Line[] {
  const lines: Line[] = [];
  const known = new Set<number>();
  for (const edge of layout.edges) {
    const from = shown_by[edge.from]!;
    const to = shown_by[edge.to]!;
    const [start, end] = [items[from]!, items[to]!];
    if (from === to) continue;
    const points = edge.points.map(([x, y]): [number, number] => [x, y]);
    if (start.is_group || end.is_group) {
      const pair = from * items.length + to;
      if (known.has(pair)) continue;
      known.add(pair);
      if (start.is_group) points[0] = [start.x + start.width, start.y + start.height / 2];
      if (end.is_group) points[points.length - 1] = [end.x, end.y + end.height / 2];
    }
    lines.push({ from, to, points, box: around(points) });
  }
  return lines;
}

function around(points: [number, number][]): Box {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [x, y] of points) {
    left = Math.min(left, x);
    right = Math.max(right, x);
    top = Math.min(top, y);
    bottom = Math.max(bottom, y);
  }
  return { x: left, y: top, width: right - left, height: bottom - top };
}
