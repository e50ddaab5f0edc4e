// What the overview says is wrong and what to do: every finding by itself, from answers as the API gives them.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';

import { open } from './browser.js';

const WELL = {
  reasons: [],
  samples: [
    { name: 'sluice_api_market_lag_slots', labels: {}, value: 0 },
    { name: 'sluice_api_stream_server_connected', labels: { server: 'one' }, value: 1 },
    { name: 'sluice_api_stream_server_contradictions_total', labels: { server: 'one' }, value: 0 },
    { name: 'sluice_api_rpc_calls_total', labels: { method: 'getSlot', outcome: 'answered' }, value: 90 },
    { name: 'sluice_api_rpc_calls_total', labels: { method: 'getSlot', outcome: 'timeout' }, value: 10 },
  ],
  webhooks: [],
  usage: {
    webhooks: { used: 1, limit: 2 },
    addresses: { used: 5, limit: null },
    storedBytes: { used: 0, limit: 1 },
    messagesPerSecond: { used: 3, limit: 4, throttled: false },
    deliverySlots: { used: 0, limit: null },
  },
};

const webhook = (change = {}, status = {}) => ({
  id: 'wh_1',
  active: true,
  filters: { accounts: ['an address'], programs: [] },
  status: { disabledReason: null, refused: null, filter: { inForceSlot: 7 }, ...status },
  lastError: null,
  ...change,
});

let findings;

before(async () => {
  // As the server hands it out. It imports nothing, so that it runs without a page.
  const script = await (await fetch(`${process.env.SLUICE_API_URL}/console/assets/findings.js`)).text();
  ({ findings } = await import(`data:text/javascript,${encodeURIComponent(script)}`));
});

// The only finding, where there is one.
function finding(change) {
  const found = findings({ ...WELL, ...change });
  assert.equal(found.length, 1, JSON.stringify(found));
  return found[0];
}

test('nothing is found where all is well, or nothing could be asked', () => {
  assert.deepEqual(findings({ ...WELL, webhooks: [webhook()] }), []);
  assert.deepEqual(findings({ reasons: [], samples: null, webhooks: null, usage: null }), []);
});

test('each reason not to be ready has its own remedy', () => {
  const expected = [
    ['store: the database is not available', /disk has room/],
    ['market: no slot was seen yet', /stream is silent/],
    ['market: no slot was completed for 12 s', /stream is silent/],
    ['market: the stream was silent for 20s, pings included', /stream is silent/],
    ['market: slot 7 is 40 slots behind the node, more than 32 (freshness.max-slots-behind)', /stream is behind/],
    ["market: slot 7 is 60 s old by the chain's time, more than 30 s (freshness.max-clock-age-secs)", /time server/],
    ['market: the market is reading the chain', /^wait/],
    ['market: reading the chain: listing the pools, 1 of 2 calls', /^wait/],
    ['market: the market is replaying the chain from slot 7', /^wait/],
    ['market: the snapshot failed: the node does not answer', /getProgramAccounts/],
    ['market: slot 7 was asked for again, and no server replays it', /replays more/],
    ['market: the stream refused the request: no token', /x-token/],
    ['market: the stream was closed', /stream is gone/],
    ['market: the service is shutting down', /start it again/],
    ['market: the market left the chain: a write is missing', /log names/],
    ['something that nobody has thought of', /log has the cause/],
  ];
  for (const [reason, remedy] of expected) {
    const [wrong, todo] = finding({ reasons: [reason] });
    assert.equal(wrong, reason);
    assert.match(todo, remedy, reason);
  }
});

test('a market behind, a server that is away or contradicts and a node that fails are named', () => {
  const samples = (name, value, change = {}) =>
    WELL.samples.map((sample) => (sample.name === name && Object.entries(change).every(([label, is]) => sample.labels[label] === is) ? { ...sample, value } : sample));
  assert.match(finding({ samples: samples('sluice_api_market_lag_slots', 33) })[0], /33 slots behind/);
  assert.deepEqual(findings({ ...WELL, samples: samples('sluice_api_market_lag_slots', 32) }), []);
  assert.match(finding({ samples: samples('sluice_api_stream_server_connected', 0) })[0], /one is not connected/);
  assert.match(finding({ samples: samples('sluice_api_stream_server_contradictions_total', 1) })[0], /one has shown another chain/);
  const [wrong, todo] = finding({ samples: samples('sluice_api_rpc_calls_total', 11, { outcome: 'timeout' }) });
  assert.match(wrong, /11 of 101 calls/);
  assert.match(todo, /chain\.rpc-url/);
});

test('a webhook that is told of nothing, or whose endpoint fails, is named with what to do', () => {
  const told = (change, status) => finding({ webhooks: [webhook(change, status)] });
  assert.deepEqual(findings({ ...WELL, webhooks: [webhook({ active: false })] }), [], 'its owner has paused it');
  assert.match(told({ active: false }, { disabledReason: 'it answered 410' })[0], /wh_1 was switched off: it answered 410/);
  assert.match(told({}, { refused: 'too many accounts' })[0], /refuses its filter: too many accounts/);
  assert.match(told({ lastError: 'status 500' })[0], /wh_1: its endpoint fails: status 500/);
  assert.match(told({}, { filter: { inForceSlot: null } })[1], /no indexer leads/);
  const unaddressed = webhook({ filters: { accounts: [], programs: [] } }, { filter: { inForceSlot: null } });
  assert.deepEqual(findings({ ...WELL, webhooks: [unaddressed] }), [], 'there is nothing to put in force');
});

test('what the stream does not show is said once for all webhooks that ask for it, with the remedy', () => {
  const notTold = 'what nobody sees; have another server named';
  const partly = (id, change, status) => webhook({ id, ...change }, { notTold, ...status });
  const [wrong, todo] = finding({ webhooks: [webhook(), partly('wh_2'), partly('wh_3')] });
  assert.match(wrong, /^webhook wh_2 and 1 more: not all/);
  assert.ok(todo.endsWith(notTold), todo);
  assert.match(finding({ webhooks: [partly('wh_2')] })[0], /^webhook wh_2: not all/);
  assert.deepEqual(findings({ ...WELL, webhooks: [partly('wh_2', { active: false })] }), [], 'it is told of nothing');
  assert.match(finding({ webhooks: [partly('wh_2', {}, { refused: 'too many' })] })[0], /refuses its filter/);
});

test('each quota that is used up is named with what it stops', () => {
  const used = (member, quota) => finding({ usage: { ...WELL.usage, [member]: quota } });
  assert.match(used('webhooks', { used: 2, limit: 2 })[1], /delete one/);
  assert.match(used('addresses', { used: 9, limit: 8 })[1], /remove some/);
  // Beyond 2^53 numbers are read as strings of digits.
  assert.match(used('storedBytes', { used: '9007199254740993', limit: 10 })[1], /backfilled or redelivered/);
  assert.match(used('deliverySlots', { used: 1, limit: 1 })[1], /answer sooner/);
  assert.match(used('messagesPerSecond', { used: 4, limit: 4, throttled: true })[1], /narrow the filters/);
});

test('the overview shows what is found, with what to do', async () => {
  const { page, faults, close } = await open('/console/explain');
  const reasons = ['market: no slot was completed for 12 s'];
  await page.route('**/health/ready', (route) => route.fulfill({ json: { ready: false, slot: 7, reasons } }));
  await page.route('**/api/usage', (route) => route.fulfill({ json: { ...WELL.usage, webhooks: { used: 2, limit: 2 } } }));
  await page.goto('/console');
  await page.locator('#health.wrong', { hasText: 'Not ready' }).waitFor();
  await page.locator('#reasons li', { hasText: 'no slot was completed for 12 s → the stream is silent' }).waitFor();
  await page.locator('#reasons li', { hasText: '2 of 2 webhooks → no more are created' }).waitFor();
  assert.deepEqual(faults, []);
  await close();
});
