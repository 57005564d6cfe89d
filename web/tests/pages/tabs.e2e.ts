// Many tabs of one browser: it opens six connections to a server for all of them, and every tab is to be live when it is looked at.
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { GOOD } from '../harness/documents';
import { site } from '../harness/site';

const here = site({}, async (program) => {
  await program.apply(GOOD);
});

/** Headless tabs are all in sight at once; so each is told what a browser would tell it. */
async function show(pages: readonly Page[], seen: Page): Promise<void> {
  for (const page of pages) {
    await page.evaluate((is_hidden) => {
      Object.defineProperty(document, 'hidden', { configurable: true, get: () => is_hidden });
      document.dispatchEvent(new Event('visibilitychange'));
    }, page !== seen);
  }
}

test('eight tabs are each live when they are looked at, those of a log too', { timeout: 120_000 }, async () => {
  const document = `name: waits\nsteps:\n  wait: {run: "echo waiting; sleep 600"}\n`;
  const run = await here.program.submit({ document });
  await here.program.event(run, (event) => event['event'] === 'task_started');
  const tab = await here.open('/runs');
  const pages = [tab.page];
  const paths = ['/runs', `/runs/${run}/tasks/wait`, '/workflows', `/runs/${run}/tasks/wait`, '/nodes', `/runs/${run}/tasks/wait`, `/runs/${run}`, '/runs'];
  for (const path of paths.slice(1)) {
    const page = await tab.context.newPage();
    // As a browser opens a link in another tab: it is not seen until it is gone to.
    await page.addInitScript(() => Object.defineProperty(document, 'hidden', { configurable: true, get: () => true }));
    await page.goto(path);
    pages.push(page);
  }
  for (const [place, page] of pages.entries()) {
    await show(pages, page);
    if (paths[place]?.endsWith('/wait')) await page.locator('.row', { hasText: 'waiting' }).waitFor();
  }
  // The first again, after all of the others were looked at: what happened meanwhile is there, and what happens now comes.
  for (let count = 1; count <= 2; count += 1) {
    await here.program.until_ended(await here.program.submit({ workflow: 'good' }));
    if (count === 1) await show(pages, tab.page);
    await expect.poll(() => tab.page.locator('tbody tr', { hasText: 'good' }).filter({ hasText: 'succeeded' }).count(), { timeout: 15_000 }).toBe(count);
  }
  await tab.close();
  tab.expect_clean();
});
