// Everything by keys: the sheet, the palette, jumps, rows, dialogs, and where the focus goes.
import { expect, test } from 'vitest';
import { fill, site } from '../harness/site';

const here = site({}, fill);

test('the sheet names every key, and the keys do what it says', async () => {
  const tab = await here.open('/');
  const { page } = tab;
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  await page.keyboard.press('?');
  const sheet = page.getByRole('dialog', { name: 'Keys' });
  await sheet.getByText('Runs', { exact: true }).waitFor();
  expect(await tab.axe()).toEqual([]);
  await tab.shot('keys');
  await page.keyboard.press('Escape');
  await sheet.waitFor({ state: 'detached' });
  for (const [key, heading] of [
    ['w', 'Workflows'],
    ['r', 'Runs'],
    ['n', 'Nodes'],
    ['p', 'Pools'],
    ['l', 'Limits and locks'],
    ['t', 'Triggers'],
    ['k', 'Tokens'],
    ['a', 'Audit'],
    ['o', 'Overview'],
  ] as const) {
    await page.keyboard.press('g');
    await page.keyboard.press(key);
    await page.getByRole('heading', { level: 1, name: heading }).waitFor();
  }
  tab.expect_clean();
  await tab.close();
});

test('on a small screen the sheet begins with its beginning', async () => {
  const tab = await here.open('/', { width: 360, height: 560 });
  const { page } = tab;
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  await page.keyboard.press('?');
  const sheet = page.getByRole('dialog', { name: 'Keys' });
  await sheet.waitFor();
  expect(await sheet.evaluate((box) => [box.scrollTop, box.scrollHeight > box.clientHeight])).toEqual([0, true]);
  await page.keyboard.press('Escape');
  await sheet.waitFor({ state: 'detached' });
  tab.expect_clean();
  await tab.close();
});

test('the palette finds pages, workflows, runs and acts', async () => {
  const tab = await here.open('/');
  const { page } = tab;
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  await page.keyboard.press('Control+k');
  const field = page.getByRole('combobox', { name: 'Search or do something' });
  await field.waitFor();
  await field.fill('nightly');
  await page.getByRole('option', { name: 'nightly' }).first().waitFor();
  expect(await tab.axe()).toEqual([]);
  await tab.shot('palette');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'nightly' }).waitFor();
  await page.keyboard.press('Control+k');
  await field.fill('run good');
  await page.getByRole('option', { name: 'Run good…' }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Run good' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  const { runs } = await here.program.ask<{ runs: { run: string }[] }>('GET', '/v1/runs?status=failed');
  // The beginning of the twelve digits at the end, as people type it.
  const short = (runs[0]?.run ?? '').slice(-12, -4);
  await page.keyboard.press('Control+k');
  await field.fill(short);
  await page.keyboard.press('Enter');
  await page.waitForURL(`**/runs/${short}`);
  await page.getByTestId('run-status').filter({ hasText: 'failed' }).waitFor();
  tab.expect_clean();
  await tab.close();
});

test('rows are walked and opened by keys, and / goes to the filter', async () => {
  const tab = await here.open('/workflows');
  const { page } = tab;
  await page.getByRole('link', { name: 'asks' }).waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('k');
  await page.keyboard.press('j');
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('bad');
  await page.keyboard.press('o');
  await page.getByRole('heading', { level: 1, name: 'bad' }).waitFor();
  await page.goBack();
  await page.getByRole('link', { name: 'asks' }).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('go');
  await expect.poll(() => page.getByRole('row').count()).toBe(2);
  // Letters that are typed are letters.
  expect(new URL(page.url()).pathname).toBe('/workflows');
  tab.expect_clean();
  await tab.close();
});

test('the first tab leads past the head, dialogs hold the focus and give it back', async () => {
  const tab = await here.open('/workflows');
  const { page } = tab;
  await page.getByRole('link', { name: 'asks' }).waitFor();
  await page.keyboard.press('Tab');
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Skip to the content');
  await page.keyboard.press('Enter');
  expect(await page.evaluate(() => document.activeElement?.id)).toBe('content');
  const button = page.getByRole('button', { name: 'Run good' });
  await button.focus();
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: 'Run good' });
  await dialog.waitFor();
  for (let presses = 0; presses < 15; presses += 1) {
    await page.keyboard.press('Tab');
    const is_outside = await page.evaluate(() => {
      const active = document.activeElement;
      return active !== null && active !== document.body && active.closest('dialog') === null;
    });
    expect(is_outside).toBe(false);
  }
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  expect(await button.evaluate((element) => element === document.activeElement)).toBe(true);
  tab.expect_clean();
  await tab.close();
});

test('a link moves the focus to the page it leads to, and back goes back', async () => {
  const tab = await here.open('/');
  const { page } = tab;
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Nodes' }).click();
  await page.getByRole('heading', { level: 1, name: 'Nodes' }).waitFor();
  await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe('Nodes');
  await page.goBack();
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  tab.expect_clean();
  await tab.close();
});

test('theme and language are chosen and kept', async () => {
  const tab = await here.open('/', { theme: 'light' });
  const { page } = tab;
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await ground();
  await page.keyboard.press('t');
  expect(await ground()).not.toBe(light);
  await page.reload();
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  expect(await ground()).not.toBe(light);
  await page.getByRole('button', { name: 'Menu', exact: true }).last().click();
  await page.getByRole('menuitem', { name: 'Deutsch' }).click();
  await page.getByRole('heading', { level: 1, name: 'Übersicht' }).waitFor();
  tab.expect_clean();
  await tab.close();
});

test('nothing moves for whoever wants it so', async () => {
  const tab = await here.open('/runs', { reduced: true });
  await tab.page.getByText('running').first().waitFor();
  const moving = await tab.page.evaluate(() => document.getAnimations().filter((animation) => animation.playState === 'running' && animation.effect?.getComputedTiming().iterations === Infinity).length);
  expect(moving).toBe(0);
  await tab.close();
});
