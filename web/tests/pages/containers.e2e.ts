// Warm containers on a real engine: seen as they change, warmed and drained.
// `cargo xtask docker …` lends the engine by LANEWAY_TEST_DOCKER.
import { expect, test } from 'vitest';
import { site } from '../harness/site';

const engine = process.env['LANEWAY_TEST_DOCKER'];
if (!engine) throw new Error('there is no container engine: run this with `cargo xtask docker npm run e2e`, which names one in LANEWAY_TEST_DOCKER');
const DOCUMENT = `name: warmed
steps:
  work: {run: "echo worked", pool: oven}
pools:
  oven: {image: "laneway-test/busybox:1", max: 3, dormancy: 5m}
`;
let run: string;
const here = site({ env: { LANEWAY_DOCKER_HOST: engine } }, async (program) => {
  await program.apply(DOCUMENT);
  run = await program.submit({ workflow: 'warmed' });
  expect(await program.until_ended(run)).toBe('succeeded');
});

test('a task tells in which container of which pool its attempts ran', async () => {
  const tab = await here.open(`/runs/${run}/tasks/work`, { expected: /ERR_NETWORK_CHANGED/ });
  const told = tab.page.getByTestId('task-container');
  await told.filter({ hasText: 'laneway-test/busybox:1' }).waitFor();
  const name = /laneway-[0-9a-f]+-warm-\d+/.exec((await told.textContent()) ?? '')?.[0];
  expect(name).toBeDefined();
  expect(await tab.axe()).toEqual([]);
  await tab.shot('task-container');
  // It is one of those that the pool tells of.
  await told.getByRole('link', { name: 'oven' }).click();
  const taken = tab.page.getByRole('row').filter({ hasText: 'container taken' });
  await taken.filter({ hasText: name! }).filter({ hasText: 'step: work, attempt: 1' }).waitFor();
  expect(await here.program.command('explain', run, 'work')).toContain(`in ${name} (laneway-test/busybox:1, pool oven)`);
  tab.expect_clean();
  await tab.close();
});

test('every container’s state and its transitions are shown; the pool is warmed and drained', async () => {
  // A container that starts is a change of the network, at which Chromium drops what is on its way.
  const tab = await here.open('/pools', { expected: /ERR_NETWORK_CHANGED/ });
  const { page } = tab;
  await page.getByRole('heading', { name: 'oven', level: 2 }).waitFor();
  await page.getByRole('row').filter({ hasText: 'container running' }).first().waitFor();
  await page.getByRole('button', { name: 'Warm…' }).last().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('kept warm on here, up to').waitFor();
  await dialog.getByLabel('Containers').fill('2');
  await dialog.getByRole('button', { name: 'Warm it' }).click();
  await page.getByText('oven: 1 node was told').waitFor();
  const card = page.getByRole('article');
  await expect.poll(() => card.getByRole('row').count(), { timeout: 30_000 }).toBe(3);
  expect(await tab.axe()).toEqual([]);
  await tab.shot('pools-warm');
  await page.getByRole('button', { name: 'Drain…' }).click();
  await dialog.getByText('Its containers on here are removed').waitFor();
  await dialog.getByRole('button', { name: 'Drain it' }).click();
  await page.getByText('oven on here is being drained').waitFor();
  await page.getByRole('row').filter({ hasText: 'container terminated' }).first().waitFor({ timeout: 30_000 });
  tab.expect_clean();
  await tab.close();
});
