// An effect of which nobody knows whether it happened: shown as such, and settled by a person, either way.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { binary } from '../harness/program';
import { site } from '../harness/site';
import { accessible, agree, press, reads } from './helpers';

const here = site();
/** Ends itself in the middle of it, unless it may go on; counts how often it ran. */
const DOCUMENT = `name: pay
steps:
  pay: {run: "${binary()} effect charge --key 17 -- sh -c 'echo x >> ran; test -f go || kill -9 $$'"}
`;
type Effects = { effects: { status: string; unknown: boolean; settled_by?: string }[] };
const path = (name: string) => join(here.program.directory, name);
const effect = async (run: string) => (await here.program.ask<Effects>('GET', `/v1/runs/${run}/effects`)).effects[0];

/** A run whose effect was begun, and whose end nobody saw. */
async function begun(): Promise<string> {
  for (const name of ['ran', 'go']) if (existsSync(path(name))) rmSync(path(name));
  const run = await here.program.submit({ document: DOCUMENT });
  expect(await here.program.until_ended(run)).toBe('failed');
  expect(await effect(run)).toMatchObject({ status: 'started', unknown: true });
  writeFileSync(path('go'), '');
  return run;
}

/** Behind its first end. */
async function tried_again(run: string): Promise<string> {
  const { last_event } = await here.program.ask<{ last_event: number }>('GET', `/v1/runs/${run}`);
  await here.program.ask('POST', `/v1/runs/${run}/retry`, {});
  await here.program.event(run, (event) => event['event'] === 'run_finished' && Number(event['seq']) > last_event);
  return (await here.program.ask<{ status: string }>('GET', `/v1/runs/${run}`)).status;
}

test('one that has happened is recorded as done and never runs again', async () => {
  const run = await begun();
  const tab = await here.open(`/runs/${run}?tab=effects`);
  await reads(tab, '[role=row]', 'unknown');
  await reads(tab, '[role=row]', '17');
  await accessible(tab);
  await tab.shot('run-effect-unknown');
  await press(tab, 'It has happened');
  await tab.page.getByRole('dialog').getByText('never runs again').waitFor();
  await agree(tab, 'It has happened');
  await reads(tab, '[role=row]', 'settled by');
  expect(await tab.page.getByRole('button', { name: 'It has happened' }).count()).toBe(0);
  expect(await effect(run)).toMatchObject({ status: 'done', unknown: false });
  expect(await tried_again(run)).toBe('succeeded');
  expect(readFileSync(path('ran'), 'utf8')).toBe('x\n');
  tab.expect_clean();
  await tab.close();
});

test('one that has not happened runs again, and whoever says so is warned', async () => {
  const run = await begun();
  const tab = await here.open(`/runs/${run}?tab=effects`);
  await press(tab, 'It has not: run it again');
  await tab.page.getByRole('dialog').getByText('it will have happened twice').waitFor();
  await tab.page.keyboard.press('Escape');
  expect(await effect(run)).toMatchObject({ unknown: true });
  await press(tab, 'It has not: run it again');
  await agree(tab, 'It has not: run it again');
  await reads(tab, '[role=row]', 'settled by');
  expect(await tried_again(run)).toBe('succeeded');
  expect(readFileSync(path('ran'), 'utf8')).toBe('x\nx\n');
  await reads(tab, '[role=row]', 'succeeded');
  tab.expect_clean();
  await tab.close();
});

test('who may only look is shown that it is unknown, and no buttons', async () => {
  const run = await begun();
  const { token } = await here.program.ask<{ token: string }>('POST', '/v1/tokens', { name: 'looker', role: 'viewer' });
  const tab = await here.open(`/runs/${run}?tab=effects`, { token });
  await reads(tab, '[role=row]', 'unknown');
  expect(await tab.page.getByRole('button', { name: 'It has happened' }).count()).toBe(0);
  tab.expect_clean();
  await tab.close();
});
