// Where faults stand in a text, as pieces that can be drawn over it. Pure. Lines and columns are counted from 1, in characters
// (code points); the end is not part of it.
import type { Fault } from '../api/types';

export type Piece = { text: string; faulty: boolean };

/** Every line of the text cut into what is faulty and what is not. */
export function pieces_of(text: string, faults: readonly Fault[]): Piece[][] {
  return text.split('\n').map((line, index) => cut([...line], index + 1, faults));
}

function cut(signs: readonly string[], line: number, faults: readonly Fault[]): Piece[] {
  const faulty = new Array<boolean>(signs.length).fill(false);
  for (const fault of faults) {
    if (line < fault.line || line > fault.end_line) continue;
    const from = line === fault.line ? fault.column - 1 : 0;
    let to = line === fault.end_line ? fault.end_column - 1 : signs.length;
    // A fault of no width, or behind the end of its line, is still shown.
    if (line === fault.line && to <= from) to = from + 1;
    for (let i = Math.max(0, Math.min(from, signs.length - 1)); i < Math.min(to, signs.length); i += 1) faulty[i] = true;
  }
  const pieces: Piece[] = [];
  signs.forEach((sign, index) => {
    const last = pieces.at(-1);
    if (last && last.faulty === faulty[index]) last.text += sign;
    else pieces.push({ text: sign, faulty: faulty[index] ?? false });
  });
  return pieces;
}

/** Where a line and a column are in the whole text, for the caret of a field. */
export function offset_of(text: string, line: number, column: number): number {
  const lines = text.split('\n');
  const before = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  const signs = [...(lines[line - 1] ?? '')].slice(0, column - 1).join('');
  return Math.min(text.length, before + signs.length);
}
