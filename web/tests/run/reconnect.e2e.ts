// The server goes away and comes back while a run goes on: the page says that it is stale, and misses nothing.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Chromium } from '../harness/browser';
import { Program } from '../harness/program';
import { until } from './documents';
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

it('a restart is seen, survived and made good', { timeout: 120_000 }, async () => {
  const gate = join(program.directory, 'gate');
  const document = `
name: outlives
on_failure: continue
steps:
  first: {run: "echo first"}
  waits: {needs: first, retry: {max: 3, backoff: 10ms}, run: "echo waiting in attempt $LANEWAY_ATTEMPT; ${until(gate)}"}
  last: {needs: waits, run: "echo last"}
`;
  const run = await program.submit({ document });
  await program.event(run, (event) => event['event'] === 'task_started' && event['step'] === 'waits');
  const tab = await chromium.open(`/runs/${run}?tab=tasks`);
  tab.expected.push(/Failed to load resource|ERR_|net::/);
  await reads(tab, '[role=row]', /waits.*running/);
  const log = await chromium.open(`/runs/${run}/tasks/waits?attempt=1`);
  log.expected.push(/Failed to load resource|ERR_|net::/);
  await reads(log, '.row', 'waiting in attempt 1');
  await program.stop();
  await reads(tab, 'body', 'stale', 20_000);
  await tab.shot('run-stale');
  await reads(log, '.view', 'The server does not answer');
  // What is known stays in sight.
  await reads(tab, '[role=row]', /first.*succeeded/);
  writeFileSync(gate, '');
  await program.start();
  await reads(tab, '[data-testid=run-status]', 'succeeded', 40_000);
  await reads(tab, '[role=row]', /last.*succeeded/);
  await expect.poll(() => tab.page.getByText('stale').count(), { timeout: 15_000 }).toBe(0);
  // The log goes on too: it is known to be over, and nothing is left of the fault.
  await expect.poll(() => log.page.getByLabel('follow').count(), { timeout: 30_000 }).toBe(0);
  expect(await log.page.locator('.view [role=alert]').count()).toBe(0);
  await reads(log, '.row', 'waiting in attempt 1');
  log.expect_clean();
  await log.close();
  // Every event once, none missing: the page's own count is that of the store.
  const { last_event } = await program.ask<{ last_event: number }>('GET', `/v1/runs/${run}`);
  await tab.page.goto(`/runs/${run}?tab=events`);
  await reads(tab, 'output', `event ${last_event} of ${last_event}`);
  tab.expect_clean();
  await tab.close();
});
