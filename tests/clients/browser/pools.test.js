// Page of a pool: what is said of it, how its price goes on, and how the impact grows.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { open, readFacts, swap, unitsShown } from './browser.js';

const { SLUICE_MINT_SOL: SOL, SLUICE_MINT_USDL: USDL, SLUICE_MINT_ALFA: ALFA } = process.env;

const json = async (answer) => (await answer).json();

const poolOf = async (page, one, other) => {
  const { pools } = await json(page.request.get(`/v1/pools?mint=${one}`));
  return pools.find(({ tokens }) => other === undefined || tokens.some(({ mint }) => mint === other));
};

// Finds a pool by its address and opens it.
async function openPool(page, pool) {
  await page.locator('#address').fill(pool);
  await page.keyboard.press('Enter');
  // Before it is found, others stand in the table.
  await page.waitForFunction((address) => [...document.querySelectorAll('#found tbody button')].map(({ textContent }) => textContent).join() === address, pool);
  await page.locator('#found tbody button').click();
  await page.locator('#facts', { hasText: pool }).waitFor();
}

// The points of a plot's line, downwards as they are drawn.
async function readLine(page, plot) {
  const line = page.locator(`${plot} polyline`).last();
  // A flat one has no height, so it counts as hidden.
  await line.waitFor({ state: 'attached' });
  return (await line.getAttribute('points')).split(' ').map((point) => point.split(',').map(Number));
}

// What the ends of the axes say: the highest and the lowest value, the first and the last place.
const readEnds = (page, plot) => page.locator(`${plot} text`).allTextContents();

test('what is shown of each pool is what the API says of it', async () => {
  const { page, faults, close } = await open('/console/pools');
  const { pools } = await json(page.request.get('/v1/pools?limit=100'));
  assert.ok(pools.some(({ fees }) => fees.creatorPpm > 0), 'no pool has a fee for its creator');
  for (const { pool: address } of pools) {
    await openPool(page, address);
    await page.locator('#live', { hasText: 'as of slot' }).waitFor();
    const { pool } = await json(page.request.get(`/v1/pools/${address}`));
    const shown = await readFacts(page, '#facts');
    for (const { mint, decimals, reserveString, extensions } of pool.tokens) {
      assert.equal(unitsShown(shown[`reserve of ${mint}`], decimals), reserveString);
      assert.equal(shown[`extensions of ${mint}`], extensions.join(', ') || 'none');
    }
    assert.deepEqual([shown.state, shown['switched off by the exchange'], shown['price by the reserves']], ['swaps', 'nothing', pool.price]);
    assert.equal(shown['trade fee'], `${pool.fees.tradePpm / 10_000} %`);
    assert.equal(shown['creator fee'], `${pool.fees.creatorPpm / 10_000} %`);
    assert.equal(shown['fee configuration'], pool.config);
  }
  assert.deepEqual(faults, []);
  await close();
});

test('a pool that does not swap is shown with the reason, and without prices', async () => {
  const { page, faults, close } = await open('/console/pools');
  const { pool: address } = await poolOf(page, ALFA);
  const answer = await json(page.request.get(`/v1/pools/${address}`));
  // The exchange has switched off none of the localnet's.
  const pool = { ...answer.pool, status: 5, isTradable: false, reason: 'swaps are switched off' };
  await page.route(`**/v1/pools/${address}`, (route) => route.fulfill({ json: { ...answer, pool } }));
  await openPool(page, address);
  const shown = await readFacts(page, '#facts');
  assert.deepEqual([shown.state, shown['switched off by the exchange']], ['swaps are switched off', 'deposits, swaps']);
  assert.equal(await page.locator('#live').textContent(), 'swaps are switched off');
  assert.equal(await page.locator('#impact polyline, #history polyline').count(), 0);
  assert.deepEqual(faults, []);
  await close();
});

test('the impact that is plotted grows with the amount, in either direction', async () => {
  const { page, faults, close } = await open('/console/pools');
  const { pool, tokens } = await poolOf(page, SOL, USDL);
  await openPool(page, pool);
  for (const from of [0, 1]) {
    await page.locator('#direction').selectOption(String(from));
    const amount = (BigInt(tokens[from].reserveString) * 5000n) / 10_000n;
    const query = new URLSearchParams({ inputMint: tokens[from].mint, outputMint: tokens[1 - from].mint, amount: String(amount), pool });
    const { context } = await json(page.request.get(`/v1/quote?${query}`));
    await page.locator('#impact text', { hasText: (Number(amount) / 10 ** tokens[from].decimals).toPrecision(3) }).waitFor();
    const points = await readLine(page, '#impact');
    assert.ok(points.length >= 10, `${points.length} points`);
    for (const [index, [across, down]] of points.slice(1).entries()) {
      assert.ok(across >= points[index][0] && down <= points[index][1], points.join(' '));
    }
    assert.ok(points.at(-1)[1] < points[0][1], points.join(' '));
    const [highest] = await readEnds(page, '#impact');
    assert.ok(Math.abs(parseFloat(highest) - context.priceImpactBps / 100) <= 0.2, `${highest}, and the API says ${context.priceImpactBps}`);
  }
  assert.deepEqual(faults, []);
  await close();
});

test('of two searches what the last one finds is shown, though the first is answered after it', async () => {
  const { page, faults, close } = await open('/console/pools');
  const { pool } = await poolOf(page, ALFA);
  let release;
  const held = new Promise((resolve) => { release = resolve; });
  await page.route(/\/v1\/pools\?limit=20$/, async (route) => {
    const response = await route.fetch();
    await held;
    await route.fulfill({ response });
  });
  await page.locator('#address').fill('');
  await page.keyboard.press('Enter');
  await openPool(page, pool);
  const late = page.waitForResponse(/\/v1\/pools\?limit=20$/);
  release();
  await (await late).finished();
  await page.evaluate(() => new Promise((resolve) => { setTimeout(resolve, 200); }));
  const found = await page.locator('#found tbody button').allTextContents();
  assert.deepEqual(found, [pool]);
  assert.deepEqual(faults, []);
  await close();
});

test('the price of a pool is plotted as it moves', async () => {
  const { page, faults, close } = await open('/console/pools');
  const { pool } = await poolOf(page, SOL, USDL);
  await openPool(page, pool);
  await page.locator('#history polyline').first().waitFor({ state: 'attached' });
  const before = (await readLine(page, '#history')).length;
  const other = await open('/console/swap');
  await swap(other.page);
  await page.waitForFunction((count) => {
    const points = [...document.querySelectorAll('#history polyline')].flatMap((line) => line.getAttribute('points').split(' '));
    return points.length > count && points.at(-1).split(',')[1] !== points[0].split(',')[1];
  }, before);
  const { pool: now } = await json(page.request.get(`/v1/pools/${pool}`));
  const ends = (await readEnds(page, '#history')).slice(0, 2).map(Number);
  assert.ok(ends.some((end) => Math.abs(end / Number(now.price) - 1) < 1e-4), `${ends}, and the API says ${now.price}`);
  assert.deepEqual([...faults, ...other.faults], []);
  await other.close();
  await close();
});

test('the price of a quiet pool is a flat line, which a change of direction and another visit keep', async () => {
  const { page, faults, close } = await open('/console/pools');
  const { pool } = await poolOf(page, ALFA);
  await openPool(page, pool);
  // No quote comes while nothing changes, and the line goes on.
  await page.waitForFunction(() => (document.querySelector('#history polyline')?.getAttribute('points') ?? '').split(' ').length >= 4);
  const flat = await readLine(page, '#history');
  assert.equal(new Set(flat.map(([, down]) => down)).size, 1, flat.join(' '));
  const [high, low, begun] = await readEnds(page, '#history');
  // At once, and not from the next quote on.
  const turned = await page.evaluate(() => {
    document.querySelector('#direction').value = '1';
    document.querySelector('#direction').dispatchEvent(new Event('change'));
    return [document.querySelector('#history polyline').getAttribute('points').split(' ').length, ...[...document.querySelectorAll('#history text')].map(({ textContent }) => textContent)];
  });
  assert.ok(turned[0] >= flat.length, `${turned[0]} points of ${flat.length}`);
  assert.equal(turned[3], begun);
  const [mean, inverse] = [[high, low], [turned[1], turned[2]]].map(([one, other]) => (Number(one) + Number(other)) / 2);
  assert.ok(Math.abs(mean * inverse - 1) < 1e-3, `${mean} and ${inverse}`);

  await page.reload();
  await openPool(page, pool);
  await page.locator('#history polyline').first().waitFor({ state: 'attached' });
  assert.equal((await readEnds(page, '#history'))[2], begun);
  assert.deepEqual(faults, []);
  await close();
});

test('what was seen of prices is kept for minutes and for few pools, and is no line where nobody has looked', async () => {
  const { page, faults, close } = await open('/console/explain');
  const { pool } = await poolOf(page, ALFA);
  await page.evaluate((address) => {
    const now = Date.now();
    const keep = (name, points) => sessionStorage.setItem(`price of ${name}`, JSON.stringify(points));
    keep(address, [[now - 3_600_000, 9], [now - 300_000, 0.4], [now - 290_000, 0.4]]);
    keep('a pool of this morning', [[now - 3_600_000, 1]]);
    for (let number = 0; number < 30; number += 1) keep(`pool ${number}`, [[now - 1000 * number, 1]]);
  }, pool);
  await page.goto('/console/pools');
  await openPool(page, pool);
  await page.waitForFunction(() => document.querySelectorAll('#history polyline').length === 2);
  const kept = await page.evaluate(() => Object.keys(sessionStorage).filter((name) => name.startsWith('price of ')));
  assert.ok(kept.length <= 21, `${kept.length} pools`);
  assert.ok(!kept.includes('price of a pool of this morning'));
  const [highest] = await readEnds(page, '#history');
  assert.ok(Number(highest) < 9, 'what is an hour old is gone');
  assert.deepEqual(faults, []);
  await close();
});
