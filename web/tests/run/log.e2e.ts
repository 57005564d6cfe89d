// Logs against the real program: colours, following, search, links to lines, attempts side by side, download, and one at its cap.
import { appendFileSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Chromium, type Tab } from '../harness/browser';
import { Program } from '../harness/program';
import { big_log, until } from './documents';
import { accessible, press, reads } from './helpers';

let program: Program;
let chromium: Chromium;
const tabs: Tab[] = [];
async function open(...asked: Parameters<Chromium['open']>): Promise<Tab> {
  const tab = await chromium.open(...asked);
  tabs.push(tab);
  return tab;
}

beforeAll(async () => {
  program = await Program.start();
  chromium = await Chromium.start(program);
});
afterAll(async () => {
  await chromium.end();
  await program.end();
});
afterEach(async () => {
  const open = tabs.splice(0);
  for (const tab of open) await tab.close();
  for (const tab of open) tab.expect_clean();
});

const lines = (tab: Tab): Promise<number> => tab.page.locator('[role=log]').evaluate((log) => Number((log as HTMLElement).dataset['lines']));

describe('a log', () => {
  it('has colours, and neither links nor markup, in both themes', async () => {
    const document = `
name: colours
steps:
  print:
    run: |
      printf '\\033[31mred\\033[0m \\033[1;92mbright\\033[0m \\033[44mon blue\\033[0m \\033[38;5;208morange\\033[0m\\n'
      printf '\\033]8;;https://evil.example\\033\\\\click\\033]8;;\\033\\\\ <b>bold</b> \\033[2J\\007\\n'
      printf 'to stderr\\n' >&2
`;
    const run = await program.submit({ document });
    await program.until_ended(run);
    for (const theme of ['light', 'dark'] as const) {
      const tab = await open(`/runs/${run}/tasks/print`, { theme });
      await reads(tab, '.row', 'red');
      expect(await tab.page.locator('.row .ansi-f1').textContent()).toBe('red');
      expect(await tab.page.locator('.row .ansi-b4').textContent()).toBe('on blue');
      expect(await tab.page.locator('.row', { hasText: 'click' }).locator('.text a, .text b').count()).toBe(0);
      expect(await tab.page.locator('.row', { hasText: 'click' }).locator('.text').textContent()).toBe('click <b>bold</b> \u2407');
      expect(await tab.page.locator('.row.stderr').textContent()).toContain('to stderr');
      await accessible(tab);
      await tab.shot(`log-colours-${theme}`);
    }
  });

  it('is followed while it grows, until somebody scrolls up', async () => {
    const file = join(program.directory, 'grows');
    writeFileSync(file, '');
    const document = `
name: grows
steps:
  tail: {run: "tail -n +1 -f ${file} & TAIL=$!; ${until(`${file}.end`)}; kill $TAIL"}
`;
    const run = await program.submit({ document });
    await program.event(run, (event) => event['event'] === 'task_started');
    const tab = await open(`/runs/${run}/tasks/tail`);
    appendFileSync(file, Array.from({ length: 300 }, (_, n) => `line ${n + 1}\n`).join(''));
    await reads(tab, '.row', 'line 300');
    await tab.page.locator('[role=log]').hover();
    await tab.page.mouse.wheel(0, -2000);
    await expect.poll(() => tab.page.getByLabel('follow').isChecked()).toBe(false);
    appendFileSync(file, 'line 301\n');
    await expect.poll(() => lines(tab)).toBe(301);
    expect(await tab.page.locator('.row', { hasText: 'line 301' }).count()).toBe(0);
    await tab.page.getByLabel('follow').check();
    appendFileSync(file, 'line 302\n');
    await reads(tab, '.row', 'line 302');
    writeFileSync(`${file}.end`, '');
    await program.until_ended(run);
    await expect.poll(() => tab.page.getByLabel('follow').count()).toBe(0);
  });

  it('shows attempts side by side, and links to a line', async () => {
    const document = `
name: attempts
steps:
  try: {retry: {max: 2, backoff: 10ms}, run: "seq 1 200 | sed \\"s/^/attempt $LANEWAY_ATTEMPT line /\\"; test $LANEWAY_ATTEMPT = 3"}
`;
    const run = await program.submit({ document });
    await program.until_ended(run);
    const tab = await open(`/runs/${run}/tasks/try?attempt=1,3#L120`, { width: 1400 });
    await expect.poll(() => tab.page.locator('[role=log]').count()).toBe(2);
    await reads(tab, '.row.marked', 'attempt 1 line 120');
    await tab.shot('log-side-by-side');
    await tab.page.getByRole('checkbox', { name: 'attempt 2' }).check();
    await expect.poll(() => tab.page.locator('[role=log]').count()).toBe(3);
    expect(tab.page.url()).toContain('attempt=1%2C2%2C3');
    await tab.page.goto(`/runs/${run}/tasks/try?attempt=2`);
    await reads(tab, '.row', 'attempt 2 line 200');
    await tab.page.locator('.row', { hasText: 'attempt 2 line 199' }).locator('.number').click();
    expect(tab.page.url()).toMatch(/attempt=2#L199$/);
    await reads(tab, '.row.marked', 'attempt 2 line 199');
  });

  it('offers every attempt of a step that was tried often, the newest first', async () => {
    const document = 'name: often\nsteps:\n  try: {retry: {max: 24, backoff: 0s}, run: "echo try $LANEWAY_ATTEMPT; test $LANEWAY_ATTEMPT = 25"}\n';
    const run = await program.submit({ document });
    await program.until_ended(run);
    const tab = await open(`/runs/${run}/tasks/try`);
    await reads(tab, '.row', 'try 25');
    const offered = tab.page.locator('.logs fieldset label');
    await expect.poll(() => offered.count()).toBe(25);
    expect(await offered.first().textContent()).toContain('attempt 25');
    await tab.page.getByRole('checkbox', { name: 'attempt 1', exact: true }).check();
    await reads(tab, '.row', 'try 1');
  });

  it('of 64 MiB scrolls, is searched to its end, and is downloaded whole', { timeout: 180_000 }, async () => {
    const run = await program.submit({ document: big_log(64) });
    await program.until_ended(run);
    const tab = await open(`/runs/${run}/tasks/print`);
    const total = Math.floor((64 * 1024 * 1024) / 91);
    // The cap of a log may cut its end off; it says so in a note.
    await expect.poll(() => lines(tab), { timeout: 90_000 }).toBeGreaterThan(total * 0.9);
    await expect.poll(() => tab.page.getByLabel('follow').count(), { timeout: 60_000 }).toBe(0);
    const log = tab.page.locator('[role=log]');
    // Half of it, by the bar.
    await log.evaluate((box) => (box.scrollTop = box.scrollHeight / 2));
    await expect.poll(async () => Number((await tab.page.locator('.row .number').first().textContent()) ?? 0)).toBeGreaterThan(total * 0.4);
    await expect.poll(() => tab.page.locator('.row', { hasText: '…' }).count()).toBe(0);
    expect(await tab.page.locator('.row').count()).toBeLessThan(120);
    // Frames while it is scrolled by the wheel.
    await log.hover();
    const rate = tab.page.evaluate(
      () =>
        new Promise<number>((done) => {
          let [frames, begun] = [0, performance.now()];
          const count = (): void => {
            frames += 1;
            if (performance.now() - begun > 2000) done((frames * 1000) / (performance.now() - begun));
            else requestAnimationFrame(count);
          };
          requestAnimationFrame(count);
        }),
    );
    for (let turn = 0; turn < 40; turn++) {
      await tab.page.mouse.wheel(0, 300);
      await tab.page.waitForTimeout(40);
    }
    expect(await rate).toBeGreaterThan(20);
    await tab.page.getByPlaceholder('Search the log').fill('000600000 ');
    await reads(tab, '[role=status]', '1 of 1', 60_000);
    await reads(tab, '.row.found', '000600000');
    const heap = await tab.page.evaluate(() => (performance as unknown as { memory: { usedJSHeapSize: number } }).memory.usedJSHeapSize);
    expect(heap).toBeLessThan(150 * 1024 * 1024);
    const coming = tab.page.waitForEvent('download', { timeout: 60_000 });
    await press(tab, 'Download');
    const text = await readFile((await (await coming).path())!, 'utf8');
    expect(text.startsWith('000000001 ')).toBe(true);
    expect(text.length).toBeGreaterThan(58 * 1024 * 1024);
  });
});
