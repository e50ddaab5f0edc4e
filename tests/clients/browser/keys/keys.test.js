// The console where a key is needed: signing in and out, keys made and revoked. From its first test on, nobody is answered
// without a key, so it runs after all others.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { before, test } from 'node:test';

import { API, assertSoundInEveryForm, open, press, tabTo } from '../browser.js';

const { SLUICE_BINARY: BINARY, SLUICE_CONFIG: CONFIG } = process.env;
const SCOPES = ['webhooks:read', 'webhooks:write', 'keys:write'];

let key;

before(() => {
  // The first key is made on the server, as the page says.
  const added = ['keys', 'add', 'console', ...SCOPES.flatMap((scope) => ['--scope', scope]), '--config', CONFIG];
  key = execFileSync(BINARY, added, { encoding: 'utf8' }).trim();
  assert.match(key, /^sluice_\S+$/);
});

const withKey = (path, secret) => fetch(`${API}${path}`, { headers: { authorization: `Bearer ${secret}` } });

async function signIn(page) {
  // The field has the focus by itself, once the page is there.
  await page.locator('input:focus').waitFor();
  await page.keyboard.type(key);
  await page.keyboard.press('Enter');
  await page.locator('h1', { hasText: 'Overview' }).waitFor();
}

test('who is not signed in is asked for a key, is let in with one, and out again', async () => {
  const { page, faults, close } = await open('/console');
  assert.equal(new URL(page.url()).pathname, '/console/sign-in');
  await page.locator('input:focus').waitFor();
  await page.keyboard.type('sluice_nobody_has_this');
  await page.keyboard.press('Enter');
  await page.locator('.fault', { hasText: 'no such key' }).waitFor();
  await assertSoundInEveryForm(page);
  assert.deepEqual(await page.context().cookies(), []);
  // The refusal itself is the only thing that the browser may note.
  assert.deepEqual(faults.splice(0).filter((fault) => !fault.includes('401')), []);

  await signIn(page);
  await page.locator('#health.well').waitFor();
  const [cookie] = await page.context().cookies();
  assert.deepEqual([cookie.httpOnly, cookie.sameSite], [true, 'Strict']);
  assert.equal(await page.evaluate(() => document.cookie), '');
  await tabTo(page, 'header form button');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/console/sign-in');
  await page.goto('/console/keys');
  assert.equal(new URL(page.url()).pathname, '/console/sign-in');
  assert.deepEqual(faults, []);
  await close();
});

test('a key is made and revoked, and is accepted between', async () => {
  const { page, faults, close } = await open('/console/keys');
  page.on('dialog', (dialog) => dialog.accept());
  await signIn(page);
  await page.goto('/console/keys');
  await page.locator('#keys td', { hasText: 'console' }).first().waitFor();
  await tabTo(page, '#name');
  await page.keyboard.type('of the browser');
  for (const scope of SCOPES.slice(0, 2)) await press(page, `[name="scopes"][value="${scope}"]`, 'Space');
  await tabTo(page, '#new button');
  await page.keyboard.press('Enter');
  await page.locator('#fault', { hasText: 'choose at least one' }).waitFor();
  await press(page, '[name="scopes"][value="webhooks:read"]', 'Space');
  await press(page, '#webhooks', 'Control+A');
  await page.keyboard.type('3');
  await page.keyboard.press('Enter');
  const shown = page.locator('#secret', { hasText: 'of the browser' });
  await shown.waitFor();
  const [made] = /sluice_\S+/.exec(await shown.textContent());

  assert.equal((await withKey('/api/usage', made)).status, 200);
  const listed = async () => (await (await withKey('/api/keys', key)).json()).keys.find(({ name }) => name === 'of the browser');
  const { scopes, quotas, revoked } = await listed();
  assert.deepEqual([scopes, quotas.webhooks, revoked], [['webhooks:read'], 3, null]);
  // It may read alone.
  assert.equal((await withKey('/api/keys', made)).status, 403);
  await assertSoundInEveryForm(page);

  await tabTo(page, '[aria-label="Revoke of the browser"]');
  await page.keyboard.press('Space');
  await page.locator('#notice', { hasText: 'of the browser is revoked' }).waitFor();
  await page.locator('#keys tr', { hasText: 'of the browser' }).filter({ hasText: 'revoked' }).waitFor();
  assert.equal((await withKey('/api/usage', made)).status, 401);
  assert.notEqual((await listed()).revoked, null);
  assert.deepEqual(faults, []);
  await close();
});

test('a webhook is made in a session, for its key', async () => {
  const { page, faults, close } = await open('/console/webhooks');
  page.on('dialog', (dialog) => dialog.accept());
  await signIn(page);
  await page.goto('/console/webhooks');
  await press(page, '#new');
  await page.keyboard.type('https://example.com/session');
  await page.locator('#programs').fill('11111111111111111111111111111112');
  await press(page, '#save');
  await page.locator('#secret', { hasText: 'whsec_' }).waitFor();
  const { webhooks } = await (await withKey('/api/webhooks', key)).json();
  assert.ok(webhooks.some(({ url }) => url === 'https://example.com/session'));
  await press(page, '#delete');
  await page.locator('#detail').waitFor({ state: 'hidden' });
  assert.deepEqual(faults, []);
  await close();
});
