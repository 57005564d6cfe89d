// What is shown follows what happens, through a restart of the server too.
import { expect, test } from 'vitest';
import { GOOD } from '../harness/documents';
import { site } from '../harness/site';

const here = site({}, async (program) => {
  await program.apply(GOOD);
  await program.until_ended(await program.submit({ workflow: 'good' }));
});

test('a list follows what others do, without being touched', async () => {
  const tab = await here.open('/runs');
  const { page } = tab;
  await expect.poll(() => page.getByRole('row').count()).toBe(2);
  await here.program.until_ended(await here.program.submit({ workflow: 'good' }));
  await expect.poll(() => page.getByRole('row').count()).toBe(3);
  await expect.poll(() => page.getByRole('row').getByText('succeeded', { exact: true }).count()).toBe(2);
  tab.expect_clean();
  await tab.close();
});

test('one connection carries all that a tab follows', async () => {
  const streams = async () => {
    const answer = await fetch(`${here.program.url}/metrics`, { headers: { authorization: `Bearer ${here.program.token}` } });
    return Number(/^laneway_event_streams(?:\{[^}]*\})? (\d+)/m.exec(await answer.text())?.[1]);
  };
  await expect.poll(streams).toBe(0);
  const tab = await here.open('/nodes');
  await expect.poll(streams).toBe(1);
  for (const name of ['Pools', 'Runs', 'Nodes', 'Overview']) {
    await tab.page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click();
    await tab.page.getByRole('heading', { level: 1, name }).waitFor();
    await tab.page.locator('main .loading').first().waitFor({ state: 'detached' });
  }
  await expect.poll(streams).toBe(1);
  tab.expect_clean();
  await tab.close();
  await expect.poll(streams, { timeout: 20_000 }).toBe(0);
});

test('while the server is away the page says that it is stale; when it is back it goes on by itself', async () => {
  const tab = await here.open('/runs');
  tab.expected.push(/ERR_|Failed to load/);
  const { page } = tab;
  const rows = await (async () => {
    await expect.poll(() => page.getByRole('row').count()).toBeGreaterThan(1);
    return page.getByRole('row').count();
  })();
  await here.program.stop();
  await page.getByText('You are looking at stale data').waitFor({ timeout: 20_000 });
  // What was known stays in sight.
  expect(await page.getByRole('row').count()).toBe(rows);
  expect(await tab.axe()).toEqual([]);
  await tab.shot('stale');
  await here.program.start();
  const run = await here.program.submit({ workflow: 'good' });
  await page.getByText('You are looking at stale data').waitFor({ state: 'detached', timeout: 30_000 });
  await page.getByRole('link', { name: run.slice(-12) }).waitFor();
  tab.expect_clean();
  await tab.close();
});

test('a question that is lost while the stream lives is asked again', async () => {
  const tab = await here.open('/triggers', { expected: /ERR_FAILED/ });
  const { page } = tab;
  await page.getByText('Nothing starts by itself').waitFor();
  let lost = 0;
  await page.route('**/v1/pools', (route) => (lost++ < 2 ? route.abort() : route.continue()));
  await page.keyboard.press('g');
  await page.keyboard.press('p');
  await page.getByText('The server does not answer').waitFor();
  await page.getByText('No pool is warm').waitFor();
  expect(await page.getByText('The server does not answer').count()).toBe(0);
  expect(lost).toBeGreaterThan(2);
  tab.expect_clean();
  await tab.close();
});

test('a script and styles that are lost on their way are fetched again', async () => {
  const tab = await here.open('/triggers', { expected: /ERR_FAILED/ });
  const { page } = tab;
  await page.getByText('Nothing starts by itself').waitFor();
  let lost = 0;
  let styles = 0;
  await page.route(/\/assets\/Audit-[^/]*\.js/, (route) => (lost++ < 1 ? route.abort() : route.continue()));
  await page.route('**/assets/Audit-*.css', (route) => (styles++ < 1 ? route.abort() : route.continue()));
  await page.keyboard.press('g');
  await page.keyboard.press('a');
  await page.getByRole('heading', { level: 1, name: 'Audit' }).waitFor();
  expect(lost).toBe(2);
  expect(styles).toBe(2);
  // Of one that did not come, the rules cannot be read.
  const unstyled = await page.evaluate(
    () =>
      [...document.styleSheets].filter((sheet) => {
        try {
          return sheet.cssRules === null;
        } catch {
          return true;
        }
      }).length,
  );
  expect(unstyled).toBe(0);
  tab.expect_clean();
  await tab.close();
});

test('what nodes tell comes once each, through a restart too', async () => {
  const tab = await here.open('/nodes');
  tab.expected.push(/ERR_|Failed to load/);
  const { page } = tab;
  const joined = page.getByRole('row').filter({ hasText: 'node joined' });
  await joined.first().waitFor();
  const before = await joined.count();
  await here.program.stop();
  await here.program.start();
  await expect.poll(() => joined.count(), { timeout: 30_000 }).toBe(before + 1);
  const told = await here.program.ask<{ events: unknown[] }>('GET', '/v1/nodes/events?limit=1000');
  await expect.poll(() => page.getByRole('table', { name: 'What nodes told of themselves' }).getByRole('row').count()).toBe(told.events.length + 1);
  tab.expect_clean();
  await tab.close();
});
