// Figures of a run of 10,000 tasks: first meaningful paint, updates of 50 tasks, panning, memory over a busy stream; and what Dagu's page
// makes of the same graph. Tells what it measured as JSON, in BENCH_OUT if that is set; `cargo xtask bench web` judges and shows it.
//   TASKS=10000 ROUNDS=5 LANEWAY_BIN=…/release/laneway DAGU=…/dagu npm run bench
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { Page } from 'playwright-core';
import { Chromium, launch } from '../tests/harness/browser';
import { free_port, Program } from '../tests/harness/program';
import { dagu, laneway, type Shape } from './graph';
import { drag, frames, type Frames, heap, seen, watch } from './watch';

const tasks = Number(process.env['TASKS'] ?? 10_000);
const rounds = Number(process.env['ROUNDS'] ?? 5);
const width = Math.max(1, Math.round(Math.sqrt(tasks)));
const shape: Shape = { layers: Math.max(1, Math.round(tasks / width)), width };
const DRAWN = '.paper .spot, .paper .box';
/** Of Dagu's page, in either of the ways in which it draws. */
const DAGU_DRAWN = 'svg g.node, .react-flow__node';

/** As `bench/src/web.rs` reads it. */
interface Told {
  tasks: number;
  chromium: string;
  /** Milliseconds from the navigation to the paint of the first boxes, each round. */
  first_paint_ms: number[];
  /** Milliseconds from the arrival of news of 50 tasks to their paint, each of them. */
  update_far_ms: number[];
  update_near_ms: number[];
  panning: { view: string; frames: Frames }[];
  busy: { status: string; seconds: number; events: number; frames: Frames; heap_before: number; heap_most: number; heap_after: number } | null;
  dagu: { steps: number; first_paint_ms: number[]; elements: number; panning: Frames | null; why: string | null }[];
}
const told: Told = { tasks: shape.layers * shape.width, chromium: '', first_paint_ms: [], update_far_ms: [], update_near_ms: [], panning: [], busy: null, dagu: [] };

afterAll(() => {
  const text = `${JSON.stringify(told, null, 2)}\n`;
  if (process.env['BENCH_OUT']) writeFileSync(process.env['BENCH_OUT'], text);
  else console.log(text);
});

it('a run that waits: first paint, updates, panning', async () => {
  // The only slot is taken: 50 tasks become available and are withdrawn again as often as we say, and none starts.
  const program = await Program.start({ args: ['--slots', '1'] });
  const chromium = await Chromium.start(program);
  try {
    told.chromium = chromium.version;
    const holder = await program.submit({ document: 'name: holder\nsteps:\n  hold: {run: "sleep 3600"}\n' });
    await program.event(holder, (event) => event['event'] === 'task_started');
    const { run } = await program.ask<{ run: string }>('POST', '/v1/runs', { document: laneway(shape), paused: true });
    for (let round = 0; round < rounds; round++) {
      const tab = await chromium.open('/nodes');
      await watch(tab.page, '.paper', DRAWN);
      await tab.page.goto(`/runs/${run}`);
      told.first_paint_ms.push(await first(tab.page, 60_000));
      await tab.close();
    }

    const tab = await chromium.open('/nodes');
    await watch(tab.page, '.paper', DRAWN);
    await tab.page.goto(`/runs/${run}`);
    await tab.page.locator(DRAWN).first().waitFor({ state: 'attached' });
    const panned = async (view: string): Promise<void> => {
      told.panning.push({ view, frames: await frames(tab.page, () => drag(tab.page, '.sheet', 4)) });
    };
    told.update_far_ms = await updates();
    await panned('all in sight');
    await tab.page.getByPlaceholder('Find a step').fill(`s0-${Math.floor(shape.width / 2)}`);
    await tab.page.locator('.paper .box .name').first().waitFor();
    told.update_near_ms = await updates();
    await panned('near');
    const farther = tab.page.getByRole('button', { name: 'Farther' });
    for (let turn = 0; turn < 3; turn++) await farther.click();
    await panned('between');
    tab.expect_clean();
    await tab.close();

    async function updates(): Promise<number[]> {
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
      // What is measured is what it says: fifty tasks at once, or all of a first layer that is smaller.
      expect(last.events[0]).toMatchObject({ event: 'run_paused' });
      expect(last.events[0]!.tasks).toHaveLength(Math.min(50, shape.width));
      return (await seen(page)).updates;
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
    told.busy = {
      status,
      seconds: (Date.now() - begun) / 1000,
      events: last_event,
      frames: rate,
      heap_before: before,
      heap_most: Math.max(...samples),
      heap_after: await heap(tab.page),
    };
    tab.expect_clean();
    await tab.close();
  } finally {
    await chromium.end();
    await program.end();
  }
});

it('the page of Dagu for the same graph', async () => {
  const binary = process.env['DAGU'];
  if (!binary) return;
  // What it can draw, and then the size that is asked for.
  for (const size of [{ layers: 10, width: 10 }, { layers: 32, width: 32 }, shape]) told.dagu.push(await dagu_page(binary, size));
});

async function dagu_page(binary: string, size: Shape): Promise<Told['dagu'][number]> {
  const directory = mkdtempSync(join(tmpdir(), 'dagu-bench-'));
  const port = await free_port();
  mkdirSync(join(directory, 'dags'));
  writeFileSync(join(directory, 'dags', 'measured.yaml'), dagu(size));
  const env = { PATH: '/usr/bin:/bin', HOME: directory, DAGU_HOME: directory, TZ: 'UTC' };
  const server = spawn(binary, ['start-all', '--host', '127.0.0.1', '--port', String(port), '--dags', join(directory, 'dags')], { env, stdio: 'ignore' });
  const browser = await launch();
  const found: Told['dagu'][number] = { steps: size.layers * size.width, first_paint_ms: [], elements: 0, panning: null, why: null };
  try {
    const url = `http://127.0.0.1:${port}`;
    await expect.poll(() => fetch(`${url}/api/v2/dags`).then((answer) => answer.status, () => 0), { timeout: 60_000 }).toBe(200);
    for (let round = 0; round < rounds; round++) {
      const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
      await watch(page, 'body', DAGU_DRAWN);
      await page.goto(`${url}/dags/measured/spec`, { timeout: 60_000 }).catch(() => undefined);
      const at = await first(page, 90_000).catch(() => null);
      if (at === null) {
        const said = await page.locator('main').first().innerText({ timeout: 5_000 }).catch(() => 'nothing');
        found.why = `no step was drawn within 90 s; it says: ${said.slice(0, 200)}`;
        break;
      }
      found.first_paint_ms.push(at);
      if (round + 1 === rounds) {
        found.elements = await page.locator(DAGU_DRAWN).count();
        const sheet = (await page.locator('.react-flow__pane').count()) > 0 ? '.react-flow__pane' : 'svg:has(g.node)';
        found.panning = await frames(page, () => drag(page, sheet, 4)).catch(() => null);
      }
      await page.close();
    }
    return found;
  } finally {
    await browser.close();
    server.kill('SIGKILL');
    await new Promise((done) => (server.exitCode !== null ? done(null) : server.once('exit', done)));
    rmSync(directory, { recursive: true, force: true });
  }
}

/** When something was first painted there. */
async function first(page: Page, within: number): Promise<number> {
  const at = await page.waitForFunction(() => (window as unknown as { seen?: { first: number | null } }).seen?.first ?? null, null, { timeout: within, polling: 50 });
  return (await at.jsonValue()) as number;
}
