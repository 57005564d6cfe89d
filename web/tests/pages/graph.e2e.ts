// The graph of a workflow: it stays where one looks while runs come and go, and can be read on a phone.
import { expect, test } from 'vitest';
import type { Tab } from '../harness/browser';
import { GOOD } from '../harness/documents';
import { site } from '../harness/site';

const names = ['fetch', 'check', 'unpack', 'convert', 'compare', 'publish', 'announce'];
const CHAIN = `name: chain\nsteps:\n${names.map((name, place) => `  ${name}: {${place > 0 ? `needs: [${names[place - 1]}], ` : ''}run: 'true'}`).join('\n')}\n`;
const here = site({}, async (program) => {
  await program.apply(GOOD);
  await program.apply(CHAIN);
});

/** Where its first box stands on the screen, and how large. */
async function place(tab: Tab): Promise<number[]> {
  const box = await tab.page.locator('.sheet .box').first().boundingBox();
  return box === null ? [] : [box.x, box.y, box.width].map(Math.round);
}

test('it stays where one looks, whatever happens in the store', async () => {
  const tab = await here.open('/workflows/good/graph');
  await expect.poll(() => tab.page.locator('.sheet .box').count()).toBeGreaterThan(3);
  const fitted = await place(tab);
  await tab.page.getByRole('button', { name: 'Closer' }).click();
  await expect.poll(() => place(tab)).not.toEqual(fitted);
  const chosen = await place(tab);
  const asked_again = tab.page.waitForResponse((answer) => answer.url().endsWith('/v1/workflows/good/graph'));
  await here.program.until_ended(await here.program.submit({ workflow: 'good' }));
  await asked_again;
  // Two frames: one in which it was taken, one in which it would be drawn.
  await tab.page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  expect(await place(tab)).toEqual(chosen);
  // Another version is another graph.
  await here.program.apply(GOOD.replace("report: {needs: [lint, test], run: 'echo done'}", "report: {needs: [lint, test], run: 'echo done'}\n  tell: {needs: [report], run: 'echo told'}"));
  await expect.poll(() => place(tab)).not.toEqual(chosen);
  tab.expect_clean();
  await tab.close();
});

test('on a phone a few steps have names, from the first on', async () => {
  const tab = await here.open('/workflows/chain/graph', { width: 360, height: 740 });
  await tab.page.locator('.sheet .name', { hasText: 'fetch' }).waitFor();
  const first = (await tab.page.locator('.sheet .name', { hasText: 'fetch' }).boundingBox())!;
  expect(first.x).toBeGreaterThanOrEqual(0);
  expect(first.x + first.width).toBeLessThanOrEqual(360);
  expect(first.height).toBeGreaterThan(8);
  tab.expect_clean();
  await tab.close();
});
