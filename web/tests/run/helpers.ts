// What the tests of the run page share: words for what they look for.
import { expect } from 'vitest';
import type { Tab } from '../harness/browser';

/** Until the text of what is selected has this in it. */
export async function reads(tab: Tab, selector: string, text: string | RegExp, timeout = 15_000): Promise<void> {
  const place = tab.page.locator(selector).filter({ hasText: text }).first();
  await place.waitFor({ state: 'visible', timeout });
}

export const press = (tab: Tab, name: string | RegExp): Promise<void> => tab.page.getByRole('button', { name, exact: typeof name === 'string' }).first().click();

/** The button of the open question. */
export const agree = (tab: Tab, name: string): Promise<void> => tab.page.getByRole('dialog').getByRole('button', { name, exact: true }).click();

export const names = (tab: Tab): Promise<string[]> =>
  tab.page.locator('.acts button').evaluateAll((buttons) => buttons.map((button) => button.textContent?.trim() ?? ''));

/** Nothing that axe knows of is wrong, in this theme. */
export async function accessible(tab: Tab): Promise<void> {
  expect(await tab.axe()).toEqual([]);
}

/** What would run if any of it became code: it sets a mark that is looked for. */
export const HOSTILE = [
  '<img src=x onerror="window.hacked=1">',
  '<script>window.hacked=1</script>',
  '"><svg onload=window.hacked=1>',
  "javascript:window.hacked=1//'",
  '<iframe srcdoc="<script>parent.hacked=1</script>">',
  '{@html "<b>x</b>"}',
  '${window.hacked=1}',
  '<a href="javascript:window.hacked=1">x</a>',
  '</title><script>window.hacked=1</script>',
];

export async function unharmed(tab: Tab): Promise<void> {
  const found = await tab.page.evaluate(() => ({
    hacked: (window as unknown as { hacked?: number }).hacked ?? null,
    made: document.querySelectorAll('main img, main iframe, main script, main svg[onload], main a[href^="javascript:"]').length,
  }));
  expect(found).toEqual({ hacked: null, made: 0 });
}
