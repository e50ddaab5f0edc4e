// The playground with wallets of the Wallet Standard: what they sign is sent and followed, and what they change is shown.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { open, press, quoteAndBuild, readFacts } from './browser.js';
import { openWithWallet, timesAsked } from './wallet.js';

const SEND = 'solana:signAndSendTransaction';

// Where it lands is the localnet's own pace.
const confirmed = (page) => page.locator('#steps li', { hasText: 'confirmed' }).waitFor({ timeout: 60_000 });

// The signature that is shown, of a swap that the API has followed to its end.
async function assertFollowed(page) {
  const facts = await readFacts(page, '#outcome');
  const { status, commitment, error, receivedString } = await (await page.request.get(`/v1/transactions/${facts.signature}`)).json();
  assert.ok(['confirmed', 'finalized'].includes(status), `${status}, ${commitment}`);
  assert.equal(error, null);
  assert.ok(BigInt(receivedString) > 0n);
  assert.equal(facts['received against quoted'], 'exactly as quoted');
  return facts.signature;
}

test('what a wallet of the standard signs as it is, is sent and followed until it is confirmed', async () => {
  const { page, faults, close } = await open('/console');
  await openWithWallet(page);
  await quoteAndBuild(page);
  await page.locator('#checked', { hasText: 'this very transaction' }).waitFor();
  await press(page, '#sign');
  await confirmed(page);
  assert.equal(await timesAsked(page), 1);
  assert.ok(await page.locator('#send-changed').isHidden());
  await assertFollowed(page);
  assert.deepEqual(faults, []);
  await close();
});

test('a wallet of the standard signs, and what it changes is shown before it is sent', async () => {
  const { page, faults, close } = await open('/console');
  await openWithWallet(page, { change: 'instruction' });
  await quoteAndBuild(page);
  await page.locator('#sign').click();
  await page.locator('#checked', { hasText: 'has changed the transaction' }).waitFor();
  await page.locator('#explanation .wrong').first().waitFor();
  assert.ok(await page.locator('#send-changed').isVisible());
  assert.ok(await page.locator('#sent').isHidden());
  assert.deepEqual(faults, []);
  await close();
});

test('what a wallet has changed is sent once somebody has seen it, and is followed as well', async () => {
  const { page, faults, close } = await open('/console');
  await openWithWallet(page, { change: 'price' });
  await quoteAndBuild(page);
  await press(page, '#sign');
  await page.locator('#checked', { hasText: 'has changed the transaction' }).waitFor();
  assert.equal(await page.locator('#explanation .wrong').count(), 0);
  assert.ok(await page.locator('#sent').isHidden());
  const { signature } = await readFacts(page, '#explanation > dl');
  await press(page, '#send-changed');
  await confirmed(page);
  assert.equal(await assertFollowed(page), signature);
  assert.deepEqual(faults, []);
  await close();
});

test('a wallet that only sends by itself does so, and its swap is followed', async () => {
  const { page, faults, close } = await open('/console');
  const sent = await openWithWallet(page, { feature: SEND });
  await quoteAndBuild(page);
  await press(page, '#sign');
  await confirmed(page);
  assert.deepEqual(sent, [await assertFollowed(page)]);
  assert.ok(await page.locator('#send-changed').isHidden());
  assert.deepEqual(faults, []);
  await close();
});

test('what a wallet has changed and sent by itself is found by its signature, and explained', async () => {
  const { page, faults, close } = await open('/console');
  const sent = await openWithWallet(page, { feature: SEND, change: 'price' });
  await quoteAndBuild(page);
  await press(page, '#sign');
  await confirmed(page);
  await page.locator('#checked', { hasText: 'not the one that was built' }).waitFor();
  assert.equal(sent.length, 1);
  assert.equal((await readFacts(page, '#outcome')).signature, sent[0]);
  assert.equal((await readFacts(page, '#explanation > dl')).signature, sent[0]);
  await page.locator('#explanation', { hasText: 'succeeded' }).waitFor();
  // That the API was given a signature of something else, and that it was not there yet, is all that the browser notes.
  assert.deepEqual(faults.filter((fault) => !/status of 40[04]/.test(fault)), []);
  await close();
});

test('a wallet that would send to another chain is not asked to', async () => {
  const { page, faults, close } = await open('/console');
  const sent = await openWithWallet(page, { feature: SEND, chains: ['solana:mainnet'] });
  await quoteAndBuild(page);
  await press(page, '#sign');
  await page.locator('#notice', { hasText: 'it does not know solana:localnet' }).waitFor();
  assert.equal(await timesAsked(page), 0);
  assert.deepEqual(sent, []);
  assert.ok(await page.locator('#sent').isHidden());
  assert.deepEqual(faults, []);
  await close();
});
