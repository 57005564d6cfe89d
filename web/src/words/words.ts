// What a language's file is made of, and how a text with gaps and numbers is made from it. Pure.

/** A text with `{gaps}`; with two forms, `{n}` decides between them. */
export type Word = string | { one: string; other: string };
export type Gaps = Record<string, string | number>;

export function say(word: Word, gaps: Gaps, language: string): string {
  const text = typeof word === 'string' ? word : word[form(gaps.n, language)];
  return text.replace(/\{(\w+)\}/g, (gap, name: string) => {
    const value = gaps[name];
    if (value === undefined) return gap;
    return typeof value === 'number' ? value.toLocaleString(language) : value;
  });
}

function form(n: string | number | undefined, language: string): 'one' | 'other' {
  return new Intl.PluralRules(language).select(Number(n ?? 0)) === 'one' ? 'one' : 'other';
}
