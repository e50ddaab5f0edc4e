// Console in Chromium: what people do with it, some of it by keyboard alone.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { open } from './browser.js';

test('the overview says how it stands', async () => {
  const { page, faults, close } = await open('/console');
  await page.locator('#health.well').waitFor();
  await page.locator('#market dd').first().waitFor();
  await page.locator('#requests td').first().waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test('the switch changes the theme, and it stays', async () => {
  const { page, close } = await open('/console', { scheme: 'light' });
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.locator('#theme').click();
  const dark = await ground();
  assert.notEqual(light, dark);
  await page.reload();
  assert.equal(await ground(), dark);
  await close();
});

test('a pool is found by its address, priced live, and its impact plotted', async () => {
  const { page, faults, close } = await open('/console/pools');
  const first = page.locator('#found tbody button').first();
  const address = await first.textContent();
  await page.locator('#address').fill(address);
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelectorAll('#found tbody tr').length === 1);
  await page.locator('#found tbody button').click();
  await page.locator('#live', { hasText: 'as of slot' }).waitFor();
  await page.locator('#impact polyline').waitFor();
  await page.locator('#amount').fill('0.5');
  await page.locator('#ask button').click();
  await page.locator('#answer', { hasText: 'at least' }).waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test('a webhook is made, edited, paused and deleted by keyboard alone', async () => {
  const { page, faults, close } = await open('/console/webhooks');
  page.on('dialog', (dialog) => dialog.accept());
  const press = async (id) => {
    await page.locator(id).focus();
    await page.keyboard.press('Enter');
  };
  await press('#new');
  await page.keyboard.type('https://example.com/console');
  await page.locator('#programs').focus();
  await page.keyboard.type('no address');
  await page.locator('#fault', { hasText: 'is no address' }).waitFor();
  await page.keyboard.press('Control+A');
  await page.keyboard.type('11111111111111111111111111111112');
  await press('#save');
  await page.locator('#secret', { hasText: 'whsec_' }).waitFor();
  await press('#edit');
  await page.locator('#description').focus();
  await page.keyboard.type('of the console');
  await press('#save');
  await page.locator('#facts', { hasText: 'of the console' }).waitFor();
  await press('#pause');
  await page.locator('#pause', { hasText: 'Resume' }).waitFor();
  await press('#delete');
  await page.locator('#detail').waitFor({ state: 'hidden' });
  assert.deepEqual(faults, []);
  await close();
});

test('the reference shows its operations and loads nothing from elsewhere', async () => {
  const { page, faults, close } = await open('/docs');
  await page.locator('.opblock').first().waitFor();
  assert.ok((await page.locator('.opblock').count()) > 30);
  assert.deepEqual(faults, []);
  await close();
});
