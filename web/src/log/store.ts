// The log of one attempt: reads it on, keeps the text of a bounded number of pages, brings others back when they are looked at, and
// searches all of it. Asks through a function, so that it can be tried without a server.

import { Unreachable } from '../api/problem';
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
/** While nobody answers, pauses grow from one of these to the other: a server that comes back is not met by a storm. */
const FIRST_PAUSE_MS = 500;
const LAST_PAUSE_MS = 10_000;
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
  /** Of what is being read on; null while it rests. */
  #reading: AbortController | null = null;
  /** Ends the pause that follows on silence. */
  #hurry: (() => void) | null = null;
  /** Those who wait for more of the log. */
  readonly #waiting = new Set<() => void>();
  #has_answer = false;
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

  /**
   * Reads to the end, and, until the attempt is over, what comes. Ends by itself, by a refusal, by `rest` or by `close`; silence is waited
   * out, and asked through at once if this is called meanwhile.
   */
  async read(): Promise<void> {
    if (this.#stop.signal.aborted) return;
    if (this.#reading !== null) {
      this.#hurry?.();
      return;
    }
    const reading = new AbortController();
    this.#reading = reading;
    const { signal } = reading;
    // At once for the first answer, so that an empty log is known to be so; then only when there is more.
    let [wait, failures] = [0, 0];
    while (!this.is_over && !signal.aborted) {
      try {
        const found = await this.#ask(this.pages.next_offset, PAGE_BYTES, wait, signal);
        if (signal.aborted) break;
        this.#take(found);
        [wait, failures] = [WAIT_SECONDS, 0];
      } catch (error) {
        if (signal.aborted) break;
        this.error = error;
        this.#changed();
        // A refusal stays one.
        if (!(error instanceof Unreachable)) break;
        // Whatever was waited for may have come meanwhile.
        wait = 0;
        await this.#pause(failures++, signal);
      }
    }
    if (this.#reading === reading) this.#reading = null;
  }

  /** Asks for nothing more until `read` is called again, which goes on from here. */
  rest(): void {
    this.#reading?.abort();
    this.#reading = null;
  }

  #pause(failures: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', end);
        if (this.#hurry === end) this.#hurry = null;
        resolve();
      };
      const timer = setTimeout(end, Math.min(LAST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures));
      signal.addEventListener('abort', end);
      this.#hurry = end;
    });
  }

  #take(found: LogPage): void {
    this.is_over = found.is_over;
    this.may_lack_end = found.may_lack_end;
    this.#size = found.size ?? 0;
    this.#has_answer = true;
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
    for (const wake of [...this.#waiting]) wake();
    this.#changed();
  }

  close(): void {
    this.rest();
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
   * Numbers of the lines that have `query` in them, in order, up to a bound. What it has found so far is told page by page, with the share
   * of the log that was looked at; pages are asked for and forgotten again. Goes on for as long as the log does.
   */
  async search(query: string, signal: AbortSignal, tell: (lines: number[], share: number) => void): Promise<void> {
    const wanted = query.toLowerCase();
    const found: number[] = [];
    // The first line that was not looked at to its end, and the offset up to which everything was.
    let [next, until] = [0, 0];
    let failures = 0;
    const share = (): number => {
      const end = Math.max(this.#size, this.pages.next_offset);
      return !this.#has_answer ? 0 : end === 0 ? 1 : until / end;
    };
    while (wanted !== '' && found.length < MOST_FOUND && !signal.aborted) {
      if (until === this.pages.next_offset) {
        if (this.is_over) break;
        tell(found, share());
        await this.#more(signal);
        continue;
      }
      const read = this.pages.next_offset;
      const page = this.pages.page_of(next);
      const entry = this.pages.list[page]!;
      const end = entry.next_offset;
      let lines = this.#kept.get(page);
      if (lines === undefined) {
        try {
          lines = this.pages.lines_of(page, await this.#pieces(page));
        } catch (error) {
          if (!(error instanceof Unreachable)) throw error;
          await this.#pause(failures++, signal);
          continue;
        }
      }
      if (signal.aborted) return;
      for (let place = next - entry.first_line; place < lines.length && found.length < MOST_FOUND; place++) {
        const number = entry.first_line + place;
        if (number > (found.at(-1) ?? -1) && plain(lines[place]!.text).toLowerCase().includes(wanted)) found.push(number);
      }
      // The last line may grow, and is looked at again then; so may its page have grown while it was brought.
      const seen = entry.first_line + lines.length;
      const is_last = seen >= this.pages.lines;
      next = Math.max(0, is_last ? this.pages.lines - 1 : seen);
      until = is_last ? read : end;
      failures = 0;
      tell(found, share());
      // Others get their turn: a page takes some milliseconds.
      await new Promise((resolve) => setTimeout(resolve));
    }
    if (!signal.aborted) tell(found, 1);
  }

  /** Until more was read, or it is known that there is no more. */
  #more(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener('abort', wake);
    });
  }
}
