// Usage and dead letters: the quotas as the API answers them, and what of a long list is not shown.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { assertSoundInEveryForm, open, readFacts, readRows } from './browser.js';

const json = async (answer) => (await answer).json();

// The page with what the API answers to its own question about the quotas.
async function openUsage(page) {
  const asked = page.waitForResponse((answer) => new URL(answer.url()).pathname === '/api/usage');
  await page.goto('/console/usage');
  const usage = await (await asked).json();
  await page.locator('#usage dd').first().waitFor();
  return { usage, shown: await readFacts(page, '#usage') };
}

const counted = ({ used, limit }) => `${used} of ${limit ?? 'any number'}`;

test('what is used of each quota is what the API says', async () => {
  const { page, faults, close } = await open('/console/explain');
  const { usage: before } = await openUsage(page);
  const filters = { programs: ['11111111111111111111111111111112', '11111111111111111111111111111113'] };
  const { webhook } = await json(page.request.post('/api/webhooks', { data: { url: 'https://example.com/usage', events: ['transaction'], filters } }));
  const { usage, shown } = await openUsage(page);
  assert.equal(usage.webhooks.used, before.webhooks.used + 1);
  assert.equal(usage.addresses.used, before.addresses.used + 2);
  assert.equal(shown.webhooks, counted(usage.webhooks));
  assert.equal(shown['watched addresses'], counted(usage.addresses));
  assert.equal(shown['bytes of stored messages'], counted(usage.storedBytes));
  assert.equal(shown['deliveries at once'], counted(usage.deliverySlots));
  const { used, limit } = usage.messagesPerSecond;
  assert.ok(shown['messages sent in the last second'].startsWith(limit === null ? 'any number' : `${used} of ${limit}`));
  assert.equal((await page.request.delete(`/api/webhooks/${webhook.id}`)).status(), 204);
  assert.deepEqual(faults, []);
  await close();
});

test('limits are shown beside what is used, and that messages wait', async () => {
  const { page, faults, close } = await open('/console/explain');
  const usage = {
    webhooks: { used: 2, limit: 3 },
    addresses: { used: 5, limit: null },
    storedBytes: { used: 1048576, limit: 1048576 },
    messagesPerSecond: { used: 4, limit: 4, throttled: true },
    deliverySlots: { used: 1, limit: 8 },
  };
  await page.route('**/api/usage', (route) => route.fulfill({ json: usage }));
  const { shown } = await openUsage(page);
  assert.deepEqual(Object.values(shown), ['2 of 3', '5 of any number', '1048576 of 1048576', '4 of 4; the others wait', '1 of 8']);
  assert.deepEqual(faults, []);
  await close();
});

const letter = (webhook, sequence) => ({
  id: `msg_${webhook}_${sequence}`, sequence, type: 'transaction', slot: 7, state: 'failed', created: '2026-01-01T00:00:00Z', nextAttempt: null,
  attempts: [{ number: 1, error: 'status 500' }],
});

// Plays webhooks, each with as many dead letters as its number says, of which a page has `most`.
async function playLetters(page, counts, { most = 50, nextCursor = null } = {}) {
  const webhooks = counts.map((_, index) => ({ id: `wh_${index}`, url: 'https://example.com/dead' }));
  await page.route('**/api/webhooks?*', (route) => route.fulfill({ json: { webhooks, nextCursor } }));
  await page.route('**/api/webhooks/*/deliveries?*', (route) => {
    const index = Number(/wh_(\d+)/.exec(route.request().url())[1]);
    const deliveries = Array.from({ length: Math.min(counts[index], most) }, (_, at) => letter(`wh_${index}`, counts[index] - at));
    return route.fulfill({ json: { deliveries, nextCursor: counts[index] > most ? 'further' : null } });
  });
  await page.goto('/console/usage');
  await page.locator('#dead tbody td').first().waitFor();
}

test('a list of dead letters that is cut says so, and where the others are', async () => {
  const { page, faults, close } = await open('/console/explain');
  await playLetters(page, [0, 70, 2], { nextCursor: 'further' });
  assert.equal((await readRows(page, '#dead')).length, 52);
  const cut = page.locator('#cut');
  const text = await cut.textContent();
  for (const part of ['The first 52 are shown, and not all', 'of wh_1 the newest 50', 'those of the oldest 3 webhooks alone', 'redeliver all that failed']) {
    assert.ok(text.includes(part), `${text}: no ${part}`);
  }
  assert.ok(!text.includes('wh_0') && !text.includes('wh_2'), text);
  await assertSoundInEveryForm(page);
  await cut.locator('a').press('Enter');
  await page.waitForURL('**/console/webhooks');
  await page.locator('h1', { hasText: 'Webhooks' }).waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test('a list of dead letters that is whole says nothing of others', async () => {
  const { page, faults, close } = await open('/console/explain');
  await playLetters(page, [50, 1]);
  assert.equal((await readRows(page, '#dead')).length, 51);
  assert.ok(await page.locator('#cut').isHidden());
  assert.deepEqual(faults, []);
  await close();
});
