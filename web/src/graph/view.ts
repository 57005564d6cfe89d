// Where one looks at a graph: pan, zoom, fit, and bringing a box into sight. Pure; the component holds the value.

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** The point of the graph in the upper left corner of the screen, and how many pixels one of its units has. */
export interface View {
  x: number;
  y: number;
  scale: number;
}

export interface Size {
  width: number;
  height: number;
}

export const CLOSEST = 3;
/** Below this names cannot be read, and are not drawn. */
export const READABLE = 0.5;
/** So many steps can be walked along; of more one wants to see the whole first. */
const FEW = 60;
/** Nothing is shown larger than it was drawn when all of it is brought into sight. */
const LARGEST_FIT = 1;
const AROUND = 16;
const COMFORTABLE = 0.8;

export function fit(what: Box, screen: Size): View {
  const wide = Math.max(1, screen.width - 2 * AROUND) / Math.max(1, what.width);
  const high = Math.max(1, screen.height - 2 * AROUND) / Math.max(1, what.height);
  const scale = Math.min(LARGEST_FIT, wide, high);
  return {
    x: what.x + what.width / 2 - screen.width / 2 / scale,
    y: what.y + what.height / 2 - screen.height / 2 / scale,
    scale,
  };
}

/** What one sees first: all of it, or, where few steps would have no names so, its beginning. */
export function begin(what: Box, screen: Size, steps: number): View {
  const all = fit(what, screen);
  if (all.scale >= READABLE || steps > FEW) return all;
  return { ...centre(all, what, screen), x: what.x - AROUND / COMFORTABLE };
}

export function pan(view: View, dx: number, dy: number): View {
  return { ...view, x: view.x - dx / view.scale, y: view.y - dy / view.scale };
}

/** The point under the pointer stays there. */
export function zoom(view: View, factor: number, at: { x: number; y: number }, farthest: number): View {
  const scale = Math.min(CLOSEST, Math.max(farthest, view.scale * factor));
  return {
    x: view.x + at.x / view.scale - at.x / scale,
    y: view.y + at.y / view.scale - at.y / scale,
    scale,
  };
}

/** How far out one may go: a little farther than to see all of it. */
export function farthest(what: Box, screen: Size): number {
  return fit(what, screen).scale / 1.5;
}

export function seen(view: View, screen: Size): Box {
  return { x: view.x, y: view.y, width: screen.width / view.scale, height: screen.height / view.scale };
}

export function grown(box: Box, by: number): Box {
  return { x: box.x - by, y: box.y - by, width: box.width + 2 * by, height: box.height + 2 * by };
}

export function touches(a: Box, b: Box): boolean {
  return a.x <= b.x + b.width && b.x <= a.x + a.width && a.y <= b.y + b.height && b.y <= a.y + a.height;
}

export function contains(outer: Box, inner: Box): boolean {
  return (
    outer.x <= inner.x &&
    outer.y <= inner.y &&
    outer.x + outer.width >= inner.x + inner.width &&
    outer.y + outer.height >= inner.y + inner.height
  );
}

/** The least movement after which a box is in sight; the same view if it is already. */
export function reveal(view: View, box: Box, screen: Size): View {
  const room = AROUND / view.scale;
  const sight = seen(view, screen);
  const x = nearest(sight.x, sight.width, box.x - room, box.width + 2 * room);
  const y = nearest(sight.y, sight.height, box.y - room, box.height + 2 * room);
  return x === view.x && y === view.y ? view : { ...view, x, y };
}

function nearest(start: number, length: number, from: number, size: number): number {
  if (size > length || from < start) return from;
  return from + size > start + length ? from + size - length : start;
}

/** A box in the middle, readable: not farther away than its text can be read. */
export function centre(view: View, box: Box, screen: Size): View {
  const scale = Math.max(view.scale, COMFORTABLE);
  return {
    x: box.x + box.width / 2 - screen.width / 2 / scale,
    y: box.y + box.height / 2 - screen.height / 2 / scale,
    scale,
  };
}
