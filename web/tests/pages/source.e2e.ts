// The document of a workflow in the editor: what was written and not applied is not lost, and the keyboard leads out again.
import { expect, test } from 'vitest';
import { GOOD } from '../harness/documents';
import { site } from '../harness/site';

const here = site({}, async (program) => {
  await program.apply(GOOD);
});

test('what was written is there again, until it is applied or discarded', async () => {
  const tab = await here.open('/workflows/good/source');
  const { page } = tab;
  const editor = page.getByLabel('Document of the workflow');
  const before = await editor.inputValue();
  const mine = before.replace('echo done', 'echo mine');
  await editor.fill(mine);
  await page.getByRole('link', { name: 'Versions' }).click();
  await page.getByRole('heading', { level: 1, name: 'good' }).waitFor();
  await editor.waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'Source' }).click();
  await page.getByText('These are your changes from before.').waitFor();
  expect(await editor.inputValue()).toBe(mine);
  await page.reload();
  await page.getByText('These are your changes from before.').waitFor();
  expect(await editor.inputValue()).toBe(mine);
  await page.getByRole('button', { name: 'Discard' }).click();
  await page.reload();
  await editor.waitFor();
  expect(await editor.inputValue()).toBe(before);

  await editor.fill(mine);
  await page.getByText('Its graph').waitFor();
  await page.getByRole('button', { name: 'Apply…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click();
  await page.getByText('good is at version 2').waitFor();
  await here.program.apply(GOOD.replace('echo done', 'echo theirs'));
  await page.reload();
  await editor.waitFor();
  expect(await editor.inputValue()).toContain('echo theirs');
  tab.expect_clean();
  await tab.close();
});

test('Tab indents, and Escape and Tab leave the field, which says so', async () => {
  const tab = await here.open('/workflows/good/source');
  const { page } = tab;
  const editor = page.getByLabel('Document of the workflow');
  await page.getByText('Escape and then Tab leads out of the field').waitFor();
  const described = await editor.getAttribute('aria-describedby');
  expect(await page.locator(`[id="${described}"]`).textContent()).toContain('Escape and then Tab');
  const before = await editor.inputValue();
  await editor.focus();
  await page.keyboard.press('Tab');
  expect((await editor.inputValue()).length).toBe(before.length + 2);
  await page.keyboard.press('Escape');
  await page.keyboard.press('Tab');
  expect(await editor.evaluate((field) => field === document.activeElement)).toBe(false);
  expect(await tab.axe()).toEqual([]);
  tab.expect_clean();
  await tab.close();
});
