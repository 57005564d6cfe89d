// Finding by letters in their order, the way one types in a hurry: `gwo` finds `graph of workflow`. Pure.
export type Entry = { text: string };

/** How well letters fit a text: higher is better, null is not at all. Beginnings of words and letters in a row count more. */
export function fit(text: string, letters: string): number | null {
  const whole = text.toLowerCase();
  const wanted = letters.toLowerCase().replace(/\s+/g, '');
  let score = 0;
  let at = -1;
  for (const letter of wanted) {
    const next = whole.indexOf(letter, at + 1);
    if (next < 0) return null;
    const is_start = next === 0 || !/[\p{L}\p{N}]/u.test(whole[next - 1] ?? '');
    score += next === at + 1 ? 3 : is_start ? 2 : 0;
    at = next;
  }
  return score - whole.length / 1000;
}

export function best<T extends Entry>(entries: readonly T[], letters: string, count: number): T[] {
  return entries
    .map((entry, index) => ({ entry, index, score: fit(entry.text, letters) }))
    .filter((one): one is { entry: T; index: number; score: number } => one.score !== null)
    .sort((a, b) => (letters.trim() === '' ? a.index - b.index : b.score - a.score || a.index - b.index))
    .slice(0, count)
    .map(({ entry }) => entry);
}
