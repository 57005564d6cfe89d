// Finds the boxes that touch a rectangle without looking at all of them: a grid whose cells list what touches them.
// Ten thousand steps are looked through at every movement, so nothing is allocated per cell.

import type { Box } from './view';

/** A box across more cells than this is looked at every time instead of being listed in each of them. */
const MOST_CELLS = 64;

export class Cells {
  readonly #boxes: readonly Box[];
  readonly #size: number;
  readonly #left: number;
  readonly #top: number;
  readonly #columns: number;
  readonly #rows: number;
  /** Cell `c` lists `#listed[#starts[c] .. #starts[c + 1]]`. */
  readonly #starts: Uint32Array;
  readonly #listed: Uint32Array;
  readonly #large: number[] = [];
  /** By box: the last search that gave it out, so that none gives it twice. */
  readonly #given: Uint32Array;
  #search = 0;

  constructor(boxes: readonly Box[], size = 512) {
    this.#boxes = boxes;
    let [left, top, right, bottom] = [0, 0, 1, 1];
    for (const box of boxes) {
      left = Math.min(left, box.x);
      top = Math.min(top, box.y);
      right = Math.max(right, box.x + box.width);
      bottom = Math.max(bottom, box.y + box.height);
    }
    // A graph may be a million units high: cells grow so that there are never many more of them than boxes.
    const fair = Math.sqrt(((right - left) * (bottom - top)) / Math.max(64, boxes.length * 2));
    this.#size = Math.max(size, fair);
    this.#left = left;
    this.#top = top;
    this.#columns = Math.floor((right - left) / this.#size) + 1;
    this.#rows = Math.floor((bottom - top) / this.#size) + 1;
    this.#given = new Uint32Array(boxes.length);
    this.#starts = new Uint32Array(this.#columns * this.#rows + 1);
    boxes.forEach((box, index) => {
      const [x0, y0, x1, y1] = this.#range(box);
      if ((x1 - x0 + 1) * (y1 - y0 + 1) > MOST_CELLS) {
        this.#large.push(index);
        return;
      }
      this.#each(x0, y0, x1, y1, (cell) => this.#starts[cell + 1]!++);
    });
    for (let cell = 0; cell + 1 < this.#starts.length; cell++) this.#starts[cell + 1]! += this.#starts[cell]!;
    this.#listed = new Uint32Array(this.#starts[this.#starts.length - 1]!);
    const next = this.#starts.slice();
    const large = new Set(this.#large);
    boxes.forEach((box, index) => {
      if (large.has(index)) return;
      const [x0, y0, x1, y1] = this.#range(box);
      this.#each(x0, y0, x1, y1, (cell) => {
        this.#listed[next[cell]!++] = index;
      });
    });
  }

  /** Indices of the boxes that touch `area`, each once, in no order. */
  find(area: Box): number[] {
    this.#search++;
    const found: number[] = [];
    const look = (index: number): void => {
      if (this.#given[index] === this.#search) return;
      this.#given[index] = this.#search;
      const box = this.#boxes[index]!;
      if (
        box.x <= area.x + area.width &&
        area.x <= box.x + box.width &&
        box.y <= area.y + area.height &&
        area.y <= box.y + box.height
      ) {
        found.push(index);
      }
    };
    this.#large.forEach(look);
    const [x0, y0, x1, y1] = this.#range(area);
    this.#each(x0, y0, x1, y1, (cell) => {
      for (let at = this.#starts[cell]!; at < this.#starts[cell + 1]!; at++) look(this.#listed[at]!);
    });
    return found;
  }

  #range(box: Box): [number, number, number, number] {
    const column = (x: number): number => clamp(Math.floor((x - this.#left) / this.#size), this.#columns);
    const row = (y: number): number => clamp(Math.floor((y - this.#top) / this.#size), this.#rows);
    return [column(box.x), row(box.y), column(box.x + box.width), row(box.y + box.height)];
  }

  #each(x0: number, y0: number, x1: number, y1: number, visit: (cell: number) => void): void {
    for (let row = y0; row <= y1; row++) {
      for (let column = x0; column <= x1; column++) visit(row * this.#columns + column);
    }
  }
}

function clamp(value: number, count: number): number {
  return Math.min(count - 1, Math.max(0, value));
}
