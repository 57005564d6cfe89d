// Lines of a log as pages of bytes hold them. A log is read from its beginning to its end once, and of each page only this is kept: where it
// begins, how many bytes it has, which lines begin in it, and in which style. Its text can be asked for again. Pure.
//
//   page 0            page 1               page 2
//   line 0 | line 1 … | … line 1 | line 2  | line 3 …      a line belongs to the page in which it begins;
//                     └ kept with page 0 as `rest`         what follows it elsewhere is kept with it

import { PLAIN, type Style, style_after } from './ansi';

export interface Piece {
  time: string;
  stream: string;
  text: string;
  hex?: string | null;
}

export interface Line {
  text: string;
  stream: string;
  time: string;
  /** In which it begins. */
  style: Style;
  /** There is more of it than is shown. */
  is_cut: boolean;
}

export interface Page {
  /** Where the server is asked for it. */
  offset: number;
  /** What was printed, without what the server keeps around it: asked for by this number, the same pieces come. */
  bytes: number;
  next_offset: number;
  /** Number of the first line that begins in it, from 0 on. */
  first_line: number;
  lines: number;
  style: Style;
  /** Its beginning belongs to a line of a page before, of this stream. */
  goes_on: string | null;
  /** What belongs to its last line and stands in later pages. */
  rest: string;
}

/** A line is shown up to here: nobody reads on, and a browser cannot draw it. */
export const LONGEST = 16 * 1024;
/** What comes later is put to the page before until this: otherwise every poll of a slow log would make one. */
export const PAGE_BYTES = 256 * 1024;

export function bytes_of(piece: Piece): number {
  if (piece.hex != null) return piece.hex.length / 2;
  let bytes = 0;
  for (let at = 0; at < piece.text.length; at++) {
    const code = piece.text.charCodeAt(at);
    if (code < 0x80) bytes += 1;
    else if (code < 0x800) bytes += 2;
    else if (code >= 0xd800 && code <= 0xdbff) {
      bytes += 4;
      at++;
    } else bytes += 3;
  }
  return bytes;
}

interface Cut {
  /** What belongs to the line that was open before. */
  head: string;
  lines: { text: string; stream: string; time: string }[];
  /** Stream of the line that is open at the end. */
  open: string | null;
}

/** A line ends at its newline, and where another stream speaks. */
export function cut(pieces: readonly Piece[], open: string | null): Cut {
  const lines: Cut['lines'] = [];
  let head = '';
  let stream = open;
  let is_head = open !== null;
  for (const piece of pieces) {
    if (piece.text === '') continue;
    if (stream !== null && stream !== piece.stream) [stream, is_head] = [null, false];
    let from = 0;
    while (from < piece.text.length) {
      const newline = piece.text.indexOf('\n', from);
      const part = piece.text.slice(from, newline === -1 ? undefined : newline);
      if (is_head) head += part;
      else if (stream !== null) lines[lines.length - 1]!.text += part;
      else lines.push({ text: part, stream: piece.stream, time: piece.time });
      if (newline === -1) {
        stream = piece.stream;
        break;
      }
      [stream, is_head, from] = [null, false, newline + 1];
    }
  }
  return { head, lines, open: stream };
}

/** The pages of one log, as far as it was read. */
export class Pages {
  readonly list: Page[] = [];
  #open: string | null = null;
  #style: Style = PLAIN;
  /** The page in which the open line began. */
  #open_in = -1;

  get lines(): number {
    const last = this.list.at(-1);
    return last === undefined ? 0 : last.first_line + last.lines;
  }

  get next_offset(): number {
    return this.list.at(-1)?.next_offset ?? 0;
  }

  get bytes(): number {
    return this.list.reduce((sum, page) => sum + page.bytes, 0);
  }

  /** Takes what was read from `next_offset` on. Gives the number of the page that has it now. */
  add(pieces: readonly Piece[], next_offset: number): number {
    const bytes = pieces.reduce((sum, piece) => sum + bytes_of(piece), 0);
    const found = cut(pieces, this.#open);
    const last = this.list.at(-1);
    const joins = last !== undefined && last.bytes + bytes <= PAGE_BYTES;
    const offset = this.next_offset;
    if (this.#open !== null && this.#open_in >= 0) {
      const owner = this.list[this.#open_in]!;
      const is_elsewhere = !joins || this.#open_in !== this.list.length - 1;
      if (is_elsewhere && owner.rest.length < LONGEST) owner.rest = (owner.rest + found.head).slice(0, LONGEST);
    }
    const style = this.#style;
    this.#style = style_after(found.head, this.#style);
    for (const line of found.lines) this.#style = style_after(line.text, this.#style);
    if (joins) {
      last.bytes += bytes;
      last.next_offset = next_offset;
      last.lines += found.lines.length;
    } else {
      const first_line = this.lines;
      const lines = found.lines.length;
      this.list.push({ offset, bytes, next_offset, first_line, lines, style, goes_on: this.#open, rest: '' });
    }
    if (found.lines.length > 0) this.#open_in = this.list.length - 1;
    this.#open = found.open;
    return this.list.length - 1;
  }

  /** The page in which a line begins. */
  page_of(line: number): number {
    let [low, high] = [0, this.list.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.list[middle]!.first_line <= line) low = middle;
      else high = middle - 1;
    }
    // Pages in which no line begins stand behind the one that has it.
    while (low > 0 && this.list[low]!.lines === 0) low--;
    return low;
  }

  /** The lines that begin in a page, from the pieces that the server gave for it. */
  lines_of(number: number, pieces: readonly Piece[]): Line[] {
    const page = this.list[number]!;
    const found = cut(pieces, page.goes_on);
    let style = style_after(found.head, page.style);
    return found.lines.map((line, place) => {
      const is_last = place === found.lines.length - 1;
      const whole = is_last ? line.text + page.rest : line.text;
      const start = style;
      style = style_after(line.text, style);
      const is_cut = whole.length > LONGEST;
      return { text: is_cut ? whole.slice(0, LONGEST) : whole, stream: line.stream, time: line.time, style: start, is_cut };
    });
  }
}
