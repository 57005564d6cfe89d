// The page of a run against the real program: its parts, live, in the past, and everything that can be done to it.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Chromium, type Tab } from '../harness/browser';
import { binary, Program } from '../harness/program';
import { artifacts, effects, levels, merging, rich, slow, until } from './documents';
import { accessible, agree, names, press, reads } from './helpers';

let program: Program;
let chromium: Chromium;
const tabs: Tab[] = [];
async function open(...asked: Parameters<Chromium['open']>): Promise<Tab> {
  const tab = await chromium.open(...asked);
  tabs.push(tab);
  return tab;
}
const parked = (step: string) => (event: Record<string, unknown>) => event['event'] === 'task_parked' && event['step'] === step;
const started = (step: string) => (event: Record<string, unknown>) => event['event'] === 'task_started' && event['step'] === step;
const status = async (run: string): Promise<string> => (await program.ask<{ status: string }>('GET', `/v1/runs/${run}`)).status;
let turn = 0;
/** The beginning of the name of a file that lets a run go on; what still waits when a test ends is let go. */
const gates: string[] = [];
const gate = (): string => {
  const name = join(program.directory, `gate${turn++}`);
  gates.push(name);
  return name;
};

/** Copies of a run that failed are kept; where they are mounts, the folder could not be removed. */
function unmount(directory: string): void {
  if (!existsSync('/proc/mounts')) return;
  const mounts = readFileSync('/proc/mounts', 'utf8').split('\n').map((line) => line.split(' ')[1] ?? '');
  for (const place of mounts.filter((place) => place.startsWith(`${directory}/`)).reverse()) execFileSync('umount', [place]);
}

beforeAll(async () => {
  // Steps call the program by its name.
  program = await Program.start({ args: ['--slots', '16'], env: { PATH: `${dirname(binary())}:${process.env['PATH'] ?? ''}` } });
  chromium = await Chromium.start(program);
});
afterAll(async () => {
  await chromium.end();
  await program.stop();
  unmount(program.directory);
  await program.end();
});
afterEach(async () => {
  for (const name of gates.splice(0)) writeFileSync(`${name}-go`, '');
  const open = tabs.splice(0);
  for (const tab of open) await tab.close();
  for (const tab of open) tab.expect_clean();
});

/** `rich` up to where it waits for an approval and for a file. */
async function rich_run(): Promise<{ run: string; go: () => void }> {
  const folder = gate();
  const run = await program.submit({ document: rich(folder).replaceAll(`${folder}/go`, `${folder}-go`) });
  await program.event(run, parked('approve'));
  await program.event(run, (event) => event['event'] === 'task_skipped' && event['step'] === 'behind');
  await program.event(run, (event) => event['event'] === 'task_finished' && event['step'] === 'parse');
  return { run, go: () => writeFileSync(`${folder}-go`, '') };
}

describe('a run', () => {
  it('shows every part, in both themes, without a fault of axe', { timeout: 180_000 }, async () => {
    const { run } = await rich_run();
    for (const theme of ['light', 'dark'] as const) {
      const tab = await open(`/runs/${run}?step=approve`, { theme });
      await reads(tab, '[data-testid=run-status]', 'running');
      await tab.page.locator('.paper .box').first().waitFor();
      await reads(tab, 'aside', 'waits for the signal');
      await accessible(tab);
      await tab.shot(`run-graph-${theme}`);
      for (const part of ['timeline', 'tasks', 'events', 'outputs', 'artifacts', 'effects', 'merges']) {
        await tab.page.goto(`/runs/${run}?tab=${part}`);
        await tab.page.locator('nav a[aria-current=page]').filter({ hasText: /./ }).first().waitFor();
        await tab.page.locator('.part > *').first().waitFor();
        await accessible(tab);
        await tab.shot(`run-${part}-${theme}`);
      }
    }
  });

  it('fits a narrow screen', async () => {
    const { run } = await rich_run();
    for (const language of ['en', 'de']) {
      const tab = await open(`/runs/${run}`, { width: 360, height: 740, language });
      for (const part of ['graph', 'timeline', 'tasks', 'events', 'outputs', 'merges']) {
        await tab.page.goto(`/runs/${run}?tab=${part}&step=approve`);
        await tab.page.locator('.part > *').first().waitFor();
        expect(await tab.overflow(), `${part} ${language}`).toBe(0);
        await tab.shot(`run-${part}-narrow-${language}`);
      }
      await tab.page.goto(`/runs/${run}/tasks/fetch`);
      await reads(tab, '.row', 'fetched');
      expect(await tab.overflow(), `task ${language}`).toBe(0);
      await tab.shot(`task-narrow-${language}`);
    }
  });

  it('tells states by shape and word, the node of each task, and the items of a list by counts', async () => {
    const { run } = await rich_run();
    const tab = await open(`/runs/${run}`);
    const box = (name: string) => tab.page.locator('.paper .box', { has: tab.page.locator(`title:text-matches("^${name}( |$)")`) }).first();
    await box('bad').waitFor();
    expect(await box('bad').getAttribute('class')).toContain('is-failed');
    expect(await box('bad').locator('.mark path').count()).toBe(2);
    expect(await box('bad').locator('.note').textContent()).toContain('here');
    expect(await box('bad').locator('.note').textContent()).toContain('\u00d72');
    expect(await box('parse').locator('.note').textContent()).toContain('3/3');
    expect(await box('publish').getAttribute('class')).toContain('is-pending');
    expect(await tab.page.locator('.paper .frame').count()).toBe(1);
  });

  it('folds groups, finds steps, marks the critical path, and is a table too', async () => {
    const { run } = await rich_run();
    const tab = await open(`/runs/${run}`);
    const boxes = tab.page.locator('.paper .box');
    await boxes.first().waitFor();
    const all = await boxes.count();
    await press(tab, 'Close groups');
    await tab.page.locator('.paper .of-group').waitFor();
    expect(await boxes.count()).toBe(all - 1);
    expect(await tab.page.locator('.paper .of-group .note').textContent()).toContain('2/2');
    await press(tab, 'Open groups');
    await tab.page.getByLabel('Critical path').check();
    await tab.page.locator('.paper .box.critical').first().waitFor();
    expect(await tab.page.locator('.paper .lines .line.critical').getAttribute('d')).toMatch(/^M/);
    await tab.page.getByPlaceholder('Find a step').fill('pub');
    await tab.page.locator('.paper .box.found').waitFor();
    expect(await tab.page.locator('.paper .box.found').count()).toBe(1);
    await tab.page.getByPlaceholder('Find a step').fill('');
    await tab.page.getByLabel('As a table').check();
    const table = tab.page.getByRole('table', { name: 'Steps of the graph' });
    await table.waitFor();
    expect(await table.getByRole('row').count()).toBe(all + 1);
    expect(await table.getByRole('row', { name: /^publish/ }).textContent()).toContain('approve');
    await accessible(tab);
  });

  it('is walked by keys along its edges', async () => {
    const { run } = await rich_run();
    const tab = await open(`/runs/${run}`);
    await tab.page.locator('.paper .box').first().waitFor();
    await tab.page.locator('.sheet').focus();
    const at = () => tab.page.locator('.paper .box.focused title').textContent();
    expect(await at()).toMatch(/^fetch/);
    await tab.page.keyboard.press('ArrowRight');
    const second = await at();
    expect(second).not.toMatch(/^fetch/);
    await tab.page.keyboard.press('ArrowLeft');
    expect(await at()).toMatch(/^fetch/);
    await tab.page.keyboard.press('ArrowRight');
    // Said to whoever cannot see it.
    await expect.poll(() => tab.page.locator('p.sr-only[aria-live=polite]').textContent()).toMatch(/needs 1/);
    await tab.page.keyboard.press('Enter');
    await tab.page.locator('aside h2').waitFor();
    expect(second).toContain((await tab.page.locator('aside h2').textContent())!.trim());
    // The keys go on from where they were.
    expect(await tab.page.evaluate(() => document.activeElement?.classList.contains('sheet'))).toBe(true);
    expect(await at()).toBe(second);
  });

  it('moves when it is dragged and zoomed', async () => {
    const { run } = await rich_run();
    const tab = await open(`/runs/${run}`);
    const box = tab.page.locator('.paper .box').first();
    await box.waitFor();
    const before = (await box.boundingBox())!;
    const sheet = (await tab.page.locator('.sheet').boundingBox())!;
    const [x, y] = [sheet.x + sheet.width - 40, sheet.y + sheet.height - 40];
    await tab.page.mouse.move(x, y);
    await tab.page.mouse.down();
    await tab.page.mouse.move(x - 30, y - 20, { steps: 4 });
    await tab.page.mouse.up();
    await expect.poll(async () => Math.abs((await box.boundingBox())!.x - before.x + 30)).toBeLessThan(2);
    await press(tab, 'Closer');
    await expect.poll(async () => (await box.boundingBox())!.width).toBeGreaterThan(before.width * 1.2);
    await press(tab, 'Show all');
    await expect.poll(async () => Math.round((await box.boundingBox())!.width)).toBe(Math.round(before.width));
  });

  it('moves what runs, unless motion is not wanted', async () => {
    const { run } = await rich_run();
    for (const [reduced, name] of [[false, 'breathe'], [true, 'none']] as const) {
      const tab = await open(`/runs/${run}`, { reduced });
      const mark = tab.page.locator('.paper .is-running .mark').first();
      await mark.waitFor();
      expect(await mark.evaluate((element) => getComputedStyle(element).animationName)).toBe(name);
    }
  });

  it('follows what happens without being asked again', async () => {
    const { run, go } = await rich_run();
    const tab = await open(`/runs/${run}?tab=tasks`);
    await reads(tab, '[role=row]', /slow.*running/);
    go();
    await reads(tab, '[role=row]', /slow.*succeeded/);
  });

  it('goes back to any event, and to now', async () => {
    const { run } = await rich_run();
    const tab = await open(`/runs/${run}?tab=events`);
    await reads(tab, 'output', /event \d+ of \d+/);
    await tab.page.getByRole('button', { name: 'First event' }).click();
    await reads(tab, '.past', 'As it was after event 1 of');
    expect(tab.page.url()).toContain('at=1');
    await tab.page.getByRole('link', { name: 'Tasks' }).click();
    await reads(tab, '[role=row]', /fetch.*pending/);
    expect(await names(tab)).toEqual([]);
    await tab.page.getByRole('link', { name: 'Back to now' }).click();
    await reads(tab, '[role=row]', /fetch.*succeeded/);
    await tab.page.goto(`/runs/${run}?tab=tasks&at=6`);
    await reads(tab, '.past', 'event 6');
  });

  it('shows lanes by step, and by node and slot', async () => {
    const { run } = await rich_run();
    const tab = await open(`/runs/${run}?tab=timeline`);
    await reads(tab, '.lane', 'fetch');
    // A retry is a bar of its own.
    await expect.poll(() => tab.page.locator('.lane', { hasText: 'bad' }).locator('svg .one').count()).toBe(2);
    await tab.page.getByRole('link', { name: 'By node and slot' }).click();
    await reads(tab, '.lane', 'here · slot 1');
    expect(await tab.page.locator('.lane', { hasText: 'approve' }).count()).toBe(0);
  });

  it('filters tasks in its address', async () => {
    const { run } = await rich_run();
    const tab = await open(`/runs/${run}?tab=tasks&status=failed`);
    await reads(tab, '[role=status]', '1 task');
    await tab.page.getByPlaceholder('Filter by name or reason').fill('parse');
    await reads(tab, '[role=status]', '0 tasks');
    await tab.page.getByRole('combobox').selectOption('');
    await reads(tab, '[role=status]', '4 tasks');
    expect(tab.page.url()).toContain('q=parse');
  });
});

describe('a run that is not there', () => {
  it('is said so, with a heading, and what to do', async () => {
    const tab = await open('/nodes');
    tab.expected.push(/404/);
    await tab.page.goto('/runs/ffffffff');
    await reads(tab, '[role=alert]', /./);
    expect(await tab.page.locator('h1').count()).toBe(1);
    await accessible(tab);
    const { run } = await rich_run();
    await tab.page.goto(`/runs/${run}/tasks/nothing`);
    await reads(tab, '.panel', 'This run has no task nothing.');
    await accessible(tab);
  });
});

describe('acts', () => {
  it('approve with a reason, which is kept', async () => {
    const { run, go } = await rich_run();
    const tab = await open(`/runs/${run}/tasks/approve`);
    await press(tab, 'Send approved');
    await reads(tab, 'dialog', 'cannot be taken back');
    await tab.page.getByRole('dialog').getByLabel('Reason (kept with it)').fill('looks <b>good</b>');
    await agree(tab, 'Send approved');
    await reads(tab, '[data-testid=task-status]', 'succeeded');
    await reads(tab, '.panel', 'looks <b>good</b>');
    expect(await tab.page.getByRole('button', { name: 'Send approved' }).count()).toBe(0);
    go();
    expect(await program.until_ended(run)).toBe('failed');
  });

  it('send a signal before the step waits for it, which is kept', async () => {
    const folder = gate();
    const document = `name: early\nsteps:\n  first: {run: "${until(`${folder}-go`)}"}\n  ask: {needs: first, wait: {signal: approved}}\n`;
    const run = await program.submit({ document });
    await program.event(run, started('first'));
    for (const page of [`/runs/${run}?step=ask`, `/runs/${run}/tasks/ask`]) {
      const tab = await open(page);
      await tab.page.getByRole('button', { name: 'Send approved' }).waitFor();
    }
    const tab = tabs.at(-1)!;
    await press(tab, 'Send approved');
    await reads(tab, 'dialog', 'does not wait for approved yet');
    await agree(tab, 'Send approved');
    await reads(tab, '.toasts', 'approved is kept until the step waits for it');
    await expect.poll(() => tab.page.getByRole('button', { name: 'Send approved' }).count()).toBe(0);
    writeFileSync(`${folder}-go`, '');
    await reads(tab, '[data-testid=task-status]', 'succeeded');
    expect(await program.until_ended(run)).toBe('succeeded');
  });

  it('pause a run, and undo that', async () => {
    const folder = gate();
    const run = await program.submit({ document: slow(folder).replaceAll(`${folder}/go`, `${folder}-go`) });
    await program.event(run, started('wait'));
    const tab = await open(`/runs/${run}`);
    await reads(tab, '[data-testid=run-status]', 'running');
    expect(await names(tab)).toEqual(['Pause', 'Cancel']);
    await press(tab, 'Pause');
    await reads(tab, '[data-testid=run-status]', 'paused');
    expect(await names(tab)).toEqual(['Resume', 'Cancel']);
    await press(tab, 'Undo');
    await reads(tab, '[data-testid=run-status]', 'running');
    writeFileSync(`${folder}-go`, '');
    await reads(tab, '[data-testid=run-status]', 'succeeded');
    // What succeeded is done.
    expect(await names(tab)).toEqual([]);
  });

  it('pause and cancel the run from the page of a task that runs', async () => {
    const folder = gate();
    const run = await program.submit({ document: slow(folder).replaceAll(`${folder}/go`, `${folder}-go`) });
    await program.event(run, started('wait'));
    const tab = await open(`/runs/${run}/tasks/wait`);
    await reads(tab, '[data-testid=task-status]', 'running');
    await press(tab, 'Pause the run');
    await reads(tab, '.panel', 'Resume the run');
    expect((await program.ask<{ paused: string[] }>('GET', `/v1/runs/${run}`)).paused).toEqual(['run']);
    await press(tab, 'Cancel the run');
    await reads(tab, 'dialog', 'Nothing new starts');
    await agree(tab, 'Cancel the run');
    await reads(tab, '[data-testid=task-status]', 'canceled');
    expect(await tab.page.locator('.panel button').allTextContents()).toEqual(['Retry from here']);
    await accessible(tab);
  });

  it('cancel a run with its consequence stated, and try it again', async () => {
    const folder = gate();
    const run = await program.submit({ document: slow(folder).replaceAll(`${folder}/go`, `${folder}-go`) });
    await program.event(run, started('wait'));
    const tab = await open(`/runs/${run}?step=behind`);
    await press(tab, 'Cancel');
    await reads(tab, 'dialog', 'Nothing new starts');
    await tab.shot('run-cancel-question');
    await agree(tab, 'Leave it');
    await reads(tab, '[data-testid=run-status]', 'running');
    await press(tab, 'Cancel');
    await agree(tab, 'Cancel the run');
    await reads(tab, '[data-testid=run-status]', 'canceled');
    await reads(tab, 'aside', 'canceled');
    writeFileSync(`${folder}-go`, '');
    await press(tab, 'Retry');
    await agree(tab, 'Retry');
    await reads(tab, '.toasts', '2 steps will run');
    await reads(tab, '[data-testid=run-status]', 'succeeded');
  });

  it('retry from a step, skip one and go on', async () => {
    const { run, go } = await rich_run();
    go();
    await program.ask('POST', `/v1/runs/${run}/tasks/approve/signal`, { signal: 'approved' });
    expect(await program.until_ended(run)).toBe('failed');
    const tab = await open(`/runs/${run}/tasks/bad`);
    await reads(tab, '[data-testid=task-why]', 'exit code 3');
    await press(tab, 'Retry from here');
    await agree(tab, 'Retry from here');
    await reads(tab, '.panel', 'attempt 4');
    await expect.poll(() => status(run)).toBe('failed');
    await press(tab, 'Skip and go on');
    await reads(tab, 'dialog', 'counts as if it had succeeded');
    await agree(tab, 'Skip and go on');
    await reads(tab, '[data-testid=task-status]', 'skipped');
    await expect.poll(() => status(run)).toBe('succeeded');
    await tab.page.goto(`/runs/${run}/tasks/behind`);
    await reads(tab, '[data-testid=task-status]', 'succeeded');
    expect(await tab.page.locator('.panel button').count()).toBe(0);
    // The question said how that is undone.
    await tab.page.goto(`/runs/${run}/tasks/bad`);
    await reads(tab, '[data-testid=task-status]', 'skipped');
    await press(tab, 'Retry from here');
    await agree(tab, 'Retry from here');
    await reads(tab, '[data-testid=task-status]', 'failed');
    await expect.poll(() => status(run)).toBe('failed');
  });

  it('let a run that goes level by level go on by one', async () => {
    const { run } = await program.ask<{ run: string }>('POST', '/v1/runs', { document: levels, paused: true });
    const tab = await open(`/runs/${run}?tab=tasks`);
    await press(tab, 'One level on');
    await reads(tab, 'dialog', 'held up again');
    await agree(tab, 'Leave it');
    await press(tab, 'One level on');
    await agree(tab, 'One level on');
    await reads(tab, '[role=row]', /one.*succeeded/);
    await reads(tab, '[role=row]', /two.*pending/);
    await reads(tab, '[data-testid=run-status]', 'paused');
    await press(tab, 'Resume');
    await reads(tab, '[data-testid=run-status]', 'succeeded');
  });

  it('of a run of `laneway run` name the command that goes on with it', async () => {
    const name = join(program.directory, 'alone.yaml');
    writeFileSync(name, 'name: alone\nsteps:\n  only: {run: "exit 3"}\n');
    await expect(program.command('run', name)).rejects.toThrow('ended with 1');
    const { runs } = await program.ask<{ runs: { run: string }[] }>('GET', '/v1/runs?workflow=alone');
    const run = runs[0]!.run;
    const tab = await open(`/runs/${run}?step=only`);
    await reads(tab, '[data-testid=run-status]', 'failed');
    for (const act of ['Retry', 'Retry from here', 'Skip and go on']) {
      const button = tab.page.getByRole('button', { name: act, exact: true });
      expect(await button.getAttribute('aria-disabled'), act).toBe('true');
      expect(await button.getAttribute('title'), act).toMatch(/`laneway retry [0-9a-f]{12}` beside its store/);
    }
    await accessible(tab);
  });

  it('are not offered to a viewer', async () => {
    const { run } = await rich_run();
    const { token } = await program.ask<{ token: string }>('POST', '/v1/tokens', { name: `viewer${turn++}`, role: 'viewer' });
    const tab = await open(`/runs/${run}/tasks/approve`, { token });
    await reads(tab, '[data-testid=task-why]', 'waits for the signal');
    expect(await tab.page.locator('.panel button').count()).toBe(0);
    await tab.page.goto(`/runs/${run}`);
    await reads(tab, '[data-testid=run-status]', 'running');
    expect(await names(tab)).toEqual([]);
  });
});

describe('what a run leaves', () => {
  it('are artifacts that can be fetched', async () => {
    const run = await program.submit({ document: artifacts });
    expect(await program.until_ended(run)).toBe('succeeded');
    const tab = await open(`/runs/${run}?tab=artifacts`);
    await reads(tab, '[role=row]', 'report.html');
    const coming = tab.page.waitForEvent('download');
    await press(tab, 'Download report.html');
    expect((await coming).suggestedFilename()).toBe('report.html');
  });

  it('are conflicts in words, and merged results', async () => {
    const run = await program.submit({ document: merging });
    expect(await program.until_ended(run)).toBe('failed');
    const tab = await open(`/runs/${run}?tab=merges`);
    await reads(tab, '.part', '1 merge stopped at a conflict');
    await reads(tab, '.part', 'shared.txt');
    await accessible(tab);
    await tab.shot('run-conflict');
  });

  it('are effects', async () => {
    const run = await program.submit({ document: effects });
    expect(await program.until_ended(run)).toBe('succeeded');
    const tab = await open(`/runs/${run}?tab=effects`);
    await reads(tab, '[role=row]', /charge/);
    await accessible(tab);
  });
});
