// Which keys were pressed, and whether they are those of a binding. Pure.

/** Keys that follow each other belong together for that long. */
export const SEQUENCE_MS = 1_200;

type Pressed = { key: string; ctrlKey: boolean; metaKey: boolean; altKey: boolean };

/** A press as bindings write it; null for a key that only changes others, or that belongs to the system. */
export function typed({ key, ctrlKey, metaKey, altKey }: Pressed): string | null {
  if (['Shift', 'Control', 'Meta', 'Alt', 'AltGraph', 'CapsLock', 'Dead', 'Process'].includes(key)) return null;
  if (ctrlKey && altKey) return null;
  if (altKey) return null;
  const name = key === ' ' ? 'Space' : key;
  return ctrlKey || metaKey ? `mod+${name.toLowerCase()}` : name;
}

export function matches(keys: string, pressed: readonly string[]): boolean {
  const wanted = keys.split(' ');
  if (wanted.length > pressed.length) return false;
  const last = pressed.slice(pressed.length - wanted.length);
  return wanted.every((key, index) => key === last[index]);
}

/** The longest that fits (`g k` is not `k`); of those, the newest: a page may take a key for itself while it is shown. */
export function chosen<B extends { keys: string }>(bindings: readonly B[], pressed: readonly string[]): B | null {
  const fitting = bindings.filter((binding) => matches(binding.keys, pressed));
  const longest = Math.max(0, ...fitting.map((binding) => binding.keys.split(' ').length));
  return fitting.findLast((binding) => binding.keys.split(' ').length === longest) ?? null;
}
