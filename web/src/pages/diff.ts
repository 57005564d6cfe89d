// What changed between two texts, by lines: the shortest way (Myers), and around it a few lines that stayed. Pure.

export type DiffLine = { kind: 'same' | 'added' | 'removed'; text: string; old: number | null; now: number | null };
export type DiffPart = { kind: 'lines'; lines: DiffLine[] } | { kind: 'gap'; count: number };

/** Beyond so many changes the shortest way costs too much: then all of the old goes and all of the new comes. */
const MOST_CHANGES = 1_000;

export function diff(before: string, after: string): DiffLine[] {
  const [a, b] = [lines_of(before), lines_of(after)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;

  const lines: DiffLine[] = [];
  let old = 0;
  let now = 0;
  const put = (kind: DiffLine['kind']) => {
    const text = (kind === 'added' ? b[now] : a[old]) ?? '';
    if (kind !== 'added') old += 1;
    if (kind !== 'removed') now += 1;
    lines.push({ kind, text, old: kind === 'added' ? null : old, now: kind === 'removed' ? null : now });
  };
  for (let i = 0; i < start; i += 1) put('same');
  for (const kind of shortest(a.slice(start, a.length - end), b.slice(start, b.length - end))) put(kind);
  for (let i = 0; i < end; i += 1) put('same');
  return lines;
}

function lines_of(text: string): string[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

function shortest(a: readonly string[], b: readonly string[]): DiffLine['kind'][] {
  const most = Math.min(a.length + b.length, MOST_CHANGES);
  // Furthest x on each diagonal, kept for every number of changes to walk back along it.
  const trace: Map<number, number>[] = [];
  let furthest = new Map<number, number>([[1, 0]]);
  for (let changes = 0; changes <= most; changes += 1) {
    trace.push(furthest);
    const next = new Map(furthest);
    for (let k = -changes; k <= changes; k += 2) {
      const down = k === -changes || (k !== changes && (next.get(k - 1) ?? -1) < (next.get(k + 1) ?? -1));
      let x = down ? (next.get(k + 1) ?? 0) : (next.get(k - 1) ?? 0) + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) {
        x += 1;
        y += 1;
      }
      next.set(k, x);
      if (x >= a.length && y >= b.length) return back(trace, changes, a.length, b.length);
    }
    furthest = next;
  }
  return [...a.map(() => 'removed' as const), ...b.map(() => 'added' as const)];
}

function back(trace: Map<number, number>[], changes: number, width: number, height: number): DiffLine['kind'][] {
  const kinds: DiffLine['kind'][] = [];
  let [x, y] = [width, height];
  for (let d = changes; d > 0; d -= 1) {
    const furthest = trace[d] ?? new Map<number, number>();
    const k = x - y;
    const down = k === -d || (k !== d && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1));
    const from = down ? k + 1 : k - 1;
    const start = furthest.get(from) ?? 0;
    while (x > start && y > start - from) {
      kinds.push('same');
      x -= 1;
      y -= 1;
    }
    kinds.push(down ? 'added' : 'removed');
    x = start;
    y = start - from;
  }
  while (x > 0) {
    kinds.push('same');
    x -= 1;
  }
  return kinds.reverse();
}

/** Leaves out what stayed the same, but for `around` lines beside each change. */
export function fold(lines: readonly DiffLine[], around = 3): DiffPart[] {
  const near = lines.map((_, index) =>
    lines.slice(Math.max(0, index - around), index + around + 1).some((line) => line.kind !== 'same'),
  );
  const parts: DiffPart[] = [];
  lines.forEach((line, index) => {
    const last = parts.at(-1);
    if (near[index]) {
      if (last?.kind === 'lines') last.lines.push(line);
      else parts.push({ kind: 'lines', lines: [line] });
    } else if (last?.kind === 'gap') last.count += 1;
    else parts.push({ kind: 'gap', count: 1 });
  });
  return parts;
}
