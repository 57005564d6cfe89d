// Puts a scene on an SVG: only what is in sight and a margin around it, and of that only what has changed since. The paper is moved by the
// compositor while somebody pans; it is drawn again when its edge would be seen. Text goes in as text, never as markup.

import { shape_of } from '../look/states';
import type { TaskStatus } from '../look/states';
import { Cells } from './cells';
import { type Detail, detail_of, far_paths, MOST_LINES } from './detail';
import type { Item, Line, Scene } from './scene';
import { contains, grown, seen, type Size, type View } from './view';

/** How an item is just now, as it is shown. */
export interface Shown {
  status: TaskStatus | null;
  /** Under the name: the node, the attempt. */
  note: string;
  /** Parts of a bar for those that stand for many, by state. */
  parts: { status: string; share: number }[];
  /** `12/40` under the name, before the note. */
  count: string;
}

export interface Sight {
  scene: Scene;
  shown: (item: Item) => Shown;
  /** The same in short, for thousands at once. */
  status: (item: Item) => TaskStatus | null;
  selected: number;
  focused: number;
  found: ReadonlySet<number>;
  /** Names on the critical path, in their order; empty to show none. */
  critical: readonly string[];
}

/** Pixels around the screen that are drawn too. */
const MARGIN = 192;
const LETTER = 7.25;
const SVG = 'http://www.w3.org/2000/svg';

interface Box {
  group: SVGGElement;
  key: string;
}

export class Drawing {
  readonly #paper: SVGSVGElement;
  readonly #far: SVGGElement;
  readonly #world: SVGGElement;
  readonly #frames: SVGGElement;
  readonly #boxes: SVGGElement;
  readonly #drawn = new Map<number, Box>();
  readonly #line: SVGPathElement;
  readonly #critical_line: SVGPathElement;
  /** By line: its path, once it was drawn. */
  #curves: string[] = [];
  #sight: Sight | null = null;
  #items: Cells | null = null;
  #line_cells: Cells | null = null;
  #scene: Scene | null = null;
  #critical = new Set<number>();
  #critical_lines = new Set<number>();
  /** The view of the last drawing. */
  #base: View | null = null;
  #screen: Size = { width: 0, height: 0 };
  #detail: Detail = 'near';

  constructor(paper: SVGSVGElement) {
    this.#paper = paper;
    this.#far = add(paper, 'g', 'far');
    this.#world = add(paper, 'g', 'world');
    this.#frames = add(this.#world, 'g', 'frames');
    const lines = add(this.#world, 'g', 'lines');
    this.#line = add(lines, 'path', 'line');
    this.#critical_line = add(lines, 'path', 'line critical');
    this.#boxes = add(this.#world, 'g', 'boxes');
    // The browser's own `style` is allowed by the page's policy; an attribute of that name is not.
    paper.style.left = `${-MARGIN}px`;
    paper.style.top = `${-MARGIN}px`;
  }

  get detail(): Detail {
    return this.#detail;
  }

  /** Another scene, or another state of it. */
  show(sight: Sight): void {
    if (sight.scene !== this.#scene) {
      this.#scene = sight.scene;
      this.#curves = [];
      this.#items = new Cells(sight.scene.items);
      this.#line_cells = new Cells(sight.scene.lines.map((line) => line.box));
      this.#clear();
    }
    const is_other_path = sight.critical !== this.#sight?.critical;
    this.#sight = sight;
    if (is_other_path || this.#drawn.size === 0) this.#mark_path();
    if (this.#base !== null) this.#draw(this.#base);
  }

  /** Looks elsewhere: moves the paper, and draws where it does not reach. */
  look(view: View, screen: Size): void {
    const is_other_size = screen.width !== this.#screen.width || screen.height !== this.#screen.height;
    if (is_other_size) {
      this.#screen = screen;
      this.#paper.setAttribute('width', String(screen.width + 2 * MARGIN));
      this.#paper.setAttribute('height', String(screen.height + 2 * MARGIN));
    }
    const base = this.#base;
    const reaches =
      base !== null &&
      base.scale === view.scale &&
      (contains(grown(seen(base, screen), MARGIN / base.scale), seen(view, screen)) || this.#is_whole(base, view));
    if (reaches && !is_other_size) {
      this.#move(view);
      return;
    }
    this.#base = view;
    this.#move(view);
    this.#draw(view);
  }

  /** The item at a point of the screen; from afar the nearest within a few pixels. */
  at(point: { x: number; y: number }, view: View): number | null {
    const reach = (this.#detail === 'far' ? 8 : 1) / view.scale;
    const [x, y] = [view.x + point.x / view.scale, view.y + point.y / view.scale];
    const near = this.#items?.find({ x: x - reach, y: y - reach, width: 2 * reach, height: 2 * reach }) ?? [];
    let [best, distance]: [number | null, number] = [null, Infinity];
    for (const place of near) {
      const item = this.#scene!.items[place]!;
      const found = Math.hypot(item.x + item.width / 2 - x, item.y + item.height / 2 - y);
      if (found < distance) [best, distance] = [place, found];
    }
    return best;
  }

  /** All of the graph is on the paper as it is: nothing comes into sight. */
  #is_whole(base: View, view: View): boolean {
    const scene = this.#scene;
    if (scene === null) return false;
    const paper = grown(seen(base, this.#screen), MARGIN / base.scale);
    const isolated = Math.abs(view.x - base.x) * base.scale < 4000 && Math.abs(view.y - base.y) * base.scale < 4000;
    return isolated && contains(paper, { x: 0, y: 0, width: scene.width, height: scene.height });
  }

  #move(view: View): void {
    const base = this.#base!;
    const [x, y] = [(base.x - view.x) * base.scale, (base.y - view.y) * base.scale];
    this.#paper.style.transform = `translate3d(${x}px, ${y}px, 0)`;
  }

  #clear(): void {
    for (const { group } of this.#drawn.values()) group.remove();
    this.#line.removeAttribute('d');
    this.#critical_line.removeAttribute('d');
    this.#drawn.clear();
    this.#frames.replaceChildren();
  }

  #mark_path(): void {
    const { scene, critical } = this.#sight!;
    const places = critical.map((name) => scene.places.get(name)).filter((place) => place !== undefined);
    this.#critical = new Set(places);
    const pairs = new Set(places.slice(1).map((to, at) => places[at]! * scene.items.length + to));
    this.#critical_lines.clear();
    scene.lines.forEach((line, index) => {
      if (pairs.has(line.from * scene.items.length + line.to)) this.#critical_lines.add(index);
    });
  }

  #draw(view: View): void {
    const sight = this.#sight;
    if (sight === null || this.#screen.width === 0) return;
    const sight_box = seen(view, this.#screen);
    this.#detail = detail_of(this.#items!.find(sight_box).length, view.scale);
    const area = grown(sight_box, MARGIN / view.scale);
    const places = this.#items!.find(area);
    const lines = this.#line_cells!.find(area);
    this.#paper.dataset.detail = this.#detail;
    if (this.#detail === 'far') {
      this.#clear();
      this.#draw_far(view, places, lines);
      return;
    }
    this.#far.replaceChildren();
    this.#world.setAttribute('transform', `translate(${MARGIN} ${MARGIN}) scale(${view.scale}) translate(${-view.x} ${-view.y})`);
    this.#draw_frames();
    this.#draw_lines(lines);
    this.#draw_boxes(places);
  }

  #draw_far(view: View, places: number[], lines: number[]): void {
    const { scene, status, selected, focused, found } = this.#sight!;
    const base = { x: view.x - MARGIN / view.scale, y: view.y - MARGIN / view.scale, scale: view.scale };
    const parts: SVGElement[] = [];
    const put = (name: string, d: string): void => {
      if (d === '') return;
      const path = document.createElementNS(SVG, 'path');
      path.setAttribute('class', name);
      path.setAttribute('d', d);
      parts.push(path);
    };
    if (lines.length <= MOST_LINES) put('line', lines.map((index) => far_line(scene.lines[index]!, base)).join(''));
    if (this.#critical_lines.size > 0) {
      put('line critical', [...this.#critical_lines].map((index) => far_line(scene.lines[index]!, base)).join(''));
    }
    const paths = far_paths(scene.items, places, (item) => status(item) ?? 'pending', base);
    for (const [state, d] of paths) put(`spot tone-${shape_of(state).tone} is-${state}`, d);
    const rings = [...found, ...(selected >= 0 ? [selected] : []), ...(focused >= 0 ? [focused] : [])];
    for (const place of rings.slice(0, 400)) {
      const item = scene.items[place];
      if (item === undefined) continue;
      const ring = document.createElementNS(SVG, 'circle');
      ring.setAttribute('class', place === focused || place === selected ? 'ring here' : 'ring');
      ring.setAttribute('cx', String((item.x + item.width / 2 - base.x) * base.scale));
      ring.setAttribute('cy', String((item.y + item.height / 2 - base.y) * base.scale));
      ring.setAttribute('r', '7');
      parts.push(ring);
    }
    this.#far.replaceChildren(...parts);
  }

  #draw_frames(): void {
    const frames = this.#scene!.frames;
    if (this.#frames.childElementCount === frames.length) return;
    this.#frames.replaceChildren();
    for (const frame of frames) {
      const group = add(this.#frames, 'g', 'frame');
      group.dataset.group = frame.name;
      const rect = add(group, 'rect', '');
      set(rect, { x: frame.x, y: frame.y, width: frame.width, height: frame.height, rx: 8 });
      const text = add(group, 'text', 'group-name');
      set(text, { x: frame.x + 10, y: frame.y + 19 });
      text.textContent = `\u25be ${short(frame.name, frame.width - 20)}`;
    }
  }

  /** All of them are two paths: an element for each would cost more than what it shows. */
  #draw_lines(lines: number[]): void {
    const wanted = lines.map((index) => (this.#curves[index] ??= curve(this.#scene!.lines[index]!))).join('');
    const critical = [...this.#critical_lines].map((index) => (this.#curves[index] ??= curve(this.#scene!.lines[index]!))).join('');
    this.#line.setAttribute('d', wanted);
    this.#critical_line.setAttribute('d', critical);
  }

  #draw_boxes(places: number[]): void {
    const wanted = new Set(places);
    for (const [place, box] of this.#drawn) {
      if (wanted.has(place)) continue;
      box.group.remove();
      this.#drawn.delete(place);
    }
    const { scene, shown, selected, focused, found } = this.#sight!;
    for (const place of places) {
      const item = scene.items[place]!;
      const now = shown(item);
      const flags = `${place === selected ? 's' : ''}${place === focused ? 'f' : ''}${found.has(place) ? 'm' : ''}${this.#critical.has(place) ? 'c' : ''}`;
      const parts = now.parts.map((part) => `${part.status}${part.share.toFixed(3)}`).join();
      const key = `${this.#detail}|${now.status}|${now.note}|${now.count}|${parts}|${flags}`;
      const known = this.#drawn.get(place);
      if (known?.key === key) continue;
      const group = known?.group ?? add(this.#boxes, 'g', '');
      if (known === undefined) {
        group.dataset.place = String(place);
        group.setAttribute('transform', `translate(${item.x} ${item.y})`);
      }
      this.#draw_box(group, item, now, place);
      this.#drawn.set(place, { group, key });
    }
  }

  #draw_box(group: SVGGElement, item: Item, now: Shown, place: number): void {
    const { selected, focused, found } = this.#sight!;
    const shape = now.status === null ? null : shape_of(now.status);
    const classes = ['box', shape === null ? 'plain' : `tone-${shape.tone} is-${now.status}`];
    if (item.is_group) classes.push('of-group');
    if (item.is_for_each) classes.push('of-many');
    if (place === selected) classes.push('selected');
    if (place === focused) classes.push('focused');
    if (found.has(place)) classes.push('found');
    if (this.#critical.has(place)) classes.push('critical');
    group.setAttribute('class', classes.join(' '));
    group.replaceChildren();
    const is_near = this.#detail === 'near';
    if (is_near) {
      const title = add(group, 'title', '');
      title.textContent = [item.name, now.status, now.count, now.note].filter(Boolean).join(' · ');
    }
    // What stands for many looks like a pile.
    if (item.is_for_each || item.is_group) set(add(group, 'rect', 'pile'), { x: 4, y: 4, width: item.width, height: item.height, rx: 6 });
    set(add(group, 'rect', 'card'), { width: item.width, height: item.height, rx: 6 });
    if (shape !== null) {
      const size = is_near ? 0.875 : Math.min(1.8, (item.height - 4) / 16);
      const mark = add(group, 'g', shape.dashed ? 'mark dashed' : 'mark');
      mark.setAttribute('transform', `translate(${is_near ? 5 : 3} ${(item.height - 16 * size) / 2}) scale(${size})`);
      add(mark, 'path', shape.filled ? 'filled' : 'outline').setAttribute('d', shape.outline);
      if (shape.sign !== '') add(mark, 'path', shape.filled ? 'cut' : 'sign').setAttribute('d', shape.sign);
    }
    if (now.parts.length > 0) {
      let from = 6;
      const width = item.width - 12;
      for (const part of now.parts) {
        const bar = add(group, 'rect', `part tone-${shape_of(part.status).tone} is-${part.status}`);
        set(bar, { x: from, y: item.height - 6, width: Math.max(0, part.share * width), height: 3.5 });
        from += part.share * width;
      }
    }
    if (!is_near) return;
    const left = shape === null ? 12 : 22;
    const room = item.width - left - (shape === null ? 8 : 1);
    const name = add(group, 'text', 'name');
    set(name, { x: left, y: item.height / 2 + (now.parts.length > 0 ? 1.5 : 4.5) });
    name.textContent = short(item.is_group ? `\u25b8 ${item.name}` : item.name, room);
    const below = [now.count, now.note].filter(Boolean).join(' \u00b7 ');
    if (below !== '') {
      const note = add(group, 'text', 'note');
      set(note, { x: 2, y: item.height + (item.is_for_each || item.is_group ? 13.5 : 11) });
      note.textContent = short(below, item.width * 1.2, 5.4);
    }
  }
}

function far_line(line: Line, base: View): string {
  const [first, last] = [line.points[0]!, line.points[line.points.length - 1]!];
  const x = (value: number): number => Math.round((value - base.x) * base.scale);
  const y = (value: number): number => Math.round((value - base.y) * base.scale);
  return `M${x(first[0])} ${y(first[1])}L${x(last[0])} ${y(last[1])}`;
}

/** From point to point, leaving and arriving level. */
function curve(line: Line): string {
  const [first, ...rest] = line.points;
  let d = `M${first![0]} ${first![1]}`;
  let [x, y] = first!;
  for (const [to_x, to_y] of rest) {
    const middle = (x + to_x) / 2;
    d += y === to_y ? `H${to_x}` : `C${middle} ${y} ${middle} ${to_y} ${to_x} ${to_y}`;
    [x, y] = [to_x, to_y];
  }
  return d;
}

function short(text: string, room: number, letter = LETTER): string {
  const most = Math.max(1, Math.floor(room / letter));
  const letters = [...text];
  return letters.length <= most ? text : `${letters.slice(0, Math.max(0, most - 1)).join('')}\u2026`;
}

function add<K extends keyof SVGElementTagNameMap>(parent: Element, name: K, of: string): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, name);
  if (of !== '') element.setAttribute('class', of);
  parent.append(element);
  return element;
}

function set(element: Element, values: Record<string, number>): void {
  for (const [name, value] of Object.entries(values)) element.setAttribute(name, String(value));
}
