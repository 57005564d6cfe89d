// Which lines, or rows, a scrolled box shows. A browser cannot make a box as high as millions of lines need, so beyond a bound the bar stands for a
// share of the log, and the wheel and keys move by lines. Pure.

export const ROW = 18;
const HIGHEST = 8_000_000;

export interface Scroll {
  /** Of the whole content. */
  height: number;
  is_scaled: boolean;
}

export function scroll_of(lines: number, row = ROW): Scroll {
  const height = lines * row;
  return height <= HIGHEST ? { height, is_scaled: false } : { height: HIGHEST, is_scaled: true };
}

/** The first line that is shown, with its fraction. */
export function top_line(scroll_top: number, lines: number, room: number, row = ROW): number {
  const { height, is_scaled } = scroll_of(lines, row);
  if (!is_scaled) return scroll_top / row;
  const share = Math.min(1, Math.max(0, scroll_top / Math.max(1, height - room)));
  return share * Math.max(0, lines - room / row);
}

/** The inverse. */
export function scroll_top_of(line: number, lines: number, room: number, row = ROW): number {
  const { height, is_scaled } = scroll_of(lines, row);
  const most = Math.max(0, height - room);
  if (!is_scaled) return Math.min(most, Math.max(0, line * row));
  return Math.min(1, Math.max(0, line / Math.max(1, lines - room / row))) * most;
}
