// What waits for a moment: a run that is submitted for later with the keyboard, and steps that wait, each with what is left.
import type { Locator } from 'playwright-core';
import { expect, test } from 'vitest';
import type { Tab } from '../harness/browser';
import { GOOD } from '../harness/documents';
import { site } from '../harness/site';
import { accessible, reads } from './helpers';

const here = site({}, (program) => program.apply(GOOD).then(() => {}));
const DAY_MS = 86_400_000;

type Later = { run: string; not_before: string | null; status: string };
const runs = async () => (await here.program.ask<{ runs: Later[] }>('GET', '/v1/runs')).runs;

/** Types a moment as a person does: month, day, year, hour, minute, half of the day. */
async function type_moment(tab: Tab, field: Locator, at: Date): Promise<void> {
  const two = (part: number) => String(part).padStart(2, '0');
  await field.focus();
  const hour = at.getHours() % 12 === 0 ? 12 : at.getHours() % 12;
  await tab.page.keyboard.type(`${two(at.getMonth() + 1)}${two(at.getDate())}${at.getFullYear()}`);
  await tab.page.keyboard.type(`${two(hour)}${two(at.getMinutes())}${at.getHours() < 12 ? 'A' : 'P'}`);
}

async function open_form(tab: Tab): Promise<Locator> {
  await tab.page.getByRole('button', { name: 'Run good' }).focus();
  await tab.page.keyboard.press('Enter');
  return tab.page.getByRole('dialog', { name: 'Run good' });
}

/** Until what is left has become less. */
async function counts_down(shown: Locator): Promise<void> {
  const first = await shown.textContent();
  expect(first).toMatch(/^Waits another (\d+ d )?[\d:]+$/);
  await expect.poll(() => shown.textContent(), { timeout: 15_000 }).not.toBe(first);
}

test('a run is submitted for later with the keyboard, and counts down on its page and in the list', async () => {
  const tab = await here.open('/workflows', { language: 'en-US' });
  const dialog = await open_form(tab);
  const at = new Date(Math.floor(Date.now() / 60_000) * 60_000 + 2 * DAY_MS - 30 * 60_000);
  await type_moment(tab, dialog.getByLabel(/^Start empty/), at);
  await tab.page.keyboard.press('Enter');
  await tab.page.waitForURL('**/runs/*');
  const [made] = await runs();
  expect(made && new Date(made.not_before ?? '').getTime()).toBe(at.getTime());
  await reads(tab, '[data-testid=run-status]', 'queued');
  const shown = tab.page.getByTestId('starts-later').getByRole('timer');
  await counts_down(shown);
  expect(await shown.textContent()).toMatch(/^Waits another 1 d 23:/);
  await accessible(tab);
  await tab.shot('run-later');
  const list = await here.open('/runs');
  await reads(list, 'tr', /queued.*good.*Waits another 1 d 23:/s);
  await list.close();
  // Canceled, it waits no more.
  await here.program.ask('POST', `/v1/runs/${made?.run}/cancel`);
  await reads(tab, '[data-testid=run-status]', 'canceled');
  expect(await shown.count()).toBe(0);
  tab.expect_clean();
  await tab.close();
});

test('a start that is past or half typed is refused where it was typed, and nothing is submitted', async () => {
  const tab = await here.open('/workflows', { language: 'en-US' });
  const before = (await runs()).length;
  const dialog = await open_form(tab);
  const field = dialog.getByLabel(/^Start empty/);
  await type_moment(tab, field, new Date(2020, 1, 3, 16, 5));
  await tab.page.keyboard.press('Enter');
  await dialog.getByText('The start is in the past').waitFor();
  expect(await field.evaluate((shown) => shown === document.activeElement && shown.getAttribute('aria-invalid'))).toBe('true');
  await field.fill('');
  await field.focus();
  await tab.page.keyboard.type('12');
  await tab.page.keyboard.press('Enter');
  await dialog.getByText('The start needs a date and a time').waitFor();
  expect((await runs()).length).toBe(before);
  await field.fill('');
  await dialog.getByRole('button', { name: 'Run it' }).press('Enter');
  await tab.page.waitForURL('**/runs/*');
  expect((await runs())[0]?.not_before ?? null).toBeNull();
  tab.expect_clean();
  await tab.close();
});

test('steps that wait for a moment count down, and so does one that is to be tried again', async () => {
  const document = `name: waiting
on_failure: continue
steps:
  park: {wait: {for: 3h}}
  later: {not_before: 2h, run: 'true'}
  again: {run: 'exit 1', retry: {max: 1, backoff: 1h, jitter: 0}}
  approve: {wait: {signal: approved}}
`;
  const run = await here.program.submit({ document });
  await here.program.event(run, (event) => event['event'] === 'task_retrying');
  await here.program.event(run, (event) => event['event'] === 'task_parked' && event['step'] === 'approve');
  const tab = await here.open(`/runs/${run}?step=park`);
  const shown = tab.page.locator('aside').getByRole('timer');
  for (const [step, left] of [['park', /another 2:59:/], ['later', /another 1:59:/], ['again', /another 59:/]] as const) {
    await tab.page.goto(`/runs/${run}?step=${step}`);
    await shown.filter({ hasText: left }).waitFor();
    await counts_down(shown);
  }
  await tab.page.goto(`/runs/${run}?step=approve`);
  await reads(tab, 'aside', 'waits for the signal');
  expect(await shown.count()).toBe(0);
  tab.expect_clean();
  await tab.close();
});

test('a run whose moment comes goes on in front of the reader', async () => {
  const run = await here.program.submit({ workflow: 'good', not_before: '4s' });
  const tab = await here.open(`/runs/${run}`);
  const shown = tab.page.getByTestId('starts-later');
  await shown.getByRole('timer').waitFor();
  await reads(tab, '[data-testid=run-status]', 'succeeded', 30_000);
  expect(await shown.count()).toBe(0);
  tab.expect_clean();
  await tab.close();
});
