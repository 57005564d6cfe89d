// What was just done, said at the edge of the page; with undo where it is possible.
export type Toast = {
  id: number;
  text: string;
  tone: 'good' | 'bad';
  hint?: string | undefined;
  undo?: (() => void | Promise<void>) | undefined;
};

/** Long enough to read it and to undo; a failure stays until it is closed. */
const SHOWN_MS = 8_000;

class Toasts {
  shown = $state.raw<Toast[]>([]);
  #count = 0;

  say(text: string, undo?: Toast['undo']): void {
    const id = this.#add({ text, tone: 'good', undo });
    setTimeout(() => this.close(id), SHOWN_MS);
  }

  fail(error: unknown): void {
    const hint = error instanceof Error && 'hint' in error && typeof error.hint === 'string' ? error.hint : undefined;
    this.#add({ text: error instanceof Error ? error.message : String(error), tone: 'bad', hint });
  }

  close(id: number): void {
    this.shown = this.shown.filter((toast) => toast.id !== id);
  }

  #add(toast: Omit<Toast, 'id'>): number {
    this.#count += 1;
    this.shown = [...this.shown, { ...toast, id: this.#count }].slice(-4);
    return this.#count;
  }
}

export const toasts = new Toasts();

/** Does it and says so, or says why not. Answers whether it was done. */
export async function attempt(act: () => Promise<unknown>, said: string, undo?: Toast['undo']): Promise<boolean> {
  try {
    await act();
    toasts.say(said, undo);
    return true;
  } catch (error) {
    toasts.fail(error);
    return false;
  }
}
