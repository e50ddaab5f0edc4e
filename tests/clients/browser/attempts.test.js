// Attempts of a webhook's deliveries as waterfalls: each part that an attempt has come to, as a bar and in words.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { assertSoundInEveryForm, open, press, swap, until } from './browser.js';
import { receive } from './receiver.js';

const json = async (answer) => (await answer).json();

const PARTS = [['name', 'resolvedMicros'], ['connect', 'connectedMicros'], ['TLS', 'securedMicros'], ['first byte', 'firstByteMicros']];

// How wide the drawing is, in its own units.
const WIDTH = 200;

const create = async (page, url) => {
  const { publicKey } = await json(page.request.get('/console/demo-wallet'));
  const definition = { url, events: ['accountChange', 'transaction', 'programEvent'], filters: { accounts: [publicKey], programs: [process.env.SLUICE_GUARD] } };
  const { webhook } = await json(page.request.post('/api/webhooks', { data: definition }));
  return { id: webhook.id, api: `/api/webhooks/${webhook.id}` };
};

async function openWebhook(page, id) {
  await page.goto('/console/webhooks');
  await page.locator('#list button', { hasText: id }).press('Enter');
  await page.locator('#deliveries tbody summary').first().waitFor();
}

// The bars and the words of an attempt, which is opened for them.
async function readWaterfall(page, id, number) {
  const row = page.locator('#deliveries tbody tr', { has: page.locator(`#choose-${id}`) });
  const attempt = row.locator('details').nth(number - 1);
  if (!(await attempt.evaluate(({ open }) => open))) await attempt.locator('summary').press('Enter');
  await attempt.locator('.waterfall').waitFor();
  const bars = await attempt.locator('.waterfall rect').evaluateAll((all) =>
    all.map((bar) => ({ x: Number(bar.getAttribute('x')), width: Number(bar.getAttribute('width')), seen: bar.getBoundingClientRect().width > 0, title: bar.textContent })));
  return { bars, words: await attempt.locator('.waterfall p').textContent() };
}

// The bars follow each other, each as wide as its part took, and all of them have their words.
function assertDrawn({ bars, words }, made, end) {
  const parts = [...PARTS.map(([name, member]) => [name, made[member]]).filter(([, at]) => at !== null), [end, made.durationMicros]];
  const expected = parts.map(([name, at]) => `${name} until ${(at / 1000).toFixed(1)} ms`);
  assert.deepEqual(bars.map(({ title }) => title), expected);
  assert.equal(words, expected.join(', '));
  let from = 0;
  for (const [index, [name, at]] of parts.entries()) {
    const { x, width, seen } = bars[index];
    const [left, across] = [from, at - from].map((time) => (WIDTH * time) / made.durationMicros);
    assert.ok(seen, `${name} is not seen`);
    assert.ok(Math.abs(x - left) <= 0.06, `${name} begins at ${x}, not at ${left}`);
    assert.ok(Math.abs(width - Math.max(across, 0.5)) <= 0.06, `${name} is ${width} wide, not ${across}`);
    from = at;
  }
}

test('an attempt is drawn as long as its parts took', async (t) => {
  const receiver = await receive();
  t.after(receiver.close);
  const { page, faults, close } = await open('/console/swap');
  const { id, api } = await create(page, receiver.url);
  await swap(page);
  const deliveries = await until(async () => {
    const read = await json(page.request.get(`${api}/deliveries?limit=20`));
    return read.deliveries.length >= 3 && read.deliveries.every(({ state }) => state === 'delivered') ? read.deliveries : null;
  });
  await openWebhook(page, id);
  // A connection that is used again has no part of its own: one of the first attempts has made it.
  const connected = deliveries.find(({ attempts: [made] }) => made.connectedMicros !== null);
  assert.ok(connected, 'no attempt has connected');
  for (const delivery of [connected, deliveries[0]]) {
    const [made] = delivery.attempts;
    assert.ok(made.firstByteMicros > 0 && made.firstByteMicros <= made.durationMicros, JSON.stringify(made));
    assertDrawn(await readWaterfall(page, delivery.id, 1), made, 'body');
  }
  assert.equal((await page.request.delete(api)).status(), 204);
  assert.deepEqual(faults, []);
  await close();
});

test('the look-up of a name, TLS and an end without an answer are drawn as well', async () => {
  const { page, faults, close } = await open('/console/explain');
  const { id, api } = await create(page, 'https://example.com/attempts');
  const attempt = (number, change) => ({
    number, url: 'https://example.com/attempts', started: '2026-01-01T00:00:00Z', status: null, error: null, requestHeaders: [], response: null, responseCut: false,
    durationMicros: 100_000, resolvedMicros: 10_000, connectedMicros: 30_000, securedMicros: 60_000, firstByteMicros: 90_000, ...change,
  });
  // No name is looked up, and no certificate is asked for, on this machine.
  const answered = attempt(2, { status: 204 });
  const silent = attempt(1, { error: 'no answer within 100 ms', firstByteMicros: null });
  const delivery = { id: 'msg_1', sequence: 1, type: 'transaction', slot: 7, state: 'delivered', created: '2026-01-01T00:00:00Z', nextAttempt: null, attempts: [silent, answered] };
  await page.route(`**${api}/deliveries?*`, (route) => route.fulfill({ json: { deliveries: [delivery], nextCursor: null } }));
  await page.route(`**${api}/messages/*`, (route) => route.fulfill({ json: { id: 'msg_1', body: { type: 'transaction' } } }));
  await openWebhook(page, id);
  const drawn = await readWaterfall(page, 'msg_1', 2);
  assertDrawn(drawn, answered, 'body');
  assert.equal(drawn.words, 'name until 10.0 ms, connect until 30.0 ms, TLS until 60.0 ms, first byte until 90.0 ms, body until 100.0 ms');
  assertDrawn(await readWaterfall(page, 'msg_1', 1), silent, 'given up');
  await assertSoundInEveryForm(page);
  page.on('dialog', (dialog) => dialog.accept());
  await press(page, '#delete');
  await page.locator('#detail').waitFor({ state: 'hidden' });
  assert.deepEqual(faults, []);
  await close();
});
