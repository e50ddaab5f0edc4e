// Dead letters: messages that were given up are found in the lists, sent once more from there, and gone from them.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { assertSoundInEveryForm, open, press, swap, tabTo, until } from './browser.js';
import { isSigned, receive } from './receiver.js';

const json = async (answer) => (await answer).json();

// A webhook that tries each message once.
async function create(page, url) {
  const { publicKey } = await json(page.request.get('/console/demo-wallet'));
  const { pools } = await json(page.request.get(`/v1/pools?mint=${process.env.SLUICE_MINT_SOL}`));
  const definition = {
    url,
    events: ['accountChange', 'transaction', 'programEvent'],
    filters: { accounts: [publicKey, ...pools.map(({ pool }) => pool)], programs: [process.env.SLUICE_GUARD] },
    delivery: { retryPausesSeconds: [] },
  };
  return json(page.request.post('/api/webhooks', { data: definition }));
}

// A page, and the dead letters of a webhook whose receiver has refused all that is told of a swap, and accepts from now on.
async function giveUpMessages(t) {
  const receiver = await receive(Infinity);
  t.after(receiver.close);
  const { page, faults, close } = await open('/console/explain');
  const { webhook, secret } = await create(page, receiver.url);
  const api = `/api/webhooks/${webhook.id}`;
  await page.goto('/console/swap');
  await swap(page);
  const letters = await until(async () => {
    const { deliveries } = await json(page.request.get(`${api}/deliveries?limit=50`));
    return deliveries.length >= 4 && deliveries.every(({ state }) => state === 'failed') ? deliveries : null;
  });
  const end = async () => {
    assert.equal((await page.request.delete(api)).status(), 204);
    assert.deepEqual(faults, []);
    await close();
  };
  assertArrivedAgain(receiver, letters, []);
  receiver.accept();
  return { page, receiver, id: webhook.id, secret, api, letters, end };
}

// Those of `again` have arrived twice, and every other one once.
function assertArrivedAgain(receiver, letters, again) {
  const expected = letters.map((letter) => (again.includes(letter) ? 2 : 1));
  assert.deepEqual(letters.map(({ id }) => receiver.times(id)), expected);
}

const delivered = (page, api, { sequence }) =>
  until(async () => {
    const { deliveries } = await json(page.request.get(`${api}/deliveries?sequence=${sequence}`));
    return deliveries[0].state === 'delivered';
  });

test('a dead letter is sent once more from the list of all, and leaves it', async (t) => {
  const { page, receiver, id, secret, api, letters, end } = await giveUpMessages(t);
  const [letter, ...others] = letters;
  await page.goto('/console/usage');
  const rows = page.locator('#dead tbody tr', { hasText: id });
  const again = ({ sequence }) => `[aria-label="Redeliver message ${sequence} of ${id}"]`;
  await page.locator(again(letter)).waitFor();
  assert.equal(await rows.count(), letters.length);
  for (const why of await rows.locator('td:nth-child(5)').allTextContents()) assert.match(why, /500/);
  await assertSoundInEveryForm(page);

  await tabTo(page, again(letter));
  await page.keyboard.press('Enter');
  await page.locator('#notice', { hasText: `Message ${letter.sequence} is sent once more` }).waitFor();
  await page.locator(again(letter)).waitFor({ state: 'detached' });
  await delivered(page, api, letter);
  assert.equal(await rows.count(), others.length);
  assertArrivedAgain(receiver, letters, [letter]);
  const [refused, accepted] = receiver.received.filter((each) => each.id === letter.id);
  assert.equal(accepted.body, refused.body);
  assert.ok(isSigned(secret, accepted));

  // The button is gone that had the focus: from the table one goes on to the next.
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-labelledby')), 'dead-title');
  await tabTo(page, again(others[0]));
  await end();
});

// Opens the webhook's list of those that failed, while the list of all, which is asked for first, is answered last.
async function openFailed(page, { id, api, count }) {
  const all = (url) => url.pathname === `${api}/deliveries` && !url.searchParams.has('state');
  let answer;
  const asked = new Promise((resolve) => {
    answer = resolve;
  });
  await page.goto('/console/webhooks');
  await page.route(all, async (route) => {
    await asked;
    await route.continue();
  });
  await page.locator('#list button', { hasText: id }).press('Enter');
  await page.locator('#state').selectOption('failed');
  const rows = page.locator('#deliveries tbody tr', { has: page.locator('input') });
  await rows.first().waitFor();
  // What is read next is asked for once the answer has been looked at.
  const next = page.waitForRequest((request) => new URL(request.url()).pathname === `${api}/operations`);
  answer();
  await next;
  await page.unroute(all);
  assert.equal(await rows.count(), count);
  return rows;
}

test('dead letters of a webhook are sent once more, those chosen and all that are left, and leave its list', async (t) => {
  const { page, receiver, id, api, letters, end } = await giveUpMessages(t);
  const [first, ...others] = letters;
  const [chosen, left] = [others.slice(0, 2), others.slice(2)];
  assert.equal((await page.request.post(`${api}/redeliver`, { data: { id: first.id } })).status(), 202);
  await delivered(page, api, first);
  const rows = await openFailed(page, { id, api, count: others.length });
  assert.equal(await page.locator(`#choose-${first.id}`).count(), 0);

  for (const letter of chosen) await press(page, `#choose-${letter.id}`, 'Space');
  await press(page, '#redeliver-chosen');
  await page.locator('#notice', { hasText: '2 sent once more' }).waitFor();
  for (const letter of chosen) {
    await page.locator(`#choose-${letter.id}`).waitFor({ state: 'detached' });
    await delivered(page, api, letter);
  }
  assert.equal(await rows.count(), left.length);
  assertArrivedAgain(receiver, letters, [first, ...chosen]);

  await press(page, '#redeliver-failed');
  await page.locator('#notice', { hasText: `${left.length} are sent once more` }).waitFor();
  await page.locator('#deliveries td', { hasText: 'no delivery' }).waitFor();
  for (const letter of left) await delivered(page, api, letter);
  assertArrivedAgain(receiver, letters, letters);
  // Nor do they stand in the list of all any more.
  await page.goto('/console/usage');
  await page.locator('#dead tbody td').first().waitFor();
  assert.equal(await page.locator('#dead tbody tr', { hasText: id }).count(), 0);
  await end();
});
