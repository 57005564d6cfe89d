// Why a task waits, while it does: also when only others move; and a run that is being canceled.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Chromium } from '../harness/browser';
import { Program } from '../harness/program';
import { until } from './documents';
import { agree, names, press, reads } from './helpers';

let program: Program;
let chromium: Chromium;

beforeAll(async () => {
  // What is told to stop has as long as the test needs.
  program = await Program.start({ env: { LANEWAY_KILL_GRACE: '60s' } });
  chromium = await Chromium.start(program);
});
afterAll(async () => {
  await chromium.end();
  await program.end();
});

it('is told anew when its place in line changes, without an event of its own', async () => {
  const gate = join(program.directory, 'gate');
  const document = `name: lined\nsteps:\n  hold: {lock: db/orders, run: "${until(gate)}"}\n`;
  const holder = await program.submit({ document });
  await program.event(holder, (event) => event['event'] === 'task_started');
  const [before, last] = [await program.submit({ document }), await program.submit({ document })];
  const tab = await chromium.open(`/runs/${last}?tab=tasks`);
  await reads(tab, '[role=row]', 'number 2 of 2 in line');
  await program.ask('POST', `/v1/runs/${before}/cancel`);
  await reads(tab, '[role=row]', 'the only one in line', 20_000);
  writeFileSync(gate, '');
  tab.expect_clean();
  await tab.close();
});

it('a run that is being canceled says so, and is not offered to be canceled again', async () => {
  const gate = join(program.directory, 'stop');
  const document = `name: stubborn\nsteps:\n  stay: {run: "trap '' TERM; ${until(gate)}"}\n`;
  const run = await program.submit({ document });
  await program.event(run, (event) => event['event'] === 'task_started');
  const tab = await chromium.open(`/runs/${run}`);
  await reads(tab, '[data-testid=run-status]', 'running');
  expect(await names(tab)).toContain('Cancel');
  await press(tab, 'Cancel');
  await agree(tab, 'Cancel the run');
  await reads(tab, '[data-testid=run-status]', 'canceling');
  expect(await names(tab)).toEqual([]);
  // The server says so too: it stays when the page is loaded anew.
  expect((await program.ask<{ closing: string }>('GET', `/v1/runs/${run}`)).closing).toBe('canceled');
  await tab.page.reload();
  await reads(tab, '[data-testid=run-status]', 'canceling');
  expect(await names(tab)).toEqual([]);
  // So does the list.
  const list = await chromium.open('/runs');
  await reads(list, 'tr', /canceling.*stubborn/s);
  writeFileSync(gate, '');
  await reads(tab, '[data-testid=run-status]', 'canceled', 30_000);
  await reads(list, 'tr', /canceled.*stubborn/s);
  for (const open of [tab, list]) {
    open.expect_clean();
    await open.close();
  }
});

it('a run that is paused says so in the list', async () => {
  const { run } = await program.ask<{ run: string }>('POST', '/v1/runs', { document: 'name: held\nsteps:\n  only: {run: "true"}\n', paused: true });
  const tab = await chromium.open('/runs');
  await reads(tab, 'tr', /paused.*held/s);
  await program.ask('POST', `/v1/runs/${run}/resume`);
  await reads(tab, 'tr', /succeeded.*held/s);
  tab.expect_clean();
  await tab.close();
});

it('an event that cannot be read is said to be so, and not asked for again and again', async () => {
  const run = await program.submit({ document: 'name: read\nsteps:\n  only: {run: "true"}\n' });
  await program.until_ended(run);
  const tab = await chromium.open('/');
  let asked = 0;
  await tab.page.route('**/v1/runs/*/events?*', async (route) => {
    asked += 1;
    const answer = await route.fetch();
    const found = (await answer.json()) as { events: { seq: number }[]; unreadable: string[] };
    const events = found.events.filter((event) => event.seq !== 2);
    await route.fulfill({ response: answer, json: { ...found, events, unreadable: ['event 2: it is damaged'] } });
  });
  await tab.page.goto(`/runs/${run}?tab=events`);
  await reads(tab, '[role=row]', /2\s*cannot be read/);
  const before = asked;
  // Every other row is drawn anew, and with them the one that is missing.
  await tab.page.getByLabel('newest first').uncheck();
  await tab.page.getByLabel('newest first').check();
  await reads(tab, '[role=row]', /2\s*cannot be read/);
  expect([before, asked]).toEqual([1, 1]);
  tab.expect_clean();
  await tab.close();
});
