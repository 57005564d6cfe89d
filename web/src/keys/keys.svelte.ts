// Every key of the page in one place: what can be pressed, what it does, and so what the `?` sheet says.
import { onDestroy } from 'svelte';
import type { Key } from '../words';
import { chosen, SEQUENCE_MS, typed } from './sequence';

/** `keys`: 'g r' one behind the other, 'j', '?', 'mod+k' (Ctrl, or Cmd on a Mac). */
export type Binding = {
  keys: string;
  word: Key;
  group: 'go' | 'page' | 'list' | 'graph' | 'log';
  act: () => void;
  /** Also while something is being typed, and in dialogs. */
  everywhere?: boolean;
};

class Keys {
  /** For the sheet; the truth is `#all`. What is read while a component is torn down is what was there before its
      successor bound its keys, so state cannot be read to unbind. */
  bindings = $state.raw<readonly Binding[]>([]);
  #all: readonly Binding[] = [];
  #pressed: string[] = [];
  #last = 0;

  bind(...added: Binding[]): () => void {
    this.#put([...this.#all, ...added]);
    return () => this.#put(this.#all.filter((binding) => !added.includes(binding)));
  }

  #put(bindings: readonly Binding[]): void {
    this.#all = bindings;
    this.bindings = bindings;
  }

  start(): void {
    addEventListener('keydown', (event) => this.#press(event));
  }

  #press(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.isComposing) return;
    const key = typed(event);
    if (key === null) return;
    if (event.timeStamp - this.#last > SEQUENCE_MS) this.#pressed = [];
    this.#last = event.timeStamp;
    this.#pressed = [...this.#pressed, key].slice(-3);
    const is_typing = in_field(event.target) || document.querySelector('dialog[open]') !== null;
    const found = chosen(this.#all.filter((binding) => !is_typing || binding.everywhere), this.#pressed);
    if (!found) return;
    event.preventDefault();
    this.#pressed = [];
    found.act();
  }
}

function in_field(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) return true;
  return target instanceof HTMLInputElement && !['checkbox', 'radio', 'button', 'submit', 'range'].includes(target.type);
}

export const keys = new Keys();

/** For as long as the component lives. */
export function use_keys(...bindings: Binding[]): void {
  onDestroy(keys.bind(...bindings));
}
