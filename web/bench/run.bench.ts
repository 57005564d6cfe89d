// Figures of a run of 10,000 tasks: first meaningful paint, update of 50 tasks, panning, memory over a busy stream; and what Dagu's page
// makes of the same graph. Prints JSON, and writes it to BENCH_OUT if that is set.
//   TASKS=10000 LANEWAY_BIN=…/release/laneway npm run bench
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { chromium as launcher } from 'playwright-core';
import { Chromium } from '../tests/harness/browser';
import { free_port, Program } from '../tests/harness/program';
import { dagu, laneway, type Shape } from './graph';
import { drag, frames, heap, median, round, seen, watch } from './watch';

const tasks = Number(process.env['TASKS'] ?? 10_000);
const width = Math.max(1, Math.round(Math.sqrt(tasks)));
const shape: Shape = { layers: Math.max(1, Math.round(tasks / width)), width };
const count = shape.layers * shape.width;
const results: Record<string, unknown> = { tasks: count, chromium: '', figures: {} };
const figures = results['figures'] as Record<string, unknown>;
const DRAWN = '.paper .spot, .paper .box';

afterAll(() => {
  const text = `${JSON.stringify(results, null, 2)}\n`;
  if (process.env['BENCH_OUT']) writeFileSync(process.env['BENCH_OUT'], text);
  console.log(text);
});

it('a run that waits: first paint, updates, panning', async () => {
  // The only slot is taken: 50 tasks become available and are withdrawn again as often as we say, and none starts.
  const program = await Program.start({ args: ['--slots', '1'] });
  const chromium = await Chromium.start(program);
  try {
    const holder = await program.submit({ document: 'name: holder\nsteps:\n  hold: {run: "sleep 3600"}\n' });
    await program.event(holder, (event) => event['event'] === 'task_started');
    const { run } = await program.ask<{ run: string }>('POST', '/v1/runs', { document: laneway(shape), paused: true });
    const firsts: number[] = [];
    for (let turn = 0; turn < 5; turn++) {
      const tab = await chromium.open('/nodes');
      await watch(tab.page, '.paper', DRAWN);
      await tab.page.goto(`/runs/${run}`);
      await tab.page.locator(DRAWN).first().waitFor({ state: 'attached', timeout: 60_000 });
      await expect.poll(async () => (await seen(tab.page)).first, { timeout: 10_000 }).not.toBeNull();
      firsts.push((await seen(tab.page)).first!);
      await tab.close();
    }
    figures['first_meaningful_paint_ms'] = { median: median(firsts), all: firsts.map(round), goal: 1000 };

    const tab = await chromium.open('/nodes');
    await watch(tab.page, '.paper', DRAWN);
    await tab.page.goto(`/runs/${run}`);
    await tab.page.locator(DRAWN).first().waitFor({ state: 'attached' });
    figures['update_of_50_tasks_ms'] = { goal: 50, ...(await updates('all in sight')) };
    figures['panning'] = { goal_fps: 50, all_in_sight: await frames(tab.page, () => drag(tab.page, '.sheet', 4)) };
    await tab.page.getByPlaceholder('Find a step').fill(`s0-${Math.floor(shape.width / 2)}`);
    await tab.page.locator('.paper .box .name').first().waitFor();
    figures['update_of_50_tasks_near_ms'] = { goal: 50, ...(await updates('near')) };
    (figures['panning'] as Record<string, unknown>)['near'] = await frames(tab.page, () => drag(tab.page, '.sheet', 4));
    const farther = tab.page.getByRole('button', { name: 'Farther' });
    for (let turn = 0; turn < 3; turn++) await farther.click();
    (figures['panning'] as Record<string, unknown>)['middle'] = await frames(tab.page, () => drag(tab.page, '.sheet', 4));
    figures['heap_bytes_waiting'] = await heap(tab.page);
    tab.expect_clean();
    await tab.close();

    async function updates(name: string): Promise<Record<string, unknown>> {
      const page = tab.page;
      await page.evaluate(() => ((window as unknown as { seen: { updates: number[]; arrived: null } }).seen.updates = []));
      for (let turn = 0; turn < 15; turn++) {
        await program.ask('POST', `/v1/runs/${run}/resume`);
        await page.waitForTimeout(250);
        await program.ask('POST', `/v1/runs/${run}/pause`);
        await page.waitForTimeout(250);
      }
      const { last_event } = await program.ask<{ last_event: number }>('GET', `/v1/runs/${run}`);
      const last = await program.ask<{ events: { event: string; tasks?: string[] }[] }>('GET', `/v1/runs/${run}/events?after=${last_event - 1}`);
      // What is measured is what it says: fifty tasks at once.
      expect(last.events[0]).toMatchObject({ event: 'run_paused' });
      expect(last.events[0]!.tasks).toHaveLength(50);
      const { updates } = await seen(page);
      const sorted = [...updates].sort((a, b) => a - b);
      return { view: name, median: median(updates), p95: round(sorted[Math.floor(sorted.length * 0.95)] ?? Number.NaN), longest: round(sorted.at(-1) ?? Number.NaN), updates: updates.length };
    }
  } finally {
    await chromium.end();
    await program.end();
  }
});

it('a run that runs: memory and frames over a busy stream', async () => {
  const program = await Program.start();
  const chromium = await Chromium.start(program);
  try {
    const { run } = await program.ask<{ run: string }>('POST', '/v1/runs', { document: laneway(shape), paused: true, max_parallel: 16 });
    const tab = await chromium.open(`/runs/${run}`);
    await tab.page.locator(DRAWN).first().waitFor({ state: 'attached', timeout: 60_000 });
    const before = await heap(tab.page);
    const samples: number[] = [];
    let status = 'running';
    const begun = Date.now();
    await program.ask('POST', `/v1/runs/${run}/resume`);
    const rate = await frames(tab.page, async () => {
      while (status === 'running' && Date.now() - begun < 300_000) {
        await tab.page.waitForTimeout(2_000);
        samples.push(await heap(tab.page));
        const { runs } = await program.ask<{ runs: { run: string; status: string }[] }>('GET', '/v1/runs?limit=1');
        status = runs[0]?.status ?? 'gone';
      }
    });
    await tab.page.waitForTimeout(1_500);
    const { last_event } = await program.ask<{ last_event: number }>('GET', `/v1/runs/${run}`);
    figures['busy_stream'] = {
      run: status,
      seconds: round((Date.now() - begun) / 1000),
      events: last_event,
      heap_before_bytes: before,
      heap_most_bytes: Math.max(...samples),
      heap_after_bytes: await heap(tab.page),
      ...rate,
    };
    expect(Math.max(...samples)).toBeLessThan(before + 150 * 1024 * 1024);
    tab.expect_clean();
    await tab.close();
  } finally {
    await chromium.end();
    await program.end();
  }
});

it('the page of Dagu for the same graph', async () => {
  const binary = process.env['DAGU'] ?? resolve(import.meta.dirname, '../../target/bench/npm/node_modules/@dagu-org/dagu-linux-x64/bin/dagu');
  if (!existsSync(binary)) {
    results['dagu'] = { skipped: `${binary} is not there; \`cargo xtask bench\` brings it, or name one in DAGU` };
    return;
  }
  const found: Record<string, unknown> = {};
  results['dagu'] = found;
  // What it can draw, and then the size that is asked for.
  for (const size of [{ layers: 10, width: 10 }, { layers: 32, width: 32 }, shape]) {
    found[`${size.layers * size.width} steps`] = await dagu_page(binary, size);
  }
});

async function dagu_page(binary: string, size: Shape): Promise<unknown> {
  const directory = mkdtempSync(join(tmpdir(), 'dagu-bench-'));
  const port = await free_port();
  mkdirSync(join(directory, 'dags'));
  writeFileSync(join(directory, 'dags', 'measured.yaml'), dagu(size));
  const env = { PATH: '/usr/bin:/bin', HOME: directory, DAGU_HOME: directory, TZ: 'UTC' };
  const server = spawn(binary, ['start-all', '--host', '127.0.0.1', '--port', String(port), '--dags', join(directory, 'dags')], { env, stdio: 'ignore' });
  const browser = await launcher.launch({ executablePath: process.env['LANEWAY_TEST_CHROMIUM'] ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
  try {
    const url = `http://127.0.0.1:${port}`;
    await expect.poll(() => fetch(`${url}/api/v2/dags`).then((answer) => answer.status, () => 0), { timeout: 60_000 }).toBe(200);
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    results['chromium'] = browser.version();
    const begun = Date.now();
    await page.goto(`${url}/dags/measured/spec`, { timeout: 60_000 }).catch(() => undefined);
    const node = page.locator('svg g.node, .react-flow__node').first();
    const drawn = await node.waitFor({ state: 'attached', timeout: 90_000 }).then(
      () => Date.now() - begun,
      () => null,
    );
    if (drawn === null) return { first_paint_of_the_graph_ms: null, why: `no step was drawn within 90 s; it says: ${(await page.locator('main').first().innerText({ timeout: 5_000 }).catch(() => 'nothing')).slice(0, 300)}` };
    const nodes = await page.locator('svg g.node, .react-flow__node').count();
    const sheet = (await page.locator('.react-flow__pane').count()) > 0 ? '.react-flow__pane' : 'svg:has(g.node)';
    const panning = await frames(page, () => drag(page, sheet, 4)).catch((error: Error) => error.message.slice(0, 200));
    return { first_paint_of_the_graph_ms: drawn, elements_for_steps: nodes, panning };
  } finally {
    await browser.close();
    server.kill('SIGKILL');
    await new Promise((done) => (server.exitCode !== null ? done(null) : server.once('exit', done)));
    rmSync(directory, { recursive: true, force: true });
  }
}
