// The playground's quote: every fee of it, and how it follows the pool.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { open, readRows, swap, unitsShown } from './browser.js';

const { SLUICE_MINT_SOL: SOL, SLUICE_MINT_USDL: USDL, SLUICE_MINT_ALFA: ALFA, SLUICE_MINT_BETA: BETA, SLUICE_MINT_LEVY: LEVY } = process.env;

// What goes in, whole tokens and, of a mint of nine decimals, smallest units.
const [AMOUNT, UNITS] = ['0.5', '500000000'];

const json = async (answer) => (await answer).json();

async function ask(page, { input, output, twoHops = false }) {
  await page.waitForFunction(() => document.querySelector('#output-mint').value !== '');
  if (twoHops) await page.locator('#two-hops').check();
  await page.locator('#input-mint').fill(input);
  await page.locator('#output-mint').fill(output);
  await page.locator('#amount-in').fill(AMOUNT);
  await page.locator('#live', { hasText: 'as of slot' }).waitFor();
}

const quote = (page, { input, output, twoHops = false }) =>
  json(page.request.get(`/v1/quote?${new URLSearchParams({ inputMint: input, outputMint: output, amount: UNITS, ...(twoHops ? { maxHops: '2' } : {}) })}`));

// Shows a quote, and compares its fees with those that the API names; answers their kinds.
async function assertFeesShown(question) {
  const { page, faults, close } = await open('/console/swap');
  await ask(page, question);
  const { context: { fees } } = await quote(page, question);
  await page.waitForFunction((count) => document.querySelectorAll('#fees tbody tr').length === count, fees.length);
  const decimals = new Map();
  for (const { mint } of fees) decimals.set(mint, (await json(page.request.get(`/v1/mints/${mint}`))).decimals);
  const shown = (await readRows(page, '#fees')).map(([kind, amount, mint, pool]) => [kind, unitsShown(amount, decimals.get(mint)), mint, pool]);
  assert.deepEqual(shown, fees.map(({ kind, amountString, mint, pool }) => [kind, amountString, mint, pool ?? '']));
  assert.deepEqual(faults, []);
  await close();
  return fees.map(({ kind }) => kind);
}

test('every fee of a quote is shown with its amount', async () => {
  const kinds = await assertFeesShown({ input: ALFA, output: BETA });
  for (const kind of ['trade', 'protocol', 'creator']) assert.ok(kinds.includes(kind), kinds.join(' '));
});

test('every fee of two pools is shown with its pool, and what the mint withholds', async () => {
  const kinds = await assertFeesShown({ input: SOL, output: LEVY, twoHops: true });
  assert.equal(kinds.filter((kind) => kind === 'trade').length, 2, kinds.join(' '));
  assert.ok(kinds.includes('outputTransfer'), kinds.join(' '));
});

test('a quote that is shown follows the pool', async () => {
  const question = { input: SOL, output: USDL };
  const { page, faults, close } = await open('/console/swap');
  await ask(page, question);
  const [live, paid, output] = [page.locator('#live'), await page.locator('#amount-out').inputValue(), page.locator('#amount-out')];
  const before = await live.textContent();
  const other = await open('/console/swap');
  await swap(other.page);
  await page.waitForFunction((was) => document.querySelector('#amount-out').value !== was, paid);
  // What is paid once nothing more happens is what the API says.
  const { context: { amounts, slot } } = await quote(page, question);
  await live.filter({ hasNotText: before }).filter({ hasText: 'as of slot' }).waitFor();
  const { decimals } = await json(page.request.get(`/v1/mints/${USDL}`));
  assert.equal(unitsShown(await output.inputValue(), decimals), amounts.outAmount);
  assert.ok(BigInt(amounts.outAmount) < BigInt(unitsShown(paid, decimals)), `a swap of the same kind has made it dearer: ${paid}`);
  const [, of] = /as of slot (\d+)/.exec(await live.textContent());
  assert.ok(Number(of) <= slot && Number(of) > Number(/as of slot (\d+)/.exec(before)[1]), `${before}, then ${of}, and ${slot} asked for`);
  assert.deepEqual([...faults, ...other.faults], []);
  await other.close();
  await close();
});
