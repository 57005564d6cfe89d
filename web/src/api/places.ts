// How far each subscription of the stream is. Pure: what to ask for, and what an event's id says.
// The id of an event is the place of every subscription behind it, in the order of the query: `12.0.7~3^5`.

export type Places = {
  runs: { run: string; after: number }[];
  nodes: number | null;
  pools: number | null;
};

/** Which subscription an event belongs to. */
export type Source = { of: 'run'; run: string } | { of: 'nodes' } | { of: 'pools' };

export function query_of(places: Places, changes: boolean): string {
  const parts = new URLSearchParams();
  if (places.runs.length > 0) parts.set('runs', places.runs.map(({ run, after }) => `${run}:${after}`).join(','));
  if (places.nodes !== null) parts.set('nodes', String(places.nodes));
  if (places.pools !== null) parts.set('pools', String(places.pools));
  if (changes) parts.set('changes', '1');
  return parts.toString();
}

export function places_of(id: string, asked: Places): Places | null {
  const match = /^([\d.]*)(?:~(\d+))?(?:\^(\d+))?$/.exec(id);
  if (!match) return null;
  const numbers = (match[1] ?? '').split('.').filter((part) => part !== '').map(Number);
  if (numbers.length !== asked.runs.length) return null;
  const [nodes, pools] = [match[2], match[3]];
  if ((nodes === undefined) !== (asked.nodes === null) || (pools === undefined) !== (asked.pools === null)) return null;
  return {
    runs: asked.runs.map(({ run }, index) => ({ run, after: numbers[index] ?? 0 })),
    nodes: nodes === undefined ? null : Number(nodes),
    pools: pools === undefined ? null : Number(pools),
  };
}

/** What went on between two places: the one subscription whose number rose, and to what. */
export function moved(before: Places, behind: Places): { source: Source; seq: number } | null {
  for (const [index, { run, after }] of behind.runs.entries()) {
    if (after > (before.runs[index]?.after ?? 0)) return { source: { of: 'run', run }, seq: after };
  }
  if (behind.nodes !== null && behind.nodes > (before.nodes ?? 0)) return { source: { of: 'nodes' }, seq: behind.nodes };
  if (behind.pools !== null && behind.pools > (before.pools ?? 0)) return { source: { of: 'pools' }, seq: behind.pools };
  return null;
}
