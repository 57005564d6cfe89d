// One run as the page shows it: an answer of the server, and the events behind it folded in, a frame's worth at a time.
import { get, type Problem } from '../api/client';
import { line, stream } from '../api/live.svelte';
import type { StreamEvent } from '../api/stream';
import { type Run, RunFold } from './fold';

/** Why a task waits is known only to whoever asks: asked for again this long after something moved. */
const ASK_AGAIN_MS = 2_000;
/** What others do may change why a task of this run waits. A busy store changes all the time: so this is asked for less often. */
const OTHERS_MS = 4_000;
/** A busy run may have so many news that showing them is all the page does: so it rests, this many times as long as showing them took. */
const REST = 2;
/** Of a larger run nobody is told why each of its tasks waits; a task that is looked at asks for its own cause. */
const MOST_TASKS = 1_000;

export class RunLive {
  readonly id: string;
  /** The last answer; what moves since is in `fold`. */
  run = $state.raw<Run | null>(null);
  fold = $state.raw<RunFold | null>(null);
  error = $state.raw<Error | null>(null);
  /** The run is not there any more. */
  is_gone = $state(false);
  /** Counts up whenever something in `fold` has moved. */
  version = $state(0);
  #heard: StreamEvent[] = [];
  #listeners = new Set<(events: readonly StreamEvent[]) => void>();
  #is_due = false;
  #rest_until = 0;
  #again: { at: number; timer: ReturnType<typeof setTimeout> } | null = null;
  #unsubscribe: (() => void) | null = null;
  #cut = new AbortController();

  constructor(id: string) {
    this.id = id;
  }

  /** Until the answer of this is called. */
  start(): () => void {
    void this.refresh();
    const end = stream.changes(() => {
      const { fold } = this;
      if (fold !== null && !fold.has_ended && fold.tasks.size <= MOST_TASKS && fold.has_waiting) this.#ask_again(OTHERS_MS);
    });
    return () => {
      end();
      this.#cut.abort();
      this.#unsubscribe?.();
      if (this.#again !== null) clearTimeout(this.#again.timer);
    };
  }

  /** Events as they come, in their order, each once. */
  listen(hear: (events: readonly StreamEvent[]) => void): () => void {
    this.#listeners.add(hear);
    return () => this.#listeners.delete(hear);
  }

  async refresh(): Promise<void> {
    try {
      const run = await get('/v1/runs/{run}', { path: { run: this.id }, query: { causes_up_to: MOST_TASKS }, signal: this.#cut.signal });
      this.#take(run);
      this.error = null;
    } catch (error) {
      if (this.#cut.signal.aborted) return;
      this.error = error as Problem | Error;
      // Nobody answers: the stream tells when somebody does.
      if (this.run === null && (error as Error).name === 'Unreachable') this.#ask_again();
    }
  }

  #take(run: Run): void {
    const last = run.last_event ?? 0;
    // An answer that was on its way while events came is older than they are.
    if (this.fold !== null && last < this.fold.last_event) {
      this.#ask_again();
      return;
    }
    this.run = run;
    this.fold = new RunFold(run);
    this.version += 1;
    if (this.#unsubscribe === null && !this.#cut.signal.aborted) {
      this.#unsubscribe = stream.subscribe(
        run.run,
        last,
        (events) => this.#hear(events),
        () => (this.is_gone = true),
      );
    }
  }

  #hear(events: readonly StreamEvent[]): void {
    this.#heard.push(...events);
    if (this.#is_due) return;
    this.#is_due = true;
    const flush = (): void => {
      this.#is_due = false;
      const begun = performance.now();
      this.#flush();
      // Behind the frame: what it cost with all that was drawn. Twice that is left to the person and the page.
      setTimeout(() => (this.#rest_until = performance.now() + REST * (performance.now() - begun)));
    };
    const rest = this.#rest_until - performance.now();
    // A tab that nobody sees is given no frames.
    if (document.hidden) setTimeout(flush, 250);
    else if (rest > 0) setTimeout(() => requestAnimationFrame(flush), rest);
    else requestAnimationFrame(flush);
  }

  #flush(): void {
    const events = this.#heard;
    this.#heard = [];
    const { fold } = this;
    if (fold === null || events.length === 0) return;
    let has_moved = false;
    for (const event of events) {
      const taken = fold.apply(event);
      if (taken === 'gap') {
        void this.refresh();
        break;
      }
      has_moved ||= taken === 'taken';
    }
    if (has_moved) {
      fold.take_changed();
      this.version += 1;
      if (fold.tasks.size <= MOST_TASKS) this.#ask_again();
    }
    for (const hear of this.#listeners) hear(events);
  }

  #ask_again(wait = ASK_AGAIN_MS): void {
    const at = performance.now() + wait;
    if (this.#again !== null) {
      if (this.#again.at <= at) return;
      clearTimeout(this.#again.timer);
    }
    const timer = setTimeout(() => {
      this.#again = null;
      if (line.connection === 'live' || this.run === null) void this.refresh();
    }, wait);
    this.#again = { at, timer };
  }
}
