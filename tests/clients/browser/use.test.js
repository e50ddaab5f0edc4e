// Console in Chromium: what people do with it, some of it by keyboard alone.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { open, quoteAndBuild } from './browser.js';

test('the overview says how it stands', async () => {
  const { page, faults, close } = await open('/console');
  await page.locator('#health.well').waitFor();
  await page.locator('#market dd').first().waitFor();
  await page.locator('#requests td').first().waitFor();
  const rungs = page.locator('#ladder tbody tr');
  await page.waitForFunction(() => document.querySelectorAll('#ladder tbody tr').length === 5);
  const slots = (await rungs.locator('td:nth-child(2)').allTextContents()).map(Number);
  const [, reported, processed, confirmed, finalized] = slots;
  assert.ok(reported >= processed && processed >= confirmed && confirmed > 0, String(slots));
  assert.ok(finalized === finalized && finalized <= confirmed, String(slots));
  const winner = page.locator('#servers tbody tr').first();
  assert.equal(await winner.locator('td:nth-child(2)').textContent(), 'yes');
  assert.ok(Number(await winner.locator('td:nth-child(4)').textContent()) > 0);
  assert.equal(await winner.locator('td:nth-child(5)').textContent(), '100.0 %');
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
  // Whoever only looks comes back to the webhook.
  await press('#edit');
  await page.locator('#detail').waitFor({ state: 'hidden' });
  await press('#cancel');
  await page.locator('#facts', { hasText: 'https://example.com/console' }).waitFor();
  await page.locator('#editor').waitFor({ state: 'hidden' });
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

test('conditions of a webhook are checked in the form, saved, and shown again to be edited', async () => {
  const { page, faults, close } = await open('/console/webhooks');
  page.on('dialog', (dialog) => dialog.accept());
  await page.locator('#new').click();
  await page.locator('#url').fill('https://example.com/conditions');
  await page.locator('#programs').fill('11111111111111111111111111111112');
  await page.locator('#token-owners').fill('11111111111111111111111111111114');
  await page.locator('#conditions summary').click();
  await page.locator('#outcome').selectOption('succeeded');
  await page.locator('#votes').uncheck();
  await page.locator('#instructions').fill('11111111111111111111111111111112 xyz');
  await page.locator('#fault', { hasText: 'hexadecimal' }).waitFor();
  await page.locator('#instructions').fill('11111111111111111111111111111112 0200ff');
  await page.locator('#data-size').fill('165');
  await page.locator('#fault', { hasText: 'choose accountChange' }).waitFor();
  await page.locator('#data-size').fill('');
  await page.locator('#accounts-excluded').fill('11111111111111111111111111111113');
  await page.locator('#save').click();
  const facts = page.locator('#facts');
  await facts.filter({ hasText: '0200ff' }).waitFor();
  for (const text of ['succeeded', 'do not match', '11111111111111111111111111111113', '11111111111111111111111111111114']) assert.ok((await facts.textContent()).includes(text), text);
  await page.locator('#edit').click();
  assert.equal(await page.locator('#instructions').inputValue(), '11111111111111111111111111111112 0200ff');
  assert.equal(await page.locator('#token-owners').inputValue(), '11111111111111111111111111111114');
  // What is taken out of the form is taken away.
  await page.locator('#outcome').selectOption('any');
  await page.locator('#save').click();
  await facts.filter({ hasNotText: 'succeeded' }).filter({ hasText: '0200ff' }).waitFor();
  await page.locator('#delete').click();
  await page.locator('#detail').waitFor({ state: 'hidden' });
  assert.deepEqual(faults, []);
  await close();
});

test('how a webhook is delivered to is checked in the form, saved, and shown again to be edited', async () => {
  const { page, faults, close } = await open('/console/webhooks');
  page.on('dialog', (dialog) => dialog.accept());
  await page.locator('#new').click();
  await page.locator('#url').fill('https://example.com/delivery');
  await page.locator('#programs').fill('11111111111111111111111111111112');
  await page.locator('#delivery summary').click();
  await page.locator('#concurrency').fill('17');
  await page.locator('#fault', { hasText: 'delivery.concurrency: must be 1 to 16' }).waitFor();
  await page.locator('#concurrency').fill('3');
  await page.locator('#retry-pauses').fill('5 soon');
  await page.locator('#fault', { hasText: 'delivery.retryPausesSeconds' }).waitFor();
  await page.locator('#retry-pauses').fill('5 60');
  await page.locator('#payload').selectOption('thin');
  await page.locator('#batched').check();
  await page.locator('#batch-messages').fill('7');
  // So late that it would take back what is chosen before it is there.
  await page.route('**/operations', async (route) => {
    await new Promise((resolve) => { setTimeout(resolve, 500); });
    await route.continue();
  });
  const operations = page.waitForResponse((response) => response.url().endsWith('/operations'));
  await page.locator('#save').click();
  const facts = page.locator('#facts');
  // With its name: other facts have "nothing" in them.
  const thin = /payload\s*thin/;
  await facts.filter({ hasText: '5 60' }).filter({ hasText: thin }).filter({ hasText: '7, of 1048576 bytes, after 1000 ms' }).waitFor();
  await page.locator('[name="operations"][value="quota"]').check();
  await operations;
  await page.locator('#operations button').click();
  await page.locator('#notice', { hasText: 'quota' }).waitFor();
  await page.locator('#edit').click();
  assert.equal(await page.locator('#concurrency').inputValue(), '3');
  // What is taken out of the form is as for every webhook again.
  for (const id of ['#concurrency', '#retry-pauses']) await page.locator(id).fill('');
  await page.locator('#payload').selectOption('');
  await page.locator('#batched').uncheck();
  await page.locator('#save').click();
  await facts.filter({ hasNotText: '5 60' }).filter({ hasNotText: thin }).waitFor();
  await page.locator('#delete').click();
  await page.locator('#detail').waitFor({ state: 'hidden' });
  assert.deepEqual(faults, []);
  await close();
});

test('without a key the page of keys says how the first is made, and makes none', async () => {
  const { page, faults, close } = await open('/console/keys');
  await page.locator('#none', { hasText: 'sluice keys add' }).waitFor();
  await page.locator('#keys', { hasText: 'no key yet' }).waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test('events stand in their order, told beside what took it back', async () => {
  const { page, faults, close } = await open('/console/webhooks');
  page.on('dialog', (dialog) => dialog.accept());
  const body = { url: 'https://example.com/events', events: ['transaction'], filters: { programs: ['11111111111111111111111111111112'] } };
  const { webhook } = await (await page.request.post('/api/webhooks', { data: body })).json();
  const message = (sequence, type, data) => ({ id: `msg_${sequence}`, body: { type, sequence, slot: 7, commitment: 'processed', data } });
  const all = [
    message(1, 'transaction', { signature: 'first' }),
    message(2, 'transaction', { signature: 'second' }),
    message(3, 'reverted', { messageId: 'msg_1', sequence: 1, type: 'transaction', reason: 'abandoned' }),
  ];
  await page.route('**/events?*', (route) => {
    const query = new URL(route.request().url()).searchParams;
    const events = all.filter(({ body: { sequence } }) => sequence > Number(query.get('after'))).slice(0, Number(query.get('limit')));
    return route.fulfill({ json: { events, lastSequence: 3, oldestKept: 1 } });
  });
  await page.reload();
  await page.locator('#list button', { hasText: webhook.id }).click();
  const row = (number) => page.locator('#events tbody tr', { has: page.locator(`#event-${number}`) });
  await row(1).filter({ hasText: 'taken back by number 3, abandoned' }).waitFor();
  await row(2).filter({ hasText: 'stands' }).waitFor();
  await row(3).filter({ hasText: 'takes back number 1, abandoned' }).waitFor();
  await page.locator('#delete').click();
  await page.locator('#detail').waitFor({ state: 'hidden' });
  assert.deepEqual(faults, []);
  await close();
});

test('the playground quotes either side, and runs a whole swap with the demo wallet', async () => {
  const { page, faults, close } = await open('/console/swap');
  await quoteAndBuild(page);
  // What is signed is explained by its bytes, and is what was asked for.
  await page.locator('#checked', { hasText: 'this very transaction' }).waitFor();
  await page.locator('#explanation li strong', { hasText: 'guardedSwap' }).waitFor();
  assert.equal(await page.locator('#explanation .wrong').count(), 0);
  await page.locator('#sign').press('Enter');
  await page.locator('#steps li', { hasText: 'confirmed' }).waitFor({ timeout: 60_000 });
  const outcome = await page.locator('#outcome').textContent();
  assert.match(outcome, /received against quotedexactly as quoted/);
  // An exact output as well: what is paid follows.
  await page.locator('#amount-out').fill('0.25');
  await page.locator('#quote', { hasText: 'paid at most' }).waitFor();
  assert.ok(Number(await page.locator('#amount-in').inputValue()) > 0);
  // What landed is explained by its signature.
  await page.locator('#outcome a').click();
  await page.locator('#explanation', { hasText: 'succeeded' }).waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test('what is pasted is explained, and what is none is refused in words', async () => {
  const { page, faults, close } = await open('/console/explain');
  await page.locator('#subject').fill('AAAA');
  await page.locator('#ask button').click();
  await page.locator('#fault', { hasText: 'signature' }).waitFor();
  // The refusal itself is the only thing that the browser notes.
  assert.equal(faults.length, 1, faults.join(', '));
  await close();
});
