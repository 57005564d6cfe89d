// Several nodes on one store, as they come and work.
import { spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, test } from 'vitest';
import { binary } from '../harness/program';
import { site } from '../harness/site';

const here = site();
let worker: ChildProcess | null = null;
afterAll(async () => {
  const child = worker;
  if (!child || child.exitCode !== null) return;
  const ended = new Promise((done) => child.once('exit', done));
  child.kill('SIGINT');
  await ended;
});

test('slots in use are counted also where not every claim is listed', async () => {
  const tab = await here.open('/limits');
  await tab.page.route('**/v1/nodes', async (route) => {
    const answer = await route.fetch();
    const { nodes } = (await answer.json()) as { nodes: Record<string, unknown>[] };
    const run = '0199f2a0-0000-7000-8000-1a2b3c4d5e6f';
    const active_claims = Array.from({ length: 50 }, (_, index) => ({ run, step: `s${index}`, attempt: 1, started_at: null }));
    await route.fulfill({ response: answer, json: { nodes: [{ ...nodes[0], slots: 64, running_claims: 60, active_claims, claim_attempts: 1234, expired_leases: 2 }] } });
  });
  await tab.page.goto('/nodes');
  await tab.page.getByRole('img', { name: '60 of 64 slots are in use' }).waitFor();
  await tab.page.getByText('and 10 more').waitFor();
  // How it fares with the store.
  await tab.page.getByText('1,234 times').waitFor();
  await tab.page.locator('dl div').filter({ hasText: 'Expired leases' }).filter({ hasText: '2' }).waitFor();
  tab.expect_clean();
  await tab.close();
});

test('each shows its slots and what it holds, and one that joins appears by itself', async () => {
  const tab = await here.open('/nodes');
  const { page } = tab;
  await page.getByRole('heading', { name: 'here', level: 2 }).waitFor();
  worker = spawn(binary(), ['--store', join(here.program.directory, 'laneway.db'), 'worker', '--node-address', 'there', '--slots', '2', '--label', 'zone=eu'], {
    cwd: here.program.directory,
    stdio: 'ignore',
  });
  const card = page.getByRole('article').filter({ has: page.getByRole('heading', { name: 'there', level: 2 }) });
  await card.waitFor();
  await card.getByText('zone=eu').waitFor();
  await card.getByRole('img', { name: '0 of 2 slots are in use' }).waitFor();
  const run = await here.program.submit({ document: 'name: far\nsteps:\n  only: {run: "sleep 600", runs_on: {zone: eu}}\n' });
  await card.getByRole('img', { name: '1 of 2 slots are in use' }).waitFor();
  await card.getByRole('link', { name: 'only' }).waitFor();
  await here.program.ask('POST', `/v1/runs/${run}/cancel`);
  await card.getByText('It holds no task.').waitFor();
  // Nobody renews a lease on this store, so nobody was "heard of"; when it last did something is known.
  await card.getByText('Last active').waitFor();
  await page.getByRole('row').filter({ hasText: 'node joined' }).filter({ hasText: 'there' }).waitFor();
  await tab.shot('nodes-two');
  tab.expect_clean();
  await tab.close();
});
