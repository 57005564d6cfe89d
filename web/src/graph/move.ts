// Where an arrow key leads from a step: along edges to what it needs and what needs it, up and down within its column.

import type { Scene } from './scene';

export type Direction = 'left' | 'right' | 'up' | 'down' | 'first' | 'last';

export class Paths {
  readonly #scene: Scene;
  readonly #before: number[][];
  readonly #behind: number[][];
  /** Items of each column from top to bottom. */
  readonly #columns = new Map<number, number[]>();

  constructor(scene: Scene) {
    this.#scene = scene;
    this.#before = scene.items.map(() => []);
    this.#behind = scene.items.map(() => []);
    for (const line of scene.lines) {
      this.#behind[line.from]!.push(line.to);
      this.#before[line.to]!.push(line.from);
    }
    scene.items.forEach((item, place) => {
      const column = this.#columns.get(item.layer);
      if (column === undefined) this.#columns.set(item.layer, [place]);
      else column.push(place);
    });
    for (const column of this.#columns.values()) {
      column.sort((a, b) => scene.items[a]!.y - scene.items[b]!.y || a - b);
    }
  }

  needs(place: number): readonly number[] {
    return this.#before[place] ?? [];
  }

  needed_by(place: number): readonly number[] {
    return this.#behind[place] ?? [];
  }

  /** The place that a key leads to; the same one where there is nothing in that direction. */
  go(from: number, direction: Direction): number {
    switch (direction) {
      case 'right':
        return this.#nearest(from, this.needed_by(from));
      case 'left':
        return this.#nearest(from, this.needs(from));
      case 'up':
        return this.#in_column(from, -1);
      case 'down':
        return this.#in_column(from, 1);
      case 'first':
        return this.#edge(Math.min(...this.#columns.keys()), from);
      case 'last':
        return this.#edge(Math.max(...this.#columns.keys()), from);
    }
  }

  #nearest(from: number, candidates: readonly number[]): number {
    const middle = this.#middle(from);
    let best = from;
    let distance = Infinity;
    for (const place of candidates) {
      const found = Math.abs(this.#middle(place) - middle);
      if (found < distance) [best, distance] = [place, found];
    }
    return best;
  }

  #middle(place: number): number {
    const item = this.#scene.items[place]!;
    return item.y + item.height / 2;
  }

  #in_column(from: number, by: number): number {
    const column = this.#columns.get(this.#scene.items[from]!.layer) ?? [];
    return column[column.indexOf(from) + by] ?? from;
  }

  #edge(layer: number, otherwise: number): number {
    return this.#columns.get(layer)?.[0] ?? otherwise;
  }
}

/** Places whose name has the words of a query in it, in the order of the definition. */
export function search(scene: Scene, query: string): number[] {
  const wanted = query.trim().toLowerCase();
  if (wanted === '') return [];
  const found: number[] = [];
  scene.items.forEach((item, place) => {
    if (item.name.toLowerCase().includes(wanted)) found.push(place);
  });
  return found;
}
