// The pure parts of the graph: what is in sight, where keys lead, what a collapsed group becomes, what is drawn from afar.
import { describe, expect, it } from 'vitest';
import type { GraphLayout, GraphNode } from '../api/types';
import { Cells } from './cells';
import { deciding_path } from './critical';
import { detail_of, far_paths, MOST_BOXES, worst } from './detail';
import { Paths, search } from './move';
import { is_same, scene_of } from './scene';
import { begin, type Box, centre, farthest, fit, pan, reveal, seen, touches, zoom } from './view';

const node = (step: string, layer: number, row: number, group: string | null = null): GraphNode => ({
  step,
  x: layer * 200,
  y: row * 48,
  width: 100,
  height: 32,
  layer,
  group,
  kind: 'process',
  for_each: false,
});

//   fetch ─┬─ lint ─┐
//          ├─ test ─┼─ pack
//          └─ docs
const LAYOUT: GraphLayout = {
  width: 500,
  height: 200,
  nodes: [node('fetch', 0, 1), node('lint', 1, 0, 'quality'), node('test', 1, 1, 'quality'), node('docs', 1, 2), node('pack', 2, 1)],
  edges: [
    { from: 0, to: 1, points: [[100, 64], [200, 16]] },
    { from: 0, to: 2, points: [[100, 64], [200, 64]] },
    { from: 0, to: 3, points: [[100, 64], [200, 112]] },
    { from: 1, to: 4, points: [[300, 16], [400, 64]] },
    { from: 2, to: 4, points: [[300, 64], [400, 64]] },
  ],
  groups: [{ name: 'quality', x: 190, y: -28, width: 120, height: 118 }],
  critical_path: ['fetch', 'test', 'pack'],
};
const SCREEN = { width: 800, height: 400 };

describe('a view', () => {
  it('shows all of it after fit, and not larger than it was drawn', () => {
    const sight = seen(fit({ x: 0, y: 0, width: 8000, height: 100 }, SCREEN), SCREEN);
    expect(sight.x).toBeLessThanOrEqual(0);
    expect(sight.x + sight.width).toBeGreaterThanOrEqual(8000);
    expect(fit({ x: 0, y: 0, width: 10, height: 10 }, SCREEN).scale).toBe(1);
  });

  it('begins where names can be read, unless there are too many of them', () => {
    const phone = { width: 328, height: 400 };
    const chain = { x: 0, y: 0, width: 1500, height: 60 };
    const view = begin(chain, phone, 7);
    expect(detail_of(7, view.scale)).toBe('near');
    // Its left side, with a little around it, in the middle of the height.
    expect(view.x * view.scale).toBeCloseTo(-16);
    expect((30 - view.y) * view.scale).toBeCloseTo(200);
    expect(begin(chain, phone, 500)).toEqual(fit(chain, phone));
    expect(begin(chain, { width: 1300, height: 400 }, 7)).toEqual(fit(chain, { width: 1300, height: 400 }));
  });

  it('keeps the point under the pointer when it zooms', () => {
    const before = { x: 30, y: 40, scale: 0.5 };
    const after = zoom(before, 1.7, { x: 200, y: 100 }, 0.01);
    expect(after.x + 200 / after.scale).toBeCloseTo(before.x + 200 / before.scale);
    expect(after.y + 100 / after.scale).toBeCloseTo(before.y + 100 / before.scale);
  });

  it('does not go farther than all of it, nor closer than it is of use', () => {
    const least = farthest({ x: 0, y: 0, width: 8000, height: 100 }, SCREEN);
    expect(zoom({ x: 0, y: 0, scale: 0.2 }, 1e-9, { x: 0, y: 0 }, least).scale).toBe(least);
    expect(zoom({ x: 0, y: 0, scale: 0.2 }, 1e9, { x: 0, y: 0 }, least).scale).toBe(3);
  });

  it('moves by the pixels of the screen', () => {
    expect(pan({ x: 0, y: 0, scale: 0.5 }, 10, -20)).toEqual({ x: -20, y: 40, scale: 0.5 });
  });

  it('is left alone by a box that is in sight, and moves as little as it can to one that is not', () => {
    const view = { x: 0, y: 0, scale: 1 };
    expect(reveal(view, { x: 100, y: 100, width: 50, height: 20 }, SCREEN)).toBe(view);
    expect(reveal(view, { x: 900, y: 100, width: 50, height: 20 }, SCREEN)).toEqual({ x: 166, y: 0, scale: 1 });
  });

  it('comes close enough to read when it centres', () => {
    const view = centre({ x: 0, y: 0, scale: 0.01 }, { x: 1000, y: 500, width: 100, height: 30 }, SCREEN);
    expect(view.scale).toBe(0.8);
    expect(view.x + SCREEN.width / 2 / view.scale).toBeCloseTo(1050);
  });
});

describe('cells', () => {
  // Not random: every run tries the same thousand rectangles.
  const chance = ((state) => () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647)(7);

  it('find what looking at all of them finds', () => {
    const boxes: Box[] = Array.from({ length: 3000 }, () => ({
      x: chance() * 20_000,
      y: chance() * 900_000,
      width: 20 + chance() * (chance() < 0.02 ? 15_000 : 200),
      height: 30 + chance() * (chance() < 0.02 ? 400_000 : 40),
    }));
    const cells = new Cells(boxes);
    for (let turn = 0; turn < 200; turn++) {
      const area = { x: chance() * 20_000, y: chance() * 900_000, width: chance() * 4000, height: chance() * 60_000 };
      const expected = boxes.flatMap((box, index) => (touches(box, area) ? [index] : []));
      expect(cells.find(area).sort((a, b) => a - b)).toEqual(expected);
    }
  });

  it('find nothing among none, and nothing outside', () => {
    expect(new Cells([]).find({ x: 0, y: 0, width: 1e6, height: 1e6 })).toEqual([]);
    expect(new Cells([{ x: 0, y: 0, width: 1, height: 1 }]).find({ x: 5000, y: 5000, width: 9, height: 9 })).toEqual([]);
  });
});

describe('a scene', () => {
  it('is of another graph only if that says something else', () => {
    const layout = () => ({ width: 3, nodes: [{ step: 'a', x: 1, group: null }], edges: [] });
    expect(is_same(layout(), layout())).toBe(true);
    expect(is_same(layout(), { ...layout(), width: 4 })).toBe(false);
    expect(is_same(layout(), { ...layout(), nodes: [{ step: 'b', x: 1, group: null }] })).toBe(false);
    expect(is_same(layout(), { ...layout(), nodes: [] })).toBe(false);
    expect(is_same(layout(), { ...layout(), edges: [{}] })).toBe(false);
  });

  it('is the layout where nothing is collapsed', () => {
    const scene = scene_of(LAYOUT, new Set());
    expect(scene.items.map((item) => item.name)).toEqual(['fetch', 'lint', 'test', 'docs', 'pack']);
    expect(scene.lines).toHaveLength(5);
    expect(scene.frames).toHaveLength(1);
  });

  it('has one box for a collapsed group, met once by each that leads to it', () => {
    const scene = scene_of(LAYOUT, new Set(['quality']));
    expect(scene.items.map((item) => [item.name, item.members.length])).toEqual([['fetch', 1], ['quality', 2], ['docs', 1], ['pack', 1]]);
    expect(scene.lines.map((line) => [line.from, line.to])).toEqual([[0, 1], [0, 2], [1, 3]]);
    expect(scene.lines[0]!.points.at(-1)).toEqual([190, 31]);
    expect(scene.frames).toEqual([]);
    expect(scene.shown_by).toEqual([0, 1, 1, 2, 3]);
  });
});

describe('keys', () => {
  const paths = new Paths(scene_of(LAYOUT, new Set()));
  it.each([
    [0, 'right', 2],
    [2, 'right', 4],
    [4, 'left', 2],
    [1, 'up', 1],
    [1, 'down', 2],
    [3, 'right', 3],
    [3, 'first', 0],
    [0, 'last', 4],
  ] as const)('lead from %i %s to %i', (from, direction, to) => {
    expect(paths.go(from, direction)).toBe(to);
  });

  it('find steps by a part of their name, whatever its case', () => {
    expect(search(scene_of(LAYOUT, new Set()), ' ES')).toEqual([2]);
    expect(search(scene_of(LAYOUT, new Set()), '  ')).toEqual([]);
  });
});

describe('detail', () => {
  it('is what can be read, and what can be drawn', () => {
    expect(detail_of(10, 1)).toBe('near');
    expect(detail_of(10, 0.3)).toBe('middle');
    expect(detail_of(10, 0.01)).toBe('far');
    expect(detail_of(MOST_BOXES + 1, 1)).toBe('far');
  });

  it('shows the worst of many', () => {
    expect(worst(['succeeded', 'failed', 'running'])).toBe('failed');
    expect(worst(['succeeded', 'running'])).toBe('running');
    expect(worst(['succeeded', 'pending'])).toBe('pending');
    expect(worst(['succeeded', 'succeeded'])).toBe('succeeded');
    expect(worst([])).toBe('pending');
  });

  it('draws those on one spot once, as the worst of them, and a failure so large that it can be seen', () => {
    const { items } = scene_of(LAYOUT, new Set());
    const status_of = (item: { name: string }) => (item.name === 'test' ? 'failed' : 'succeeded');
    const paths = far_paths(items, [0, 1, 2, 3, 4], status_of, { x: 0, y: 0, scale: 0.001 });
    expect([...paths.keys()]).toEqual(['failed']);
    expect(paths.get('failed')).toContain('l3.5 3.5');
    const near = far_paths(items, [0, 1, 2, 3, 4], status_of, { x: 0, y: 0, scale: 0.1 });
    expect(near.get('succeeded')!.split('M')).toHaveLength(5);
    expect(near.get('failed')!.split('M')).toHaveLength(2);
  });
});

describe('the deciding path', () => {
  it('goes back along what ended last', () => {
    const ends: Record<string, number> = { fetch: 10, lint: 50, test: 30, docs: 40, pack: 60 };
    const times = (step: string) => ({ started_at: 0, finished_at: ends[step] ?? null });
    expect(deciding_path(LAYOUT, times)).toEqual(['fetch', 'lint', 'pack']);
    expect(deciding_path(LAYOUT, () => undefined)).toEqual([]);
  });
});
