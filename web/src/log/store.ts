// The log of one attempt: reads it on, keeps the text of a bounded number of pages, brings others back when they are looked at, and
// searches all of it. Asks through a function, so that it can be tried without a server.

import { plain } from './ansi';
import { bytes_of, type Line, PAGE_BYTES, Pages, type Piece } from './pages';

export interface LogPage {
  pieces: Piece[];
  next_offset: number;
  is_over: boolean;
  may_lack_end: boolean;
  /** How long it is by now, as offsets count. */
  size?: number;
}

/** `wait` is in seconds: how long the server may wait for more. */
export type Ask = (offset: number, limit: number, wait: number, signal: AbortSignal) => Promise<LogPage>;

/** About 8 MiB of text. A screen shows one page or two. */
const KEPT_PAGES = 32;
const WAIT_SECONDS = 20;
export const MOST_FOUND = 10_000;

export interface Found {
  line: number;
}

export class LogStore {
  readonly pages = new Pages();
  is_over = false;
  may_lack_end = false;
  error: unknown = null;
  readonly #ask: Ask;
  readonly #changed: () => void;
  readonly #stop = new AbortController();
  #size = 0;
  /** By number of the page; the one that was used longest ago stands first. */
  readonly #kept = new Map<number, Line[]>();
  /** The pieces of the last page, which still grows. */
  #growing: Piece[] = [];
  readonly #asked = new Map<number, Promise<Line[]>>();

  constructor(ask: Ask, changed: () => void) {
    this.#ask = ask;
    this.#changed = changed;
  }

  /** How much of what there is was read. */
  get share(): number {
    return this.#size === 0 ? 1 : Math.min(1, this.pages.next_offset / this.#size);
  }

  get kept(): number {
    return this.#kept.size;
  }

  /** Reads to the end, and, until the attempt is over, what comes. Ends by itself, or by `close`. */
  async read(): Promise<void> {
    // At once for the first answer, so that an empty log is known to be so; then only when there is more.
    let wait = 0;
    while (!this.is_over && !this.#stop.signal.aborted) {
      try {
        this.#take(await this.#ask(this.pages.next_offset, PAGE_BYTES, wait, this.#stop.signal));
        wait = WAIT_SECONDS;
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        this.error = error;
        this.#changed();
        return;
      }
    }
  }

  #take(found: LogPage): void {
    this.is_over = found.is_over;
    this.may_lack_end = found.may_lack_end;
    this.#size = found.size ?? 0;
    this.error = null;
    if (found.pieces.length > 0) {
      const pages = this.pages.list.length;
      const number = this.pages.add(found.pieces, found.next_offset);
      // A line of the page before may have gone on here.
      if (this.pages.list.length > pages) {
        const page = this.pages.list[number - 1];
        if (page !== undefined && page.rest !== '') this.#keep(number - 1, this.pages.lines_of(number - 1, this.#growing));
        this.#growing = [];
      }
      this.#growing.push(...found.pieces);
      this.#keep(number, this.pages.lines_of(number, this.#growing));
    }
    this.#changed();
  }

  close(): void {
    this.#stop.abort();
  }

  /** A line, if its page is here; otherwise it is asked for, and `changed` is called when it has come. */
  line(number: number): Line | undefined {
    const page = this.pages.page_of(number);
    const entry = this.pages.list[page];
    if (entry === undefined || number >= this.pages.lines) return undefined;
    const kept = this.#kept.get(page);
    if (kept === undefined) {
      void this.#load(page).then(this.#changed, () => undefined);
      return undefined;
    }
    this.#kept.delete(page);
    this.#kept.set(page, kept);
    return kept[number - entry.first_line];
  }

  #keep(page: number, lines: Line[]): void {
    this.#kept.delete(page);
    this.#kept.set(page, lines);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= KEPT_PAGES) break;
      this.#kept.delete(oldest);
    }
  }

  #load(page: number): Promise<Line[]> {
    const known = this.#asked.get(page);
    if (known !== undefined) return known;
    const coming = this.#bring(page).finally(() => this.#asked.delete(page));
    this.#asked.set(page, coming);
    return coming;
  }

  async #bring(page: number): Promise<Line[]> {
    const lines = this.pages.lines_of(page, await this.#pieces(page));
    this.#keep(page, lines);
    return lines;
  }

  /** An answer may be shorter than what was asked for, so it is asked until the page is whole. */
  async #pieces(page: number): Promise<Piece[]> {
    const { offset, bytes, next_offset } = this.pages.list[page]!;
    const pieces: Piece[] = [];
    let [at, left] = [offset, bytes];
    while (at < next_offset) {
      const found = await this.#ask(at, Math.max(1, left), 0, this.#stop.signal);
      if (found.next_offset <= at) break;
      pieces.push(...found.pieces);
      at = found.next_offset;
      left = bytes - pieces.reduce((sum, piece) => sum + bytes_of(piece), 0);
    }
    return pieces;
  }

  /**
   * Numbers of the lines that have `query` in them, in order, up to a bound. What it has found so far is told page by page; pages are
   * asked for and forgotten again.
   */
  async search(query: string, signal: AbortSignal, tell: (lines: number[], share: number) => void): Promise<void> {
    const wanted = query.toLowerCase();
    const found: number[] = [];
    if (wanted !== '') {
      for (let page = 0; page < this.pages.list.length && found.length < MOST_FOUND; page++) {
        if (signal.aborted) return;
        const lines = this.#kept.get(page) ?? this.pages.lines_of(page, await this.#pieces(page));
        if (signal.aborted) return;
        const first = this.pages.list[page]!.first_line;
        lines.forEach((line, place) => {
          if (found.length < MOST_FOUND && plain(line.text).toLowerCase().includes(wanted)) found.push(first + place);
        });
        tell(found, (page + 1) / this.pages.list.length);
        // Others get their turn: a page takes some milliseconds.
        await new Promise((resolve) => setTimeout(resolve));
      }
    }
    tell(found, 1);
  }
}
