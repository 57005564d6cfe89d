// A list of very many items: the page pages, and stays quick.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Chromium } from '../harness/browser';
import { Program } from '../harness/program';
import { list } from './documents';
import { reads } from './helpers';

let program: Program;
let chromium: Chromium;

beforeAll(async () => {
  program = await Program.start();
  chromium = await Chromium.start(program);
});
afterAll(async () => {
  await chromium.end();
  await program.end();
});

it('items of a list are counted in the graph and paged in the table', { timeout: 180_000 }, async () => {
  const run = await program.submit({ document: list(5_000) });
  const tab = await chromium.open(`/runs/${run}`);
  await tab.page.locator('.paper .of-many').waitFor();
  await reads(tab, '.paper .note', /\d+\/5000/, 60_000);
  await program.event(run, (event) => event['event'] === 'run_finished', 150_000);
  await reads(tab, '.paper .note', '5000/5000', 60_000);
  await tab.page.goto(`/runs/${run}/tasks/each`);
  await reads(tab, 'h2', '5,000 items');
  const table = tab.page.getByRole('table', { name: 'Tasks' });
  expect(await table.getAttribute('aria-rowcount')).toBe('5001');
  expect(await table.getByRole('row').count()).toBeLessThan(80);
  await tab.page.getByRole('region', { name: 'Tasks' }).evaluate((box) => (box.scrollTop = box.scrollHeight));
  await reads(tab, '[role=row]', 'each[4999]');
  await tab.page.getByPlaceholder('Filter by name or reason').fill('[777]');
  await reads(tab, '[role=status]', '1 task');
  tab.expect_clean();
  await tab.close();
});
