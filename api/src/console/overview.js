// Overview: health, market, servers and rates, read again every few seconds.

import { findings } from './findings.js';
import { byId, call, element, facts, fillTable, Problem } from './page.js';

const EVERY_MS = 3000;

// Webhooks are asked about at every tenth look: each is a request of its own, and their owner has a limit.
const OWNED_EVERY = 10;

// Pages of webhooks that are read, and webhooks in each: more would be a part of their owner's limit of requests that is felt.
const MOST_PAGES = 5;
const WEBHOOKS_IN_A_PAGE = 100;

// Webhooks with failing endpoints that are asked why, each by a request of its own.
const MOST_ASKED = 10;

// The rungs of the ladder of commitments, from the newest slot down.
const RUNGS = [
  ['node', 'the node'],
  ['reported', 'reported by the stream'],
  ['processed', 'processed: what quotes are made from'],
  ['confirmed', 'confirmed'],
  ['finalized', 'finalized'],
];

// The samples of a text of Prometheus: name, labels, value.
export function samples(text) {
  const read = [];
  for (const line of text.split('\n')) {
    const match = /^([a-zA-Z_:]+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (match === null) continue;
    const labels = Object.fromEntries([...(match[2] ?? '').matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)].map(([, name, value]) => [name, value]));
    read.push({ name: match[1], labels, value: Number(match[3]) });
  }
  return read;
}

let before = null;

let looks = 0;
let owned = { webhooks: null, usage: null };

async function health() {
  const answer = await fetch('/health/ready');
  const { ready, slot, reasons } = await answer.json();
  const health = byId('health');
  health.textContent = ready ? 'Ready: quotes are exact, and webhooks are stored.' : 'Not ready.';
  health.className = ready ? 'well' : 'wrong';
  return { slot, reasons };
}

// Why the newest attempt for a webhook failed; null where it did not, or there was none.
async function lastError({ id }) {
  const { deliveries } = await call(`/api/webhooks/${encodeURIComponent(id)}/deliveries?limit=5`);
  const newest = deliveries.flatMap(({ attempts }) => attempts).reduce((last, each) => (last === null || each.started > last.started ? each : last), null);
  return newest?.error ?? null;
}

// The caller's webhooks, page by page, and whether there are more.
async function listed() {
  const webhooks = [];
  let cursor = null;
  for (let page = 0; page < MOST_PAGES && (page === 0 || cursor !== null); page += 1) {
    const query = new URLSearchParams({ limit: WEBHOOKS_IN_A_PAGE, ...(cursor === null ? {} : { cursor }) });
    const answer = await call(`/api/webhooks?${query}`);
    webhooks.push(...answer.webhooks);
    cursor = answer.nextCursor;
  }
  return { webhooks, isCut: cursor !== null };
}

// Why endpoints fail, of those whose last attempt did.
async function askWhy(webhooks) {
  const failing = webhooks.filter(({ active, status }) => active && status.endpoint.failures > 0);
  for (const [at, webhook] of failing.entries()) {
    const { failures, failingSince } = webhook.status.endpoint;
    webhook.lastError = at < MOST_ASKED ? await lastError(webhook) : `${failures} attempts in a row since ${failingSince}`;
  }
}

// The caller's webhooks and quotas. A database that fails is a reason by itself, and hides nothing else.
async function ask() {
  try {
    const { webhooks, isCut } = await listed();
    await askWhy(webhooks);
    owned = { webhooks, usage: await call('/api/usage') };
    byId('looked').textContent = isCut ? `Of the webhooks the oldest ${webhooks.length} were looked at; there are more, on the page Webhooks.` : '';
  } catch (error) {
    if (error instanceof Problem && error.status === 401) throw error;
    owned = { webhooks: null, usage: null };
  }
}

const diagnose = (reasons, read) =>
  byId('reasons').replaceChildren(...findings({ reasons, samples: read, ...owned }).map(([wrong, todo]) => element('li', {}, `${wrong} → ${todo}`)));

// By route and status, the bound of the bucket within which 99 of 100 requests were answered, seconds.
function slowest(read) {
  const buckets = Map.groupBy(
    read.filter(({ name }) => name === 'sluice_api_request_duration_seconds_bucket'),
    ({ labels }) => labels.route + labels.status,
  );
  return new Map([...buckets].map(([key, rows]) => {
    const bounds = rows.map(({ labels, value }) => [labels.le === '+Inf' ? Infinity : Number(labels.le), value]).sort(([a], [b]) => a - b);
    const all = bounds.at(-1)[1];
    return [key, bounds.find(([, value]) => value >= all * 0.99)?.[0]];
  }));
}

function requests(read, now) {
  const slow = slowest(read);
  const counts = read.filter(({ name, labels }) => name === 'sluice_api_request_duration_seconds_count' && labels.route);
  const sums = new Map(read.filter(({ name }) => name === 'sluice_api_request_duration_seconds_sum').map(({ labels, value }) => [labels.route + labels.status, value]));
  const rows = counts.filter(({ value }) => value > 0).map(({ labels, value }) => {
    const last = before?.counts.get(labels.route + labels.status) ?? value;
    const rate = before === null ? null : (value - last) / ((now - before.now) / 1000);
    return { ...labels, value, rate, p99: slow.get(labels.route + labels.status), mean: (sums.get(labels.route + labels.status) ?? 0) / value };
  });
  fillTable(byId('requests'), [
    ['Route', ({ route }) => route],
    ['Status', ({ status }) => status],
    ['All', ({ value }) => value, true],
    ['Each second', ({ rate }) => (rate === null ? '–' : rate.toFixed(1)), true],
    ['Mean', ({ mean }) => `${(mean * 1000).toFixed(2)} ms`, true],
    ['99 % within', ({ p99 }) => (Number.isFinite(p99) ? `${(p99 * 1000).toFixed(2)} ms` : '–'), true],
  ], rows);
  before = { now, counts: new Map(counts.map(({ labels, value }) => [labels.route + labels.status, value])) };
}

// How far each commitment is behind the newest slot that anybody knows.
function ladder(read) {
  const slots = new Map(read.filter(({ name }) => name === 'sluice_api_chain_slot').map(({ labels, value }) => [labels.commitment, value]));
  const newest = Math.max(0, ...slots.values());
  fillTable(byId('ladder'), [
    ['Commitment', ({ rung }) => rung],
    ['Newest slot', ({ slot }) => (slot > 0 ? slot : '–'), true],
    ['Slots behind', ({ slot }) => (slot > 0 ? newest - slot : '–'), true],
  ], RUNGS.map(([commitment, rung]) => ({ rung, slot: slots.get(commitment) ?? 0 })));
}

// Each slot is taken from the server that completes it first: the winner.
function servers(read) {
  const found = new Map();
  for (const { name, labels, value } of read) {
    const figure = /^sluice_api_stream_server_([a-z_]+?)(?:_total)?$/.exec(name)?.[1];
    if (labels.server === undefined || figure === undefined) continue;
    found.set(labels.server, { ...found.get(labels.server), server: labels.server, [figure]: value });
  }
  const rows = [...found.values()];
  const all = rows.reduce((sum, { slots_taken: taken = 0 }) => sum + taken, 0);
  const most = Math.max(0, ...rows.map(({ slots_taken: taken = 0 }) => taken));
  fillTable(byId('servers'), [
    ['Server', ({ server }) => server],
    ['Connected', ({ connected }) => (connected === 1 ? 'yes' : 'no')],
    ['Newest slot', ({ slot }) => slot, true],
    ['Slots won', ({ slots_taken: taken = 0 }) => (taken > 0 && taken === most ? element('strong', {}, String(taken)) : taken), true],
    ['Of all', ({ slots_taken: taken = 0 }) => (all === 0 ? '–' : `${((100 * taken) / all).toFixed(1)} %`), true],
    ['Later by, mean', ({ slots_followed: followed = 0, behind_seconds: behind = 0 }) => (followed === 0 ? '–' : `${((1000 * behind) / followed).toFixed(1)} ms`), true],
    ['Contradictions', ({ contradictions = 0 }) => contradictions, true],
  ], rows, 'no server is configured');
}

async function show() {
  const { slot, reasons } = await health();
  // Without its database the API does not show its metrics either; what is wrong stands in the reasons alone then.
  const text = await call('/console/metrics').catch((error) => {
    diagnose(reasons, null);
    throw error;
  });
  const read = samples(text);
  diagnose(reasons, read);
  const market = read.filter(({ name }) => name.startsWith('sluice_api_market_'));
  facts(byId('market'), [['slot', slot], ...market.map(({ name, value }) => [name.replace('sluice_api_', '').replaceAll('_', ' '), value])]);
  ladder(read);
  servers(read);
  requests(read, performance.now());
  const calls = read.filter(({ name, value }) => name === 'sluice_api_rpc_calls_total' && value > 0);
  fillTable(byId('calls'), [['Method', ({ labels }) => labels.method], ['Outcome', ({ labels }) => labels.outcome], ['Calls', ({ value }) => value, true]], calls);
  if (looks % OWNED_EVERY === 0) {
    await ask();
    diagnose(reasons, read);
  }
  looks += 1;
}

async function always() {
  try {
    if (!document.hidden) await show();
  } catch (error) {
    if (!(error instanceof Problem && error.status === 401)) {
      byId('health').textContent = `The API does not answer: ${error.message}`;
      byId('health').className = 'wrong';
    }
  }
  setTimeout(always, EVERY_MS);
}
always();
