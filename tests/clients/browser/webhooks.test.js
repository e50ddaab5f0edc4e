// A webhook's page against an endpoint that answers: tests, rotation, and deliveries with what was sent, answered and sent again.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { assertSoundInEveryForm, open, press, readFacts, swap, until } from './browser.js';
import { isSigned, receive, REFUSAL } from './receiver.js';

const json = async (answer) => (await answer).json();

// Opens the page of a webhook that is made for it, by the API.
async function openWebhook(page, definition) {
  const { webhook, secret } = await json(page.request.post('/api/webhooks', { data: definition }));
  await page.goto('/console/webhooks');
  page.on('dialog', (dialog) => dialog.accept());
  await page.locator('#list button', { hasText: webhook.id }).press('Enter');
  await page.locator('#facts', { hasText: definition.url }).waitFor();
  return { secret, api: `/api/webhooks/${webhook.id}` };
}

async function remove(page, api) {
  await press(page, '#delete');
  await page.locator('#detail').waitFor({ state: 'hidden' });
  assert.equal((await page.request.get(api)).status(), 404);
}

test('a webhook is tested and its secret rotated, and what arrives is signed with the new one', async () => {
  const receiver = await receive();
  const { page, faults, close } = await open('/console/explain');
  const definition = { url: receiver.url, events: ['transaction'], filters: { programs: ['11111111111111111111111111111112'] } };
  const { secret, api } = await openWebhook(page, definition);
  await press(page, '#test', 'Space');
  await page.locator('#notice', { hasText: 'transaction: accepted, 204' }).waitFor();
  assert.equal(receiver.received.length, 1);
  assert.ok(isSigned(secret, receiver.received[0]));

  await press(page, '#rotate');
  const shown = page.locator('#secret', { hasText: 'New secret' });
  const [rotated] = /whsec_[A-Za-z0-9+/=]+/.exec(await shown.textContent());
  assert.notEqual(rotated, secret);
  const { status } = await json(page.request.get(api));
  assert.notEqual(status.previousSecretUntil, null);
  await press(page, '#test');
  await page.locator('#notice', { hasText: 'transaction: accepted, 204' }).waitFor();
  assert.equal(receiver.received.length, 2);
  assert.ok(isSigned(rotated, receiver.received[1]) && isSigned(secret, receiver.received[1]));
  assert.ok(!isSigned(rotated, receiver.received[0]), 'the one before was not signed with it');
  await remove(page, api);
  assert.deepEqual(faults, []);
  await close();
  receiver.close();
});

test('a webhook shows what it is not told, in the words of its status', async () => {
  const { page, faults, close } = await open('/console/explain');
  const definition = { url: 'https://example.com/', events: ['accountChange'], filters: { programs: ['11111111111111111111111111111112'] } };
  const { api } = await openWebhook(page, definition);
  assert.equal((await readFacts(page, '#facts'))['not told'], 'nothing is left out');

  const notTold = 'what no server shows; have another one named';
  await page.route(`**${api}`, async (route) => {
    const answer = await route.fetch();
    const webhook = await answer.json();
    await route.fulfill({ response: answer, json: { ...webhook, status: { ...webhook.status, notTold } } });
  });
  await page.locator('#list button', { hasText: api.split('/').at(-1) }).press('Enter');
  await page.locator('#facts', { hasText: notTold }).waitFor();
  assert.equal((await readFacts(page, '#facts'))['not told'], notTold);
  await page.unroute(`**${api}`);
  await remove(page, api);
  assert.deepEqual(faults, []);
  await close();
});

// The deliveries of the webhook, once the first three were accepted and none is owed.
const settled = (page, api) =>
  until(async () => {
    const { deliveries } = await json(page.request.get(`${api}/deliveries?limit=50`));
    return deliveries.length >= 3 && deliveries.every(({ state }) => state === 'delivered') ? deliveries : null;
  });

test('deliveries show what was sent beside what was answered, and those chosen are sent once more', async () => {
  const receiver = await receive(1);
  const { page, faults, close } = await open('/console/swap');
  const { publicKey } = await json(page.request.get('/console/demo-wallet'));
  const definition = { url: receiver.url, events: ['accountChange', 'transaction', 'programEvent'], filters: { accounts: [publicKey], programs: [process.env.SLUICE_GUARD] } };
  const { api } = await openWebhook(page, definition);
  await page.goto('/console/swap');
  await swap(page);
  const deliveries = await settled(page, api);
  await page.goto('/console/webhooks');
  await page.locator('#list button', { hasText: api.split('/').at(-1) }).press('Enter');

  // What was refused first shows the message as it arrived, and the answer.
  const [{ id: refused, body }] = receiver.received;
  const row = (id) => page.locator('#deliveries tbody tr', { has: page.locator(`#choose-${id}`) });
  const first = row(refused).locator('details').first();
  await first.locator('summary', { hasText: '1: 500' }).press('Enter');
  const [headers, message, answer] = [0, 1, 2].map((index) => first.locator('.bodies pre').nth(index));
  await message.filter({ hasText: '"sequence"' }).waitFor();
  const [read, sent] = [JSON.parse(await message.textContent()), JSON.parse(body)];
  assert.deepEqual([read.type, read.sequence, read.slot], [sent.type, sent.sequence, sent.slot]);
  assert.deepEqual(Object.keys(read.data), Object.keys(sent.data));
  assert.ok((await headers.textContent()).includes(refused));
  assert.equal(await answer.textContent(), REFUSAL);
  await assertSoundInEveryForm(page);

  // With nothing chosen nothing is sent; then two are, and no other.
  await press(page, '#redeliver-chosen');
  await page.locator('#notice', { hasText: 'Choose messages' }).waitFor();
  const before = new Map(deliveries.map(({ id }) => [id, receiver.times(id)]));
  const [one, other, ...rest] = deliveries;
  for (const { id } of [one, other]) {
    await press(page, `#choose-${id}`, 'Space');
    assert.ok(await page.locator(`#choose-${id}`).isChecked());
  }
  await press(page, '#redeliver-chosen');
  await page.locator('#notice', { hasText: '2 sent once more' }).waitFor();
  for (const { id } of [one, other]) await until(() => receiver.times(id) === before.get(id) + 1);
  await settled(page, api);
  for (const { id } of rest) assert.equal(receiver.times(id), before.get(id), id);
  assert.equal(await page.locator('#deliveries input:checked').count(), 0);

  // One alone, by the button in its row, on which the focus stays.
  await press(page, `#redeliver-${rest[0].id}`);
  await page.locator('#notice', { hasText: `Message ${rest[0].sequence} is sent once more` }).waitFor();
  await until(() => receiver.times(rest[0].id) === before.get(rest[0].id) + 1);
  await page.waitForFunction((id) => document.activeElement.id === id, `redeliver-${rest[0].id}`);
  await remove(page, api);
  assert.deepEqual(faults, []);
  await close();
  receiver.close();
});

// Asks for a dry run of the webhook that is shown, and answers what is shown of it once it is done.
async function dryRun(page, slots) {
  await page.locator('#dry-run-slots').fill(String(slots));
  await page.locator('#dry-run-slots').press('Enter');
  await page.locator('#dry-run-facts', { hasText: 'statedone' }).waitFor({ timeout: 60_000 });
  const samples = await page.locator('#dry-run-samples pre').allTextContents();
  return { shown: await readFacts(page, '#dry-run-facts'), samples: samples.map((sample) => JSON.parse(sample)) };
}

test('a dry run says what a filter would have matched', async (t) => {
  const receiver = await receive();
  t.after(receiver.close);
  const { page, faults, close } = await open('/console/explain');
  const { api } = await openWebhook(page, { url: receiver.url, events: ['transaction'], filters: { programs: [process.env.SLUICE_GUARD] } });
  await until(async () => (await json(page.request.get(api))).status.filter.inForceSlot !== null);
  await page.goto('/console/swap');
  await swap(page);
  // What was told of is read.
  const told = await until(async () => (await json(page.request.get(`${api}/deliveries?limit=1`))).deliveries[0]);
  const { slot } = await json(page.request.get('/health/ready'));
  await page.goto('/console/webhooks');
  await page.locator('#list button', { hasText: api.split('/').at(-1) }).press('Enter');
  const { shown, samples } = await dryRun(page, Math.min(1000, slot - told.slot + 20));
  const run = await json(page.request.get(`${api}/dry-run`));
  assert.ok(run.matched > 0, JSON.stringify(run));
  assert.equal(shown['messages that they would have caused'], String(run.matched));
  assert.equal(shown.slots, `${run.fromSlot} to ${run.toSlot}, read before ${run.nextSlot}`);
  assert.ok(run.fromSlot <= told.slot && told.slot <= run.toSlot, `${told.slot}, of ${shown.slots}`);
  const { body } = await json(page.request.get(`${api}/messages/${told.id}`));
  assert.equal(samples.length, run.samples.length);
  const sample = samples.find(({ data }) => data.signature === body.data.signature);
  assert.deepEqual([sample.type, sample.slot, sample.sequence], ['transaction', told.slot, 0]);
  await remove(page, api);
  assert.deepEqual(faults, []);
  await close();
});

test('a dry run of what no transaction names finds nothing', async () => {
  const { page, faults, close } = await open('/console/explain');
  const { api } = await openWebhook(page, { url: 'https://example.com/dry-run', events: ['transaction'], filters: { programs: ['11111111111111111111111111111112'] } });
  const { shown, samples } = await dryRun(page, 50);
  assert.equal(shown['messages that they would have caused'], '0');
  assert.deepEqual(samples, []);
  await remove(page, api);
  assert.deepEqual(faults, []);
  await close();
});
