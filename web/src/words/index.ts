// The page's words: t('runs.title'), t('runs.count', { n: 3 }). English is in the first load, others come when asked for.
import { en, type Key } from './en';
import { say, type Gaps, type Word } from './words';

export type { Key };
export const LANGUAGES = { en: 'English', de: 'Deutsch' } as const;
export type Language = keyof typeof LANGUAGES;

const PLACE = 'laneway.language';
let words: Record<Key, Word> = en;
let current: Language = 'en';

export function language(): Language {
  return current;
}

export function t(key: Key, gaps: Gaps = {}): string {
  return say(words[key], gaps, current);
}

/** The text for a word of the server (a state, a reason, a gate) if there is one, else the word itself. */
export function word_of(kind: 'state' | 'reason' | 'gate' | 'role' | 'act', word: string): string {
  const key = `${kind}.${word}`;
  return key in words ? t(key as Key) : word;
}

function wanted(): Language {
  let kept: string | null = null;
  try {
    kept = localStorage.getItem(PLACE);
  } catch {
    // Nothing is kept; the browser's languages decide.
  }
  const asked = [kept, ...navigator.languages].map((name) => name?.slice(0, 2));
  return asked.find((name): name is Language => name !== undefined && name in LANGUAGES) ?? 'en';
}

/** Before the page is shown. */
export async function load_language(): Promise<void> {
  current = wanted();
  if (current === 'de') words = (await import('./de')).de;
  document.documentElement.lang = current;
}

/** Words are everywhere; the page is loaded again instead of watching each of them. */
export function choose_language(name: Language): void {
  try {
    localStorage.setItem(PLACE, name);
  } catch {
    return;
  }
  location.reload();
}
