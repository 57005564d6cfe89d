// The stream of this tab, its state for the page to show, and answers that are asked for again when something changes.
import { onDestroy } from 'svelte';
import { Unreachable } from './problem';
import { session } from './session.svelte';
import { Stream, type Connection } from './stream';

const FIRST_WAIT_MS = 500;
const LAST_WAIT_MS = 15_000;

class State {
  connection = $state<Connection>('reconnecting');
  /** Since when it is not live; null while it is. */
  since = $state<number | null>(null);
}

export const line = new State();

export const stream = new Stream({
  fetch: (address, init) => fetch(address, init),
  token: () => session.token,
  tell: (connection) => {
    line.connection = connection;
    line.since = connection === 'live' ? null : (line.since ?? Date.now());
  },
  refused: (problem) => session.refused(problem),
});

/** What a page shows: the newest answer, or why there is none. An answer stays while it is asked for again. */
export class Live<T> {
  data = $state.raw<T | null>(null);
  error = $state.raw<Error | null>(null);
  /** The first answer has not come yet. */
  loading = $derived(this.data === null && this.error === null);
  #ask: (signal: AbortSignal) => Promise<T>;
  #cut: AbortController | null = null;
  #again = false;
  #failures = 0;
  #later: ReturnType<typeof setTimeout> | null = null;

  constructor(ask: (signal: AbortSignal) => Promise<T>) {
    this.#ask = ask;
  }

  /** Asks again; while it is being asked, once more behind that and not at the same time. */
  async refresh(): Promise<void> {
    if (this.#cut !== null) {
      this.#again = true;
      return;
    }
    this.#wait(null);
    const cut = new AbortController();
    this.#cut = cut;
    try {
      const data = await this.#ask(cut.signal);
      if (this.#cut !== cut) return;
      this.data = data;
      this.error = null;
      this.#failures = 0;
    } catch (error) {
      if (this.#cut !== cut || cut.signal.aborted) return;
      this.error = error instanceof Error ? error : new Error(String(error));
      // A refusal stays one until something changes. Silence is asked again: a request can be lost while the stream lives.
      if (error instanceof Unreachable) this.#wait(Math.min(LAST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#failures));
      this.#failures += 1;
    }
    this.#cut = null;
    if (this.#again) {
      this.#again = false;
      void this.refresh();
    }
  }

  /** Another question: what was on its way is dropped. */
  restart(forget: boolean): void {
    this.stop();
    if (forget) {
      this.data = null;
      this.error = null;
    }
    void this.refresh();
  }

  stop(): void {
    this.#cut?.abort();
    this.#cut = null;
    this.#again = false;
    this.#wait(null);
  }

  #wait(ms: number | null): void {
    if (this.#later !== null) clearTimeout(this.#later);
    this.#later = ms === null ? null : setTimeout(() => void this.refresh(), ms);
  }
}

/**
 * Asks now and whenever something changes, for as long as the component lives. What `ask` reads before its first `await`
 * is watched: when it changes, it is asked anew. `key` names what the answer is about; with another key the old answer goes.
 */
export function live<T>(ask: (signal: AbortSignal) => Promise<T>, key: () => unknown = () => null): Live<T> {
  const answer = new Live(ask);
  let last: unknown;
  let is_first = true;
  $effect(() => {
    const now = key();
    answer.restart(!is_first && now !== last);
    last = now;
    is_first = false;
  });
  const end = stream.changes(() => void answer.refresh());
  onDestroy(() => {
    end();
    answer.stop();
  });
  return answer;
}
