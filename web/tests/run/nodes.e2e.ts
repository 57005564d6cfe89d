// Runs on several nodes and in containers: where each task ran is on the page. Containers need the Docker that `cargo xtask web` lends.
import { spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { Chromium } from '../harness/browser';
import { binary, Program } from '../harness/program';
import { accessible, reads } from './helpers';

const docker = process.env['LANEWAY_TEST_DOCKER'];
let program: Program;
let chromium: Chromium;
let other: ChildProcess;

beforeAll(async () => {
  program = await Program.start({ args: ['--slots', '2'], ...(docker ? { env: { LANEWAY_DOCKER_HOST: docker } } : {}) });
  chromium = await Chromium.start(program);
  // A second node on the same store.
  const args = ['--store', join(program.directory, 'laneway.db'), 'worker', '--node-address', 'there', '--slots', '2'];
  other = spawn(binary(), args, { cwd: program.directory, env: { PATH: process.env['PATH'] ?? '', HOME: program.directory }, stdio: 'ignore' });
  await vi.waitUntil(async () => JSON.stringify(await program.ask('GET', '/v1/nodes')).includes('there'), { timeout: 20_000 });
});
afterAll(async () => {
  await chromium.end();
  const ended = new Promise((done) => other.once('exit', done));
  other.kill('SIGINT');
  await ended;
  await program.end();
});

it('tells which node runs a task, and shows lanes of both', { timeout: 120_000 }, async () => {
  const steps = Array.from({ length: 12 }, (_, n) => `  part${n}: {run: "sleep 0.4"}`).join('\n');
  const run = await program.submit({ document: `name: spread\nmax_parallel: 4\nsteps:\n${steps}\n` });
  const tab = await chromium.open(`/runs/${run}?tab=timeline&by=node`);
  expect(await program.until_ended(run)).toBe('succeeded');
  await reads(tab, '.lane', 'here · slot 1');
  await reads(tab, '.lane', 'there · slot 1');
  // No more lanes of a node than it has slots.
  expect(await tab.page.locator('.lane').count()).toBeLessThanOrEqual(4);
  await accessible(tab);
  await tab.shot('run-two-nodes');
  await tab.page.getByRole('link', { name: 'Graph' }).click();
  await reads(tab, '.paper .note', 'there');
  await reads(tab, '.paper .note', 'here');
  tab.expect_clean();
  await tab.close();
});

it.skipIf(!docker)('shows a task that runs in a container, and its log', { timeout: 120_000 }, async () => {
  const document = `
name: contained
steps:
  inside: {image: "laneway-test/busybox:1", run: "echo from inside; echo n=7 > $LANEWAY_OUTPUT"}
`;
  const run = await program.submit({ document });
  expect(await program.until_ended(run)).toBe('succeeded');
  const tab = await chromium.open(`/runs/${run}/tasks/inside`);
  await reads(tab, '.row', 'from inside');
  await reads(tab, '.panel', '"n": ');
  await reads(tab, '[data-testid=task-container]', 'laneway-test/busybox:1');
  await reads(tab, '[data-testid=task-container]', /laneway-[0-9a-f]+-inside-a1/);
  tab.expect_clean();
  await tab.close();
});
