// A value that changes many times a second, handed on a few times a second: for what is too much work to do at every frame.
import { untrack } from 'svelte';

export function slowly(read: () => number, every_ms = 250): { readonly value: number } {
  let value = $state(untrack(read));
  let timer: ReturnType<typeof setTimeout> | null = null;
  $effect(() => {
    const now = read();
    if (untrack(() => now === value) || timer !== null) return;
    timer = setTimeout(() => {
      timer = null;
      value = read();
    }, every_ms);
  });
  $effect(() => () => {
    if (timer !== null) clearTimeout(timer);
  });
  return {
    get value() {
      return value;
    },
  };
}
