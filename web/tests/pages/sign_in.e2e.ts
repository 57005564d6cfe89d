// Getting in, staying in, and being put out.
import { expect, test } from 'vitest';
import { site } from '../harness/site';

const here = site();

test('the printed link signs in once, and its code is taken out of the address', async () => {
  const link = new URL(here.program.link());
  const tab = await here.open(`/${link.hash}`, { token: null });
  await tab.page.getByRole('heading', { name: 'Overview' }).waitFor();
  expect(tab.page.url()).toBe(`${here.chromium.url}/`);
  await tab.page.getByText('(admin)').waitFor();
  // It is kept: a new load of the page asks for nothing.
  await tab.page.reload();
  await tab.page.getByRole('heading', { name: 'Overview' }).waitFor();
  tab.expect_clean();
  await tab.close();

  const again = await here.open(`/${link.hash}`, { token: null, expected: /403/ });
  await again.page.getByText('The link was refused').waitFor();
  await again.page.getByRole('heading', { name: 'By a token' }).waitFor();
  expect(again.page.url()).not.toContain('code=');
  again.expect_clean();
  await again.close();
});

test('a deep link leads to its page after signing in', async () => {
  const tab = await here.open('/runs?status=failed', { token: null });
  await tab.page.getByLabel('Token').fill(here.program.token);
  await tab.page.getByRole('button', { name: 'Sign in' }).click();
  await tab.page.getByRole('heading', { name: 'Runs' }).waitFor();
  expect(new URL(tab.page.url()).search).toBe('?status=failed');
  tab.expect_clean();
  await tab.close();
});

test('a token that is none leads back with the reason', async () => {
  const tab = await here.open('/', { token: 'laneway_nonsense', expected: /401/ });
  await tab.page.getByRole('alert').waitFor();
  await tab.page.getByLabel('Token').waitFor();
  expect(await tab.page.evaluate(() => localStorage.getItem('laneway.token'))).toBeNull();
  expect(await tab.axe()).toEqual([]);
  await tab.shot('sign-in');
  tab.expect_clean();
  await tab.close();
});

test('a token that is revoked while somebody looks puts them out', async () => {
  const made = await here.program.ask<{ token: string }>('POST', '/v1/tokens', { name: 'guest', role: 'viewer' });
  const tab = await here.open('/runs', { token: made.token });
  tab.expected.push(/401/);
  await tab.page.getByText('guest (viewer)').waitFor();
  // What a viewer may not do says so.
  await tab.page.goto('/new-workflow');
  const button = tab.page.getByRole('button', { name: 'Apply…' });
  await button.waitFor();
  await expect.poll(() => button.getAttribute('title')).toContain('operator');
  // Pages of admins are not theirs.
  await tab.page.goto('/tokens');
  await tab.page.getByRole('heading', { name: 'This is for admins' }).waitFor();
  await here.program.ask('DELETE', '/v1/tokens/guest');
  await tab.page.getByRole('alert').waitFor({ timeout: 30_000 });
  await tab.page.getByLabel('Token').waitFor();
  tab.expect_clean();
  await tab.close();
});

test('signing out forgets the token', async () => {
  const tab = await here.open('/');
  await tab.page.getByRole('button', { name: 'Menu', exact: true }).last().click();
  await tab.page.getByRole('menuitem', { name: 'Sign out' }).click();
  await tab.page.getByText('The token itself is still good').waitFor();
  await tab.page.reload();
  await tab.page.getByLabel('Token').waitFor();
  tab.expect_clean();
  await tab.close();
});
