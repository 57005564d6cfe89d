// A run as it was after an event: asked for a moment after the slider stands still, and only the last wish counts.
import { get } from '../api/client';
import { RunFold } from './fold';

const STILL_MS = 90;

export class RunPast {
  fold = $state.raw<RunFold | null>(null);
  at = $state<number | null>(null);
  error = $state.raw<Error | null>(null);
  #cut: AbortController | null = null;
  #wait: ReturnType<typeof setTimeout> | null = null;

  /** `null`: back to now. */
  go(run: string, at: number | null): void {
    this.stop();
    if (at === null) {
      this.fold = null;
      this.at = null;
      this.error = null;
      return;
    }
    this.#wait = setTimeout(() => void this.#ask(run, at), this.fold === null ? 0 : STILL_MS);
  }

  stop(): void {
    this.#cut?.abort();
    this.#cut = null;
    if (this.#wait !== null) clearTimeout(this.#wait);
    this.#wait = null;
  }

  async #ask(run: string, at: number): Promise<void> {
    const cut = new AbortController();
    this.#cut = cut;
    try {
      const found = await get('/v1/runs/{run}', { path: { run }, query: { at }, signal: cut.signal });
      this.fold = new RunFold(found);
      this.at = at;
      this.error = null;
    } catch (error) {
      if (!cut.signal.aborted) this.error = error as Error;
    }
  }
}
