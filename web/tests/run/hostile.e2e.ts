// Names, items, logs, outputs, reasons, errors and files that try to be code: they are shown as the text that they are.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Chromium } from '../harness/browser';
import { Program } from '../harness/program';
import { HOSTILE, reads, unharmed } from './helpers';

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

const json = (value: unknown): string => JSON.stringify(value);

it('nothing hostile becomes code, wherever it stands', { timeout: 120_000 }, async () => {
  const output = json(Object.fromEntries(HOSTILE.map((text, n) => [`k${n}`, text])));
  const document = `
name: hostile
on_failure: continue
params:
  text: {type: string, default: ${json(HOSTILE[0])}}
steps:
  print:
    env: {TEXT: ${json(HOSTILE.join('\n'))}, OUT: ${json(output)}}
    run: |
      printf '%s\\n' "$TEXT"
      printf '%s' "$OUT" > "$LANEWAY_OUTPUT"
  each:
    for_each: ${json(HOSTILE)}
    env: {TEXT: "\${{ item }}"}
    run: 'printf "%s\\n" "$TEXT" >&2; exit 1'
  wrong: {run: ${json(`printf '%s' '{"x": "${HOSTILE[1]}"' > "$LANEWAY_OUTPUT"`)}}
  file: {run: ${json(`echo x > '<img src=x onerror=alert(1)>.txt'`)}, artifacts: ["*.txt"]}
  approve: {wait: {signal: approved}}
`;
  const run = await program.submit({ document }, { text: HOSTILE[2]! });
  await program.event(run, (event) => event['event'] === 'task_parked' && event['step'] === 'approve');
  await program.ask('POST', `/v1/runs/${run}/tasks/approve/signal`, { signal: 'approved', reason: HOSTILE[1] });
  await program.until_ended(run);
  for (const theme of ['light', 'dark'] as const) {
    const tab = await chromium.open(`/runs/${run}`, { theme });
    await reads(tab, '[data-testid=run-status]', 'failed');
    await tab.page.locator('.paper .box').first().waitFor();
    await unharmed(tab);
    for (const part of ['timeline', 'tasks', 'events', 'outputs', 'artifacts', 'effects', 'merges']) {
      await tab.page.goto(`/runs/${run}?tab=${part}`);
      await tab.page.locator('.part > *').first().waitFor();
      if (part === 'outputs') await reads(tab, '[role=row]', HOSTILE[1]!);
      if (part === 'tasks') await reads(tab, '[role=row]', HOSTILE[0]!);
      await unharmed(tab);
    }
    await tab.page.goto(`/runs/${run}/tasks/print`);
    for (const text of HOSTILE.slice(0, 8)) await reads(tab, '.row', text);
    await unharmed(tab);
    await tab.page.goto(`/runs/${run}/tasks/${encodeURIComponent('each[1]')}`);
    await reads(tab, '.panel', HOSTILE[1]!);
    await unharmed(tab);
    for (const step of ['wrong', 'approve', 'file']) {
      await tab.page.goto(`/runs/${run}/tasks/${step}`);
      await tab.page.locator('[data-testid=task-status]').waitFor();
      await unharmed(tab);
    }
    // An address that is code itself, and one that names nothing.
    await tab.page.goto(`/runs/${run}?tab=tasks&q=${encodeURIComponent(HOSTILE[0]!)}&step=${encodeURIComponent(HOSTILE[1]!)}`);
    await reads(tab, 'aside', HOSTILE[1]!);
    await reads(tab, '[role=row]', HOSTILE[0]!);
    await unharmed(tab);
    await tab.shot(`run-hostile-${theme}`);
    tab.expect_clean();
    await tab.close();
  }
  expect(HOSTILE.length).toBeGreaterThan(5);
});
