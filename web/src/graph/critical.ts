// The way that decided how long a run took: from the step that ended last back along the needs that ended last. Of a run that has no
// times yet the plan's own critical path is shown instead. Pure.

import type { GraphLayout } from '../api/types';

export interface Times {
  started_at: number | null;
  finished_at: number | null;
}

/** Names in the order of time; empty before anything has ended. */
export function deciding_path(layout: GraphLayout, times_of: (step: string) => Times | undefined): string[] {
  const needs: number[][] = layout.nodes.map(() => []);
  for (const edge of layout.edges) needs[edge.to]!.push(edge.from);
  const ended = layout.nodes.map((node) => times_of(node.step)?.finished_at ?? null);
  let at = latest(layout.nodes.map((_, index) => index), ended);
  const path: string[] = [];
  while (at !== null) {
    path.push(layout.nodes[at]!.step);
    at = latest(needs[at]!, ended);
  }
  return path.reverse();
}

function latest(candidates: readonly number[], ended: readonly (number | null)[]): number | null {
  let best: number | null = null;
  for (const index of candidates) {
    const end = ended[index] ?? null;
    if (end !== null && (best === null || end > ended[best]!)) best = index;
  }
  return best;
}
