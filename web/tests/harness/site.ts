// A program with something in it, and a browser: what most tests of pages begin with.
import { afterAll, beforeAll } from 'vitest';
import { Chromium, type Looks, type Tab } from './browser';
import * as documents from './documents';
import { Program, type Options } from './program';

export type Site = { program: Program; chromium: Chromium; open: (path: string, looks?: Looks) => Promise<Tab> };

/** Started before the tests of a file and ended behind them; tabs that a test left open are closed with it. */
export function site(options: Options = {}, fill: (program: Program) => Promise<void> = async () => {}): Site {
  const shared = {} as Site;
  beforeAll(async () => {
    shared.program = await Program.start(options);
    await fill(shared.program);
    shared.chromium = await Chromium.start(shared.program);
    shared.open = (path, looks) => shared.chromium.open(path, looks);
  }, 60_000);
  afterAll(async () => {
    await shared.chromium?.end();
    await shared.program?.end();
  }, 60_000);
  return shared;
}

/** Every kind of workflow applied; some runs that ended well and badly, one that runs, one that waits for it, one for a person. */
export async function fill(program: Program): Promise<void> {
  for (const document of Object.values(documents)) await program.apply(document);
  await program.apply(documents.GOOD.replace('echo fetched', 'echo fetched again'));
  for (let count = 0; count < 3; count += 1) await program.until_ended(await program.submit({ workflow: 'good' }));
  await program.until_ended(await program.submit({ workflow: 'bad' }));
  const holder = await program.submit({ workflow: 'long' });
  await program.event(holder, (event) => event['event'] === 'task_started');
  await program.submit({ workflow: 'long' });
  const asking = await program.submit({ workflow: 'asks' });
  await program.event(asking, (event) => event['event'] === 'task_parked');
}
