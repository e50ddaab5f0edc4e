// The overview's figures: those of requests, the market and the node, against the very metrics that they were read from.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { open, readFacts, readRows, until } from './browser.js';

const { SLUICE_MINT_SOL: SOL, SLUICE_MINT_USDL: USDL } = process.env;

const ROUTE = '/v1/quote';

// Opens the overview, which is answered with the metrics as they are for two looks, and not at all from then on, so that it stays as it
// is. Between the looks quotes are asked for.
async function openAfterTraffic(count) {
  const { page, faults, close } = await open('/console/explain');
  const query = new URLSearchParams({ inputMint: SOL, outputMint: USDL, amount: '500000000' });
  const traffic = async () => {
    for (let asked = 0; asked < count; asked += 1) assert.equal((await page.request.get(`${ROUTE}?${query}`)).status(), 200);
  };
  const looks = [];
  let begun = 0;
  let asking = null;
  await page.route('**/console/metrics', async (route) => {
    begun += 1;
    if (begun > 2) return;
    await asking;
    const answer = await route.fetch();
    const text = await answer.text();
    looks.push({ text, at: performance.now() });
    asking ??= traffic();
    await route.fulfill({ response: answer, body: text });
  });
  await page.goto('/console');
  await until(() => looks.length === 2);
  await page.waitForFunction((route) => {
    const row = [...document.querySelectorAll('#requests tbody tr')].find(({ cells }) => cells[0].textContent === route && cells[1]?.textContent === '2xx');
    return row !== undefined && row.cells[3].textContent !== '–';
  }, ROUTE);
  return { page, faults, close, looks };
}

// The value of the line that begins so, and the value and bound of each bucket of a route.
const value = (text, line) => Number(text.split('\n').find((each) => each.startsWith(`${line} `))?.slice(line.length + 1));

function buckets(text, labels) {
  const lines = text.split('\n').filter((line) => line.startsWith('sluice_api_request_duration_seconds_bucket{') && labels.every((label) => line.includes(label)));
  return lines.map((line) => ({ bound: Number(/le="([^"]+)"/.exec(line)[1].replace('+Inf', 'Infinity')), count: Number(line.split(' ').at(-1)) }));
}

test('requests are counted, and their rates and latencies are those of the metrics', async () => {
  const asked = 40;
  const { page, faults, close, looks } = await openAfterTraffic(asked);
  const [before, after] = looks;
  const labels = `{route="${ROUTE}",status="2xx"}`;
  const [first, count] = [before, after].map(({ text }) => value(text, `sluice_api_request_duration_seconds_count${labels}`));
  const sum = value(after.text, `sluice_api_request_duration_seconds_sum${labels}`);
  assert.ok(count - first >= asked, `${count - first} of ${asked}`);
  const row = (await readRows(page, '#requests')).find(([route, status]) => route === ROUTE && status === '2xx');
  const [all, rate, mean, within] = row.slice(2).map(parseFloat);
  assert.equal(all, count);
  // The page counts from when it has an answer, which is later than when it was given.
  const expected = (count - first) / ((after.at - before.at) / 1000);
  assert.ok(rate > 0 && Math.abs(rate / expected - 1) < 0.5, `${rate} each second, and not ${expected}`);
  assert.ok(mean > 0 && Math.abs(mean - (1000 * sum) / count) <= 0.006, `${mean} ms, and not ${(1000 * sum) / count}`);
  const sorted = buckets(after.text, [`route="${ROUTE}"`, 'status="2xx"']).sort((one, other) => one.bound - other.bound);
  const found = sorted.find(({ count: reached }) => reached >= count * 0.99);
  assert.ok(Number.isFinite(found.bound));
  assert.ok(Math.abs(within - 1000 * found.bound) <= 0.006, `${within} ms, and not ${1000 * found.bound}`);
  for (const [route, status, ...figures] of await readRows(page, '#requests')) {
    for (const figure of figures.slice(0, 3)) assert.ok(parseFloat(figure) >= 0, `${route} ${status}: ${figures}`);
  }
  assert.deepEqual(faults, []);
  await close();
});

test('the market, the ladder, the servers and the calls of the node are those of the metrics', async () => {
  const { page, faults, close, looks: [, { text }] } = await openAfterTraffic(1);
  const market = await readFacts(page, '#market');
  assert.ok(Number(market.slot) > 0);
  assert.deepEqual(Object.keys(market), ['slot', 'market ready', 'market slot', 'market lag slots', 'market pools']);
  const single = Object.entries(market).slice(1);
  for (const [name, shown] of single) assert.ok(Number.isFinite(Number(shown)), `${name}: ${shown}`);
  for (const [name, shown] of single) assert.equal(Number(shown), value(text, `sluice_api_${name.replaceAll(' ', '_')}`), name);

  const ladder = await readRows(page, '#ladder');
  const slots = ['node', 'reported', 'processed', 'confirmed', 'finalized'].map((commitment) => value(text, `sluice_api_chain_slot{commitment="${commitment}"}`));
  const newest = Math.max(...slots.filter(Number.isFinite));
  assert.deepEqual(ladder.map(([, slot, behind]) => [slot, behind]), slots.map((slot) => (slot > 0 ? [String(slot), String(newest - slot)] : ['–', '–'])));

  const [[server, connected, slot, won, part]] = await readRows(page, '#servers');
  assert.deepEqual([connected, part], ['yes', '100.0 %']);
  assert.equal(Number(slot), value(text, `sluice_api_stream_server_slot{server="${server}"}`));
  assert.equal(Number(won), value(text, `sluice_api_stream_server_slots_taken_total{server="${server}"}`));

  const calls = await readRows(page, '#calls');
  assert.ok(calls.length > 0);
  for (const [method, outcome, count] of calls) assert.equal(Number(count), value(text, `sluice_api_rpc_calls_total{method="${method}",outcome="${outcome}"}`), method);
  assert.ok(calls.some(([, outcome]) => outcome === 'answered'), calls.join(' '));
  assert.deepEqual(faults, []);
  await close();
});

// Two servers: one was mostly first, and the other, which stands before it, mostly later, by 12 ms in the mean.
const STANDINGS = {
  'late.example:10000': { connected: 0, slot: 990, slots_taken_total: 25, slots_followed_total: 70, behind_seconds_total: 0.84, contradictions_total: 1 },
  'early.example:10000': { connected: 1, slot: 1000, slots_taken_total: 75, slots_followed_total: 20, behind_seconds_total: 0.05, contradictions_total: 0 },
};

// The text with these servers in place of the one that it has, under the names that the API gives their figures.
function played(text) {
  const figures = new Set();
  const lines = text.split('\n').flatMap((line) => {
    const [name, figure] = /^sluice_api_stream_server_([a-z_]+)\{/.exec(line) ?? [];
    if (name === undefined) return [line];
    figures.add(figure);
    return Object.entries(STANDINGS).map(([server, standing]) => `${name}server="${server}"} ${standing[figure]}`);
  });
  assert.deepEqual([...figures].sort(), Object.keys(Object.values(STANDINGS)[0]).sort());
  return lines.join('\n');
}

test('of two servers the one that was mostly first is marked, and how much later each was is its mean', async () => {
  const { page, faults, close } = await open('/console/explain');
  const body = played(await (await page.request.get('/console/metrics')).text());
  await page.route('**/console/metrics', (route) => route.fulfill({ body }));
  await page.goto('/console');
  await page.locator('#servers td', { hasText: 'early.example' }).waitFor();
  assert.deepEqual(await readRows(page, '#servers'), [
    ['late.example:10000', 'no', '990', '25', '25.0 %', '12.0 ms', '1'],
    ['early.example:10000', 'yes', '1000', '75', '75.0 %', '2.5 ms', '0'],
  ]);
  const marked = page.locator('#servers tr', { has: page.locator('strong') });
  assert.deepEqual(await marked.locator('td:first-child').allTextContents(), ['early.example:10000']);
  assert.deepEqual(faults, []);
  await close();
});
