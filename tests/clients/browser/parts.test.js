// Parts of the pages for pools, swaps and explanations that their main flow leaves out.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { open, readFacts, swap } from './browser.js';

const { SLUICE_MINT_SOL: SOL, SLUICE_MINT_USDL: USDL, SLUICE_MINT_LEVY: LEVY } = process.env;

const json = async (answer) => (await answer).json();

test('the pools of a mint are found by it, as the API lists them', async () => {
  const { page, faults, close } = await open('/console/pools');
  await page.locator('#found tbody button').first().waitFor();
  const { pools } = await json(page.request.get(`/v1/pools?mint=${USDL}`));
  const { pools: all } = await json(page.request.get('/v1/pools?limit=100'));
  assert.ok(pools.length >= 2 && pools.length < all.length, `${pools.length} of ${all.length}`);
  await page.locator('#address').fill(USDL);
  await page.locator('#search button').click();
  await page.waitForFunction((count) => document.querySelectorAll('#found tbody tr').length === count, pools.length);
  assert.deepEqual(await page.locator('#found tbody button').allTextContents(), pools.map(({ pool }) => pool));
  const pairs = await page.locator('#found tbody td:nth-child(2)').allTextContents();
  for (const pair of pairs) assert.ok(pair.includes(USDL.slice(0, 6)), pair);
  assert.deepEqual(faults, []);
  await close();
});

test('a swap goes through two pools where that is asked for', async () => {
  const { page, faults, close } = await open('/console/swap');
  await page.waitForFunction(() => document.querySelector('#output-mint').value !== '');
  await page.locator('#two-hops').check();
  await page.locator('#input-mint').fill(SOL);
  await page.locator('#output-mint').fill(LEVY);
  await page.locator('#amount-in').fill('0.5');
  await page.locator('#live', { hasText: 'as of slot' }).waitFor();
  const route = page.locator('#quote li');
  await route.nth(1).waitFor();
  const query = new URLSearchParams({ inputMint: SOL, outputMint: LEVY, amount: '500000000', maxHops: '2' });
  const { quote } = await json(page.request.get(`/v1/quote?${query}`));
  assert.deepEqual(await route.allTextContents(), quote.pool.split(','));
  assert.equal(await route.count(), 2);
  assert.deepEqual(faults, []);
  await close();
});

test('pools that were not chosen are named with what they would pay and why not', async () => {
  const { page, faults, close } = await open('/console/swap');
  await page.waitForFunction(() => document.querySelector('#output-mint').value !== '');
  const query = new URLSearchParams({ inputMint: SOL, outputMint: USDL, amount: '500000000' });
  const answer = await json(page.request.get(`/v1/quote?${query}`));
  // The localnet has one pool of each pair: the others are played.
  const alternatives = [
    { pool: 'PoolThatPaysLess', outAmount: 1234567, outAmountString: '1234567', amountIn: null, amountInString: null, reason: 'pays less' },
    { pool: 'PoolThatIsClosed', outAmount: null, outAmountString: null, amountIn: null, amountInString: null, reason: 'swaps are switched off' },
  ];
  const data = JSON.stringify({ ...answer, context: { ...answer.context, alternatives } });
  await page.route('**/v1/quote/stream?*', (route) => route.fulfill({ contentType: 'text/event-stream', body: `event: quote\ndata: ${data}\n\n` }));
  await page.locator('#input-mint').fill(SOL);
  await page.locator('#output-mint').fill(USDL);
  await page.locator('#amount-in').fill('0.5');
  const rows = page.locator('#others tbody tr');
  await rows.nth(1).waitFor();
  const cells = async (row) => rows.nth(row).locator('td').allTextContents();
  assert.deepEqual(await cells(0), ['PoolThatPaysLess', '1.234567', 'pays less']);
  assert.deepEqual(await cells(1), ['PoolThatIsClosed', '–', 'swaps are switched off']);
  assert.deepEqual(faults, []);
  await close();
});

// Answers as of a market that is behind, for the first so many requests for what the pattern names.
async function behindAtFirst(page, pattern, count) {
  const problem = { type: 'about:blank', title: 'Market not ready', status: 503, code: 'market_not_ready', detail: 'the market is behind', retryable: true };
  let left = count;
  await page.route(pattern, (route) => {
    left -= 1;
    return left < 0 ? route.continue() : route.fulfill({ status: 503, contentType: 'application/problem+json', body: JSON.stringify(problem) });
  });
}

test('where the market is behind for a moment, a swap is asked for again', async () => {
  const { page, faults, close } = await open('/console/swap');
  await page.waitForFunction(() => document.querySelector('#output-mint').value !== '');
  const live = (text) => page.locator('#live', { hasText: text }).waitFor();
  await behindAtFirst(page, '**/v1/mints/*', 1);
  // The stream and what it was refused for.
  await behindAtFirst(page, '**/v1/quote**', 2);
  await page.locator('#input-mint').fill(SOL);
  await page.locator('#output-mint').fill(USDL);
  await page.locator('#amount-in').fill('0.5');
  await live('the market is behind; asking again');
  await live('as of slot');
  assert.deepEqual(faults, []);
  await close();
});

test('where the market is behind for a moment, the price of a pool is asked for again', async () => {
  const { page, faults, close } = await open('/console/pools');
  await behindAtFirst(page, '**/v1/quote/stream**', 1);
  await page.locator('#found tbody button').first().click();
  await page.locator('#live', { hasText: 'as of slot' }).waitFor();
  assert.deepEqual(faults, []);
  await close();
});

const [AMOUNT, PRIORITY] = ['500000000', '10000'];

// A swap of half a SOL by the demo wallet: the body that it was asked for with, the answer, and who signs.
async function build(page) {
  const { publicKey } = await json(page.request.get('/console/demo-wallet'));
  const query = new URLSearchParams({ inputMint: SOL, outputMint: USDL, amount: AMOUNT });
  const { quote } = await json(page.request.get(`/v1/quote?${query}`));
  const asked = { quote, userPublicKey: publicKey, swapMode: 'ExactIn', priorityFeeLamports: PRIORITY, transactionVersion: 0 };
  const built = await json(page.request.post('/v1/swap/transaction', { data: asked }));
  return { built, request: { ...asked, quote: built.quote }, publicKey };
}

// What a signature costs, lamports.
const BASE_FEE = '5000';

test('what a transaction can cost is shown, and takes what was asked for', async () => {
  const { page, faults, close } = await open('/console/explain');
  const { built, publicKey } = await build(page);
  await page.locator('#subject').fill(built.transaction);
  await page.locator('#ask button').click();
  await page.locator('#explanation li').first().waitFor();
  const shown = await readFacts(page, '#explanation > dl');
  const { costs } = await json(page.request.post('/v1/transactions/explain', { data: { transaction: built.transaction } }));
  assert.deepEqual([shown['base fee, lamports'], costs.baseFeeLamportsString, built.costs.baseFeeLamportsString], [BASE_FEE, BASE_FEE, BASE_FEE]);
  const priority = shown['priority fee at most, lamports'];
  assert.equal(priority, costs.priorityFeeLamportsString);
  assert.ok(BigInt(priority) > 0n && BigInt(priority) <= BigInt(PRIORITY), priority);
  assert.equal(shown['compute unit limit'], String(costs.computeUnitLimit));
  assert.ok(costs.computeUnitLimit > 0);
  const spends = await page.locator('#explanation > dl dd', { hasText: 'smallest units' }).locator('li').allTextContents();
  assert.equal(spends.length, costs.spends.length);
  for (const [index, { amountString, asset, mint, from, instruction }] of costs.spends.entries()) {
    for (const part of [`instruction ${instruction + 1}: ${amountString} `, asset === 'lamports' ? 'lamports' : (mint ?? 'a token'), `from ${from ?? 'an account'}`]) {
      assert.ok(spends[index].includes(part), `${spends[index]}: no ${part}`);
    }
  }
  // SOL is wrapped first, and then swapped.
  assert.ok(spends.some((spend) => spend.includes(`: ${AMOUNT} lamports from ${publicKey}`)), spends.join('; '));
  assert.ok(spends.some((spend) => spend.includes(`: ${AMOUNT} of ${SOL}, smallest units,`)), spends.join('; '));
  assert.deepEqual(faults, []);
  await close();
});

test('what a transaction has cost is shown by its signature', async () => {
  const { page, faults, close } = await open('/console/swap');
  await swap(page);
  const signature = await page.locator('#outcome a').textContent();
  await page.locator('#outcome a').click();
  await page.locator('#explanation h3', { hasText: 'What became of it' }).waitFor();
  const { execution, costs } = await json(page.request.post('/v1/transactions/explain', { data: { signature } }));
  const became = await page.locator('#explanation > dl').nth(1).evaluate((list) => [...list.querySelectorAll('dd')].map(({ textContent }) => textContent));
  assert.deepEqual([became[0], became[1], became[3], became[4]], ['succeeded', String(execution.slot), execution.feeLamportsString, String(execution.computeUnits)]);
  const shown = await readFacts(page, '#explanation > dl');
  assert.equal(shown.signature, signature);
  // What is charged for priority is known before it lands: the limit is paid for, and not what was used of it.
  assert.equal(BigInt(became[3]), BigInt(shown['base fee, lamports']) + BigInt(shown['priority fee at most, lamports']));
  assert.ok(execution.computeUnits > 0 && execution.computeUnits <= costs.computeUnitLimit);
  assert.deepEqual(faults, []);
  await close();
});

test('a transaction is compared with the body that it was asked for with', async () => {
  const { page, faults, close } = await open('/console/explain');
  const { built, request } = await build(page);
  const explain = async (body) => {
    await page.locator('#request').fill(body);
    await page.locator('#ask button').click();
  };
  await page.locator('#subject').fill(built.transaction);
  await page.locator('#ask summary').click();
  await explain(JSON.stringify(request));
  await page.locator('#checked', { hasText: 'this very transaction' }).waitFor();
  await page.locator('#explanation li strong', { hasText: 'guardedSwap' }).waitFor();
  await explain(JSON.stringify({ ...request, priorityFeeLamports: '77' }));
  await page.locator('#checked', { hasText: 'builds another one' }).waitFor();
  await explain('{ no JSON');
  await page.locator('#fault', { hasText: 'paste the JSON' }).waitFor();
  assert.deepEqual(faults, []);
  await close();
});
