// A sentence of the server as it is shown: what stands between backticks is code, and moments are those of whoever reads. Pure.

export type Piece = { text: string; kind: 'text' | 'code' | 'moment' };

const SPECIAL = /`([^`]+)`|(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z)/g;

export function pieces_of(sentence: string): Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (const found of sentence.matchAll(SPECIAL)) {
    if (found.index > from) pieces.push({ text: sentence.slice(from, found.index), kind: 'text' });
    pieces.push(found[1] !== undefined ? { text: found[1], kind: 'code' } : { text: found[2]!, kind: 'moment' });
    from = found.index + found[0].length;
  }
  if (from < sentence.length) pieces.push({ text: sentence.slice(from), kind: 'text' });
  return pieces;
}
