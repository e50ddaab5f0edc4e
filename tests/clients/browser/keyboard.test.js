// The console without a mouse: the main flow of each page by Tab, Enter, Space and typing alone, with a focus that is always seen.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { API, open, tabTo, until } from './browser.js';

const focused = (page) => page.evaluate(() => document.activeElement.id);

// Types over what stands in the field that has the focus.
async function type(page, text) {
  await page.keyboard.press('Control+A');
  await page.keyboard.type(text);
}

// Each page, and what of it follows its beginning: a field, a link, or a table that can be scrolled.
const FIRST = [
  ['/console', '[aria-labelledby="ladder-title"]'],
  ['/console/pools', '#address'],
  ['/console/swap', '#input-mint'],
  ['/console/explain', '#subject'],
  ['/console/webhooks', '[aria-labelledby="list-title"]'],
  ['/console/keys', '[aria-labelledby="keys-title"]'],
  ['/console/usage', '[href="/console/keys"]'],
];

for (const [path, first] of FIRST) {
  test(`the first Tab of ${path} leads past the navigation`, async () => {
    const { page, faults, close } = await open(path);
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.className), 'skip');
    await page.keyboard.press('Enter');
    assert.equal(await focused(page), 'main');
    await page.keyboard.press('Tab');
    assert.ok(await page.evaluate((selector) => document.activeElement.matches(`main ${selector}`), first), `${path}: not ${first}`);
    assert.deepEqual(faults, []);
    await close();
  });
}

test('every page of the console is among those that are entered by Tab', async () => {
  const { page, faults, close } = await open('/console');
  const pages = await page.locator('nav a').evaluateAll((links) => links.map(({ pathname }) => pathname));
  assert.deepEqual(pages.filter((path) => path.startsWith('/console')), FIRST.map(([path]) => path));
  assert.deepEqual(faults, []);
  await close();
});

test('every table of the overview is reached, and scrolled on a narrow screen, and keeps its place while it is read again', async () => {
  const { page, faults, close } = await open('/console', { width: 360 });
  for (const table of ['ladder', 'servers', 'requests', 'calls']) {
    await page.locator(`#${table} tbody td`).first().waitFor();
    await tabTo(page, `[aria-labelledby="${table}-title"]`);
  }
  await page.locator('#theme').focus();
  await tabTo(page, '[aria-labelledby="requests-title"]');
  await page.keyboard.press('ArrowRight');
  const scrolled = () => page.evaluate(() => document.activeElement.scrollLeft);
  await until(async () => (await scrolled()) > 0);
  // It is read again every few seconds, under who reads it.
  const cell = await page.locator('#requests tbody td').first().elementHandle();
  await until(() => cell.evaluate((node) => !node.isConnected));
  assert.ok((await scrolled()) > 0);
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-labelledby')), 'requests-title');
  assert.deepEqual(faults, []);
  await close();
});

test('a pool is found, opened and asked what an amount pays', async () => {
  const { page, faults, close } = await open('/console/pools');
  await page.locator('#found tbody button').first().waitFor();
  await tabTo(page, '#address');
  await type(page, process.env.SLUICE_MINT_ALFA);
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelectorAll('#found tbody tr').length === 1);
  await tabTo(page, '#found tbody button');
  await page.keyboard.press('Enter');
  await page.locator('#impact polyline').waitFor();
  await tabTo(page, '#direction');
  await tabTo(page, '#amount');
  await type(page, '0.5');
  await tabTo(page, '#ask button');
  await page.keyboard.press('Space');
  await page.locator('#answer', { hasText: 'at least' }).waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test('a swap is quoted, built, signed and followed', async () => {
  const { page, faults, close } = await open('/console/swap');
  // The page fills in a pair of its own first.
  await page.waitForFunction(() => document.querySelector('#output-mint').value !== '');
  await tabTo(page, '#input-mint');
  await type(page, process.env.SLUICE_MINT_SOL);
  await tabTo(page, '#output-mint');
  await type(page, process.env.SLUICE_MINT_USDL);
  await tabTo(page, '#amount-out');
  await type(page, '0.25');
  await page.locator('#quote', { hasText: 'paid at most' }).waitFor();
  await tabTo(page, '#connect');
  await page.keyboard.press('Enter');
  await page.locator('#account', { hasText: 'connected' }).waitFor();
  await page.locator('#build:enabled').waitFor();
  await tabTo(page, '#build');
  await page.keyboard.press('Space');
  await page.locator('#checked', { hasText: 'this very transaction' }).waitFor();
  // Who cannot see what has appeared is brought to it.
  assert.equal(await focused(page), 'built');
  await tabTo(page, '#sign');
  await page.keyboard.press('Enter');
  await page.locator('#steps li', { hasText: 'confirmed' }).waitFor({ timeout: 60_000 });
  assert.equal(await focused(page), 'sent');
  await tabTo(page, '#outcome a');
  assert.deepEqual(faults, []);
  await close();
});

test('a transaction is explained', async () => {
  const { page, faults, close } = await open('/console/explain');
  const document = await (await fetch(`${API}/openapi.json`)).json();
  const { transaction } = document.paths['/v1/transactions/explain'].post.requestBody.content['application/json'].example;
  await tabTo(page, '#subject');
  await page.keyboard.insertText(transaction);
  await tabTo(page, '#ask summary');
  await page.keyboard.press('Enter');
  await tabTo(page, '#request');
  await tabTo(page, '#ask button');
  await page.keyboard.press('Enter');
  await page.locator('#explanation li').first().waitFor();
  assert.equal(await focused(page), 'result');
  await tabTo(page, '#explanation summary');
  await page.keyboard.press('Enter');
  await page.locator('#explanation details[open]').first().waitFor();
  assert.deepEqual(faults, []);
  await close();
});

// What stands below the buttons that edit and pause a webhook, from there to the end of the page.
const OF_A_WEBHOOK = [
  '#test', '#rotate', '#delete',
  '#state', '#reload', '#redeliver-chosen', '#redeliver-failed', '[aria-label="Deliveries"]',
  '#operations [value="endpoint.disabled"]', '#operations button',
  '#backfill-from', '#backfill-to', '#backfill button',
  '#dry-run-slots', '#dry-run button',
  '#read-events', '[aria-label="Events in order"]',
];

// Goes to each by Tab, and fails where one is reached only from the beginning of the page again.
async function tabThrough(page, selectors) {
  for (const selector of selectors) {
    const before = await page.evaluateHandle(() => document.activeElement);
    await tabTo(page, selector);
    const follows = await before.evaluate((from) => (from.compareDocumentPosition(document.activeElement) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0);
    assert.ok(follows, `${selector} stands before what it should follow`);
  }
}

test('a webhook is made, paused, resumed and deleted, and all that is shown of it is reached in its order', async () => {
  const { page, faults, close } = await open('/console/webhooks');
  page.on('dialog', (dialog) => dialog.accept());
  await page.locator('#list td').first().waitFor();
  await tabTo(page, '#new');
  await page.keyboard.press('Enter');
  assert.equal(await focused(page), 'url');
  await type(page, 'https://example.com/keyboard');
  await tabTo(page, '[name="events"][value="programEvent"]');
  await page.keyboard.press('Space');
  await tabTo(page, '#programs');
  await type(page, '11111111111111111111111111111112');
  await tabTo(page, '#commitment');
  await page.keyboard.press('End');
  await tabTo(page, '#save');
  await page.keyboard.press('Enter');
  await page.locator('#secret', { hasText: 'whsec_' }).waitFor();
  const id = (await page.locator('#detail-title').textContent()).replace('Webhook ', '');
  const made = await (await page.request.get(`/api/webhooks/${id}`)).json();
  assert.deepEqual([made.url, made.commitment, [...made.events].sort()], ['https://example.com/keyboard', 'finalized', ['programEvent', 'transaction']]);
  await tabTo(page, '#edit');
  await tabThrough(page, ['#pause']);
  for (const active of [false, true]) {
    await page.keyboard.press('Enter');
    await until(async () => (await (await page.request.get(`/api/webhooks/${id}`)).json()).active === active);
    // The same button does the other thing now, and still has the focus.
    await page.locator('#pause', { hasText: active ? 'Pause' : 'Resume' }).waitFor();
    assert.equal(await focused(page), 'pause');
  }
  await tabThrough(page, OF_A_WEBHOOK);
  await tabTo(page, '#delete');
  await page.keyboard.press('Space');
  await page.locator('#detail').waitFor({ state: 'hidden' });
  await until(async () => (await page.request.get(`/api/webhooks/${id}`)).status() === 404);
  assert.deepEqual(faults, []);
  await close();
});

test('the theme is changed', async () => {
  const { page, faults, close } = await open('/console/usage', { scheme: 'light' });
  await page.locator('#usage dd').first().waitFor();
  await tabTo(page, '#theme');
  await page.keyboard.press('Space');
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
  assert.deepEqual(faults, []);
  await close();
});
