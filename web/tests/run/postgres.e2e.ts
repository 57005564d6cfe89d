// Two nodes on Postgres: the page of one follows what the other executes, and says where each task runs.
// `cargo xtask web` lends the server by LANEWAY_TEST_POSTGRES.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Chromium, type Tab } from '../harness/browser';
import { postgres, Program } from '../harness/program';
import { accessible, reads } from './helpers';

let here: Program;
let there: Program;
let chromium: Chromium;

beforeAll(async () => {
  const store = postgres();
  here = await Program.start({ store, node: 'here', args: ['--slots', '2', '--label', 'zone=us'] });
  there = await Program.start({ store, node: 'there', args: ['--slots', '2', '--label', 'zone=eu'] });
  chromium = await Chromium.start(here);
}, 60_000);
afterAll(async () => {
  await chromium?.end();
  await there?.end();
  await here?.end();
}, 60_000);

const note = (tab: Tab, text: string) => reads(tab, '.paper .note', text);

it('follows a run that the other node executes, with the node at each task', { timeout: 120_000 }, async () => {
  const go = join(there.directory, 'go');
  const document = `
name: across
steps:
  near: {run: "echo from near", runs_on: {zone: us}}
  far: {needs: [near], run: "echo from afar; until test -e ${go}; do sleep 0.1; done; echo gone on", runs_on: {zone: eu}}
  back: {needs: [far], run: "echo back", runs_on: {zone: us}}
`;
  const run = await here.submit({ document });
  const tab = await chromium.open(`/runs/${run}`);
  await note(tab, 'here');
  await note(tab, 'there');
  await reads(tab, '[data-testid=run-status]', 'running');
  await accessible(tab);
  await tab.shot('run-postgres');
  // The log of a step that runs on the other node, as it prints it.
  await tab.page.goto(`/runs/${run}/tasks/far`);
  await reads(tab, '.panel', 'on there');
  await reads(tab, '.row', 'from afar');
  writeFileSync(go, '');
  await reads(tab, '.row', 'gone on');
  await reads(tab, '[data-testid=task-status]', 'succeeded');
  await tab.page.goto(`/runs/${run}?tab=timeline&by=node`);
  await reads(tab, '[data-testid=run-status]', 'succeeded');
  await reads(tab, '.lane', 'here · slot 1');
  await reads(tab, '.lane', 'there · slot 1');
  tab.expect_clean();
  await tab.close();
});

it('is stopped on the other node by an act on this page', { timeout: 120_000 }, async () => {
  const run = await here.submit({ document: 'name: long\nsteps:\n  hold: {run: "sleep 600", runs_on: {zone: eu}}\n' });
  const tab = await chromium.open(`/runs/${run}`);
  await note(tab, 'there');
  await tab.page.getByRole('button', { name: 'Cancel', exact: false }).first().click();
  await tab.page.getByRole('dialog').getByRole('button', { name: /cancel/i }).first().click();
  await reads(tab, '[data-testid=run-status]', 'canceled');
  await tab.page.goto('/nodes');
  const card = tab.page.getByRole('article').filter({ has: tab.page.getByRole('heading', { name: 'there', level: 2 }) });
  await card.getByText('It holds no task.').waitFor();
  expect((await here.ask<{ status: string }>('GET', `/v1/runs/${run}`)).status).toBe('canceled');
  tab.expect_clean();
  await tab.close();
});
