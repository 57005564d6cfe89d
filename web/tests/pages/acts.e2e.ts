// Everything that can be done on these pages, and what the server then says.
import { expect, test } from 'vitest';
import { fill, site } from '../harness/site';

const here = site({}, fill);
type Named = Record<string, string>;

test('the run form checks types, submits once, and shows the run', async () => {
  const tab = await here.open('/workflows');
  const { page } = tab;
  await page.getByRole('button', { name: 'Run good' }).click();
  const dialog = page.getByRole('dialog', { name: 'Run good' });
  await dialog.getByLabel('count').fill('many');
  await dialog.getByLabel('list', { exact: false }).fill('[1,');
  await dialog.getByRole('button', { name: 'Run it' }).click();
  await dialog.getByText('count is to be a whole number').waitFor();
  await dialog.getByText('list is not valid JSON').waitFor();
  expect(await dialog.getByLabel('count').evaluate((field) => field === document.activeElement)).toBe(true);
  await dialog.getByLabel('count').fill('7');
  await dialog.getByLabel('list', { exact: false }).fill('["x"]');
  await dialog.getByLabel('who').fill('the <b>sea</b>');
  await dialog.getByLabel('size').selectOption('large');
  await dialog.getByLabel('dry').selectOption('true');
  await dialog.getByRole('button', { name: 'Run it' }).dblclick();
  await page.waitForURL('**/runs/*');
  const run = new URL(page.url()).pathname.split('/')[2] ?? '';
  const shown = await here.program.ask<{ params: Record<string, unknown>; workflow: string }>('GET', `/v1/runs/${run}`);
  expect(shown.params).toEqual({ who: 'the <b>sea</b>', count: 7, size: 'large', dry: true, list: ['x'] });
  expect((await here.program.ask<{ runs: unknown[] }>('GET', '/v1/runs?workflow=good')).runs.length).toBe(4);
  await page.getByText('A run of good was submitted').waitFor();
  tab.expect_clean();
  await tab.close();
});

test('a workflow is paused with its consequence stated, and undone', async () => {
  const tab = await here.open('/workflows/good');
  await tab.page.getByRole('button', { name: 'Pause', exact: true }).click();
  const dialog = tab.page.getByRole('dialog');
  await dialog.getByText('No run of it starts anything new').waitFor();
  await tab.page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  await tab.page.getByRole('button', { name: 'Pause', exact: true }).click();
  await dialog.getByRole('button', { name: 'Pause' }).click();
  await tab.page.getByText('good is paused').waitFor();
  // What can be done is what is offered, here and in the list.
  await tab.page.getByText('Nothing of it starts: paused by').waitFor();
  await tab.page.getByRole('button', { name: 'Resume', exact: true }).waitFor();
  expect(await tab.page.getByRole('button', { name: 'Pause', exact: true }).count()).toBe(0);
  await tab.shot('workflow-paused');
  const list = await here.open('/workflows');
  await list.page.getByRole('row').filter({ hasText: 'good' }).getByText('paused', { exact: true }).waitFor();
  await list.close();
  const run = await here.program.submit({ workflow: 'good' });
  expect((await here.program.ask<{ paused: string[] }>('GET', `/v1/runs/${run}`)).paused.length).toBeGreaterThan(0);
  await tab.page.getByRole('button', { name: 'Undo' }).click();
  await tab.page.getByText('good goes on').waitFor();
  await tab.page.getByRole('button', { name: 'Pause', exact: true }).waitFor();
  expect(await tab.page.getByRole('button', { name: 'Resume', exact: true }).count()).toBe(0);
  const toast = (text: string) => tab.page.locator('.toast').filter({ hasText: text }).last();
  // To go on is undone too, without a question, and that again.
  await toast('good goes on').getByRole('button', { name: 'Undo' }).click();
  await tab.page.getByRole('button', { name: 'Resume', exact: true }).waitFor();
  await toast('good is paused').getByRole('button', { name: 'Undo' }).click();
  await tab.page.getByRole('button', { name: 'Pause', exact: true }).waitFor();
  expect(await here.program.until_ended(run)).toBe('succeeded');
  tab.expect_clean();
  await tab.close();
});

test('a wrong document is marked where it is wrong; a good one is applied and compared', async () => {
  const tab = await here.open('/workflows/good/source');
  const { page } = tab;
  const editor = page.getByLabel('Document of the workflow');
  await page.getByText('Nothing is wrong with it.').waitFor();
  const before = await editor.inputValue();
  expect(before).toContain('echo fetched again');
  await editor.fill(before.replace('needs: [lint, test]', 'needs: [lint, tset]'));
  await page.getByText('tset', { exact: false }).first().waitFor();
  const mark = page.locator('.editor mark');
  await mark.first().waitFor();
  expect(await mark.first().textContent()).toContain('tset');
  expect(await page.getByRole('button', { name: 'Apply…' }).getAttribute('aria-disabled')).toBe('true');
  await page.getByRole('button', { name: /^Line \d+/ }).first().click();
  const chosen = await editor.evaluate((field: HTMLTextAreaElement) => field.value.slice(field.selectionStart, field.selectionEnd));
  expect(chosen).toContain('tset');
  await tab.shot('source-faulty');

  await editor.fill(before.replace('echo done', 'echo all done'));
  await page.getByText('Its graph').waitFor();
  await page.getByRole('button', { name: 'Apply…' }).click();
  await page.getByRole('dialog').getByText('becomes the newest version of good').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click();
  await page.getByText('good is at version 3').waitFor();
  await page.getByRole('link', { name: 'Versions' }).click();
  await page.getByRole('region', { name: 'What changed from version 2 to version 3' }).getByText('echo all done').waitFor();
  await page.getByLabel('Old').selectOption('1');
  await page.getByRole('region', { name: 'What changed from version 1 to version 3' }).getByText('echo fetched again').waitFor();
  expect(new URL(page.url()).search).toBe('?from=1&to=3');
  tab.expect_clean();
  await tab.close();
});

test('a new workflow is written, applied and shown', async () => {
  const tab = await here.open('/new-workflow');
  const editor = tab.page.getByLabel('Document of the workflow');
  await editor.fill('name: fresh\nsteps:\n  only: {run: "true"}\n');
  await tab.page.getByText('Nothing is wrong with it.').waitFor();
  await tab.page.getByRole('button', { name: 'Apply…' }).click();
  await tab.page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click();
  await tab.page.waitForURL('**/workflows/fresh');
  await tab.page.getByRole('heading', { level: 1, name: 'fresh' }).waitFor();
  tab.expect_clean();
  await tab.close();
});

test('triggers are paused, undone, paused and resumed', async () => {
  const tab = await here.open('/triggers');
  const { page } = tab;
  const paused = async () => (await here.program.ask<{ triggers: Named[] }>('GET', '/v1/triggers')).triggers[0]?.['paused_by'] ?? null;
  await page.getByRole('button', { name: 'Pause…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Pause them' }).click();
  await page.getByText('nightly starts by itself no more').waitFor();
  expect(await paused()).not.toBeNull();
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByText('nightly starts by itself again').waitFor();
  expect(await paused()).toBeNull();
  await page.getByRole('button', { name: 'Pause…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Pause them' }).click();
  const toast = (text: string) => page.locator('.toast').filter({ hasText: text }).last();
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByRole('button', { name: 'Pause…' }).waitFor();
  expect(await paused()).toBeNull();
  // To resume is undone too, without a question.
  await toast('nightly starts by itself again').getByRole('button', { name: 'Undo' }).click();
  await page.getByRole('button', { name: 'Resume' }).waitFor();
  expect(await paused()).not.toBeNull();
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByRole('button', { name: 'Pause…' }).waitFor();
  expect(await paused()).toBeNull();
  tab.expect_clean();
  await tab.close();
});

test('a limit is changed and undone; who holds it and who waits is shown', async () => {
  const tab = await here.open('/limits', { expected: /status of 422/ });
  const { page } = tab;
  const value = async () => (await here.program.ask<{ limits: Named[] }>('GET', '/v1/limits')).limits[0]?.['value'];
  await page.getByRole('link', { name: 'berth' }).click();
  await page.getByRole('heading', { name: 'Held by' }).waitFor();
  await page.getByRole('button', { name: 'Change…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('New value').fill('nonsense');
  await dialog.getByRole('button', { name: 'Change it' }).click();
  await page.locator('.toast.bad').waitFor();
  await page.locator('.toast.bad').getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: 'Change…' }).click();
  await dialog.getByLabel('New value').fill('5');
  await dialog.getByRole('button', { name: 'Change it' }).click();
  await page.getByText('berth is 5 now').waitFor();
  expect(await value()).toBe('5');
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect.poll(value).toBe('1');
  tab.expect_clean();
  await tab.close();
});

test('a token is made, its secret shown once, and revoked', async () => {
  const tab = await here.open('/tokens');
  const { page } = tab;
  await page.getByLabel('Name').fill('ci');
  await page.getByLabel('Role').selectOption('operator');
  await page.getByRole('button', { name: 'Make it' }).click();
  const secret = await page.locator('.made code').textContent();
  expect(await here.program.ask<Named>('GET', '/v1/me', undefined, secret ?? '')).toMatchObject({ name: 'ci', role: 'operator' });
  await page.getByRole('button', { name: 'I have kept it' }).click();
  expect(await page.content()).not.toContain(secret);
  const row = page.getByRole('row').filter({ hasText: 'ci' });
  await row.getByRole('button', { name: 'Revoke…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke it' }).click();
  await page.getByText('ci was revoked').waitFor();
  await expect(here.program.ask('GET', '/v1/me', undefined, secret ?? '')).rejects.toThrow('401');
  tab.expect_clean();
  await tab.close();
});

test('a token is created with an expiry, and its last use is listed', async () => {
  const tab = await here.open('/tokens');
  const { page } = tab;
  const token = async (name: string) => {
    const { tokens } = await here.program.ask<{ tokens: Named[] }>('GET', '/v1/tokens');
    return tokens.find((one) => one['name'] === name) ?? {};
  };
  const lasts_days = (one: Named) => (Date.parse(one['expires_at'] ?? '') - Date.parse(one['created_at'] ?? '')) / 86_400_000;
  const row = (name: string) => page.getByRole('row').filter({ hasText: name });
  await page.getByLabel('Name').fill('monthly');
  await page.getByLabel('Expires after').selectOption('30 days');
  await page.getByLabel('Expires after').focus();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  const secret = (await page.locator('.made code').textContent()) ?? '';
  expect(lasts_days(await token('monthly'))).toBe(30);
  await row('monthly').getByText('in 29 days').waitFor();
  await row('monthly').getByRole('cell').nth(4).getByText('–').waitFor();
  await here.program.ask('GET', '/v1/me', undefined, secret);
  await row('monthly').getByRole('cell').nth(4).locator('time').waitFor();

  // Without a choice it is 90 days; a token that does not expire has to be chosen.
  await page.getByLabel('Name').fill('default');
  await page.getByRole('button', { name: 'Make it' }).click();
  await row('default').waitFor();
  expect(lasts_days(await token('default'))).toBe(90);
  await page.getByLabel('Name').fill('eternal');
  await page.getByLabel('Expires after').selectOption('Does not expire');
  await page.getByRole('button', { name: 'Make it' }).click();
  await row('eternal').waitFor();
  expect((await token('eternal'))['expires_at']).toBeNull();
  expect(await tab.axe()).toEqual([]);
  await tab.shot('tokens-expiry');
  tab.expect_clean();
  await tab.close();
});

test('a token is rotated: its new secret is shown once, and the old one ends when it was told to', async () => {
  const tab = await here.open('/tokens');
  const { page } = tab;
  const created = await here.program.ask<{ token: string }>('POST', '/v1/tokens', { name: 'deploy', role: 'operator', expires_in_s: 3600 });
  const me = (token: string) => here.program.ask<Named>('GET', '/v1/me', undefined, token);
  const dialog = page.getByRole('dialog', { name: 'Give deploy a new secret?' });
  const rotate = async (grace: string) => {
    await page.getByRole('row').filter({ hasText: 'deploy' }).getByRole('button', { name: 'Rotate…' }).click();
    await dialog.getByLabel('Accept the old secret').selectOption(grace);
    expect(await tab.axe()).toEqual([]);
    await tab.shot('token-rotate');
    await dialog.getByRole('button', { name: 'Rotate' }).click();
    await dialog.waitFor({ state: 'detached' });
    const secret = (await page.locator('.made code').textContent()) ?? '';
    await page.getByRole('button', { name: 'I have kept it' }).click();
    return secret;
  };
  const second = await rotate('For 1 day');
  expect(await me(second)).toMatchObject({ name: 'deploy', role: 'operator' });
  expect(await me(created.token)).toMatchObject({ name: 'deploy' });
  await page.getByRole('row').filter({ hasText: 'deploy' }).getByText('replaced, ends').waitFor();
  const third = await rotate('No longer');
  expect(await me(third)).toMatchObject({ name: 'deploy' });
  await expect(me(second)).rejects.toThrow('401');
  await expect(me(created.token)).rejects.toThrow('401');
  // It lasts as long as before, until another lifetime is chosen.
  const listed = await here.program.ask<{ tokens: Named[] }>('GET', '/v1/tokens');
  const now = listed.tokens.find((one) => one['name'] === 'deploy' && one['revoked_at'] === null) ?? {};
  expect(Date.parse(now['expires_at'] ?? '') - Date.parse(now['created_at'] ?? '')).toBe(3_600_000);
  await page.keyboard.press('Escape');
  tab.expect_clean();
  await tab.close();
});

test('who rotates the token of this page stays signed in', async () => {
  const { token } = await here.program.ask<{ token: string }>('POST', '/v1/tokens', { name: 'second', role: 'admin' });
  const tab = await here.open('/tokens', { token, language: 'de' });
  const { page } = tab;
  const row = page.getByRole('row').filter({ hasText: 'second' });
  await row.getByRole('button', { name: 'Erneuern …' }).click();
  const dialog = page.getByRole('dialog', { name: 'second ein neues Geheimnis geben?' });
  await dialog.getByText('Diese Seite benutzt dann das neue Geheimnis').waitFor();
  await dialog.getByLabel('Gültig für').selectOption('7 Tage');
  await dialog.getByRole('button', { name: 'Erneuern' }).click();
  await dialog.waitFor({ state: 'detached' });
  const secret = (await page.locator('.made code').textContent()) ?? '';
  expect(secret).not.toBe(token);
  await expect(here.program.ask('GET', '/v1/me', undefined, token)).rejects.toThrow('401');
  await page.reload();
  await row.getByText('in 6 Tagen').waitFor();
  expect(await page.evaluate(() => localStorage.getItem('laneway.token'))).toBe(secret);
  tab.expect_clean();
  await tab.close();
});

test('warming a pool that nobody knows is refused with what to do', async () => {
  const tab = await here.open('/pools');
  tab.expected.push(/4\d\d/);
  const { page } = tab;
  await page.getByRole('button', { name: 'Warm…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('on each node that has the pool').waitFor();
  await dialog.getByLabel('Pools').fill('nothing');
  // The server would refuse none: to let them go is to drain it.
  await dialog.getByLabel('Containers').fill('0');
  expect(await dialog.getByLabel('Containers').evaluate((field) => (field as HTMLInputElement).validity.rangeUnderflow)).toBe(true);
  await dialog.getByLabel('Containers').fill('1');
  await dialog.getByRole('button', { name: 'Warm it' }).click();
  await dialog.getByRole('alert').waitFor();
  expect(await tab.axe()).toEqual([]);
  tab.expect_clean();
  await tab.close();
});

test('filters stand in the address and survive a reload', async () => {
  const tab = await here.open('/runs');
  const { page } = tab;
  await page.getByRole('checkbox', { name: 'failed' }).check();
  await expect.poll(() => page.getByRole('row').count()).toBe(2);
  await page.getByRole('combobox', { name: 'Workflow' }).selectOption('bad');
  expect(new URL(page.url()).search).toBe('?workflow=bad&status=failed');
  await page.reload();
  await page.getByRole('checkbox', { name: 'failed' }).waitFor();
  expect(await page.getByRole('checkbox', { name: 'failed' }).isChecked()).toBe(true);
  await expect.poll(() => page.getByRole('row').count()).toBe(2);
  await page.getByLabel('Id or workflow begins with').fill('zzz');
  await page.getByText('No run matches these filters').waitFor();
  await page.getByRole('button', { name: 'Clear filters' }).first().click();
  await expect.poll(() => page.getByRole('row').count()).toBeGreaterThan(5);
  await page.getByLabel('Submitted since').fill('2099-01-01T00:00');
  await page.getByText('No run matches these filters').waitFor();
  tab.expect_clean();
  await tab.close();
});

test('draining a node is stated, done, and shown', async () => {
  const tab = await here.open('/nodes');
  const { page } = tab;
  await page.getByRole('button', { name: 'Drain…' }).click();
  await page.getByRole('dialog').getByText('This cannot be undone').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Leave it' }).click();
  expect((await here.program.ask<{ nodes: Named[] }>('GET', '/v1/nodes')).nodes[0]?.['state']).toBe('takes work');
  await page.getByRole('button', { name: 'Drain…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Drain it' }).click();
  await page.getByText('here takes nothing more').waitFor();
  await page.getByText('node draining').waitFor();
  tab.expect_clean();
  await tab.close();
});

test('who stands on an order is listed by version, the one whose turn it is first', async () => {
  const document = `name: ordered
steps:
  late: {order: {key: db/schema, version: '10'}, run: 'true'}
  soon: {order: {key: db/schema, version: '2'}, run: 'sleep 600'}
`;
  const run = await here.program.submit({ document });
  const tab = await here.open('/limits');
  const row = tab.page.getByRole('row').filter({ hasText: 'db/schema' });
  await row.waitFor();
  expect((await row.getByRole('listitem').allTextContents()).map((text) => text.trim().split(/\s+/).slice(0, 2))).toEqual([
    ['2', 'soon'],
    ['10', 'late'],
  ]);
  expect(await tab.axe()).toEqual([]);
  await tab.shot('limits-orders');
  await here.program.ask('POST', `/v1/runs/${run}/cancel`);
  await tab.page.getByText('Nobody stands on an order').waitFor();
  tab.expect_clean();
  await tab.close();
});
