// Pools: search, live price by the quote stream, what an amount pays, and how the impact grows.

import { attempt, byId, call, element, facts, fillTable, plot, say, units, whole } from './page.js';
import { followQuotes } from './quotes.js';

// Points of the plot: a pool is asked about amounts from a ten-thousandth to nearly half of its reserve.
const IMPACT_STEPS = [1, 3, 10, 30, 100, 300, 1000, 2000, 3000, 4000, 5000];
const IMPACT_OF = 10_000n;

// How much of the past the chart keeps, milliseconds, of how many points, and of how many pools beside the one that is shown.
const HISTORY_MS = 10 * 60 * 1000;
const MOST_POINTS = 1000;
const MOST_POOLS = 20;

// How often the chart goes on where nothing changes, milliseconds: until the next quote comes, the last one is true.
const TICK_MS = 2000;

// Beyond which pause nobody has looked, milliseconds: the line is broken there when the pool is opened again.
const GAP_MS = 5 * TICK_MS;

// What names the past of a pool in the storage of this tab.
const KEPT = 'price of ';

let cursor = null;
let shown = null;
let stream = null;

// Price of the first token in the second by the reserves: pairs of time and price, which is null where it is not known from then on.
// The API tells no past, so this tab keeps what it has seen.
let history = [];

// Whether quotes come at the moment.
let isLive = false;

// Plots of the impact that were asked for. Each takes many requests: that of the last one alone is shown.
let plottings = 0;

const pair = ({ tokens }) => tokens.map(({ mint }) => `${mint.slice(0, 6)}…`).join(' / ');

const COLUMNS = [
  ['Pool', (pool) => element('button', { type: 'button', class: 'key', click: attempt(() => open(pool.pool)) }, pool.pool)],
  ['Tokens', pair],
  ['Price', ({ price }) => price ?? '–', true],
  ['Fee', ({ fees }) => `${(fees.tradePpm + fees.creatorPpm) / 10_000} %`, true],
  ['State', ({ isTradable, reason }) => (isTradable ? 'swaps' : reason)],
];
let rows = [];

// Searches that were begun. What the last one finds is shown, whichever is answered last.
let searches = 0;

async function search(more = false) {
  searches += 1;
  const own = searches;
  const address = byId('address').value.trim();
  const query = new URLSearchParams({ limit: '20' });
  if (address !== '') query.set('mint', address);
  if (more) query.set('cursor', cursor);
  let page = await call(`/v1/pools?${query}`);
  if (!more && page.pools.length === 0 && address !== '') {
    // Not a mint that is traded: then it may be a pool.
    const { pool } = await call(`/v1/pools/${encodeURIComponent(address)}`);
    page = { pools: [pool], cursor: null };
  }
  if (own !== searches) return;
  cursor = page.cursor;
  rows = more ? [...rows, ...page.pools] : page.pools;
  fillTable(byId('found'), COLUMNS, rows, 'no pool');
  byId('more').hidden = cursor === null;
}

// What the bits of a pool's status switch off, from the lowest on.
const SWITCHES = ['deposits', 'withdrawals', 'swaps'];

const switchedOff = (status) => SWITCHES.filter((_, bit) => (status & (1 << bit)) !== 0).join(', ') || 'nothing';

function describe({ pool, slot }) {
  const [first, second] = pool.tokens;
  facts(byId('facts'), [
    ['pool', element('span', { class: 'key' }, pool.pool)],
    ['state', pool.isTradable ? 'swaps' : pool.reason],
    ['switched off by the exchange', switchedOff(pool.status)],
    ['slot', slot],
    [`reserve of ${first.mint}`, whole(first.reserveString, first.decimals)],
    [`reserve of ${second.mint}`, whole(second.reserveString, second.decimals)],
    ...pool.tokens.map(({ mint, extensions }) => [`extensions of ${mint}`, extensions.join(', ') || 'none']),
    ['price by the reserves', pool.price],
    ['trade fee', `${pool.fees.tradePpm / 10_000} %`],
    ['creator fee', `${pool.fees.creatorPpm / 10_000} %`],
    ['fee configuration', element('span', { class: 'key' }, pool.config)],
    ['opened', pool.openTime === 0 ? 'always open' : new Date(pool.openTime * 1000).toISOString()],
  ]);
}

async function open(address) {
  const answer = await call(`/v1/pools/${encodeURIComponent(address)}`);
  shown = answer.pool;
  byId('detail').hidden = false;
  byId('detail-title').textContent = `Pool ${pair(shown)}`;
  describe(answer);
  byId('direction').replaceChildren(...[0, 1].map((from) =>
    element('option', { value: String(from) }, `${shown.tokens[from].mint} → ${shown.tokens[1 - from].mint}`)));
  byId('answer').textContent = '';
  recall();
  drawHistory();
  follow();
  await impact();
  byId('detail-title').scrollIntoView();
}

const sides = () => {
  const from = Number(byId('direction').value);
  return [shown.tokens[from], shown.tokens[1 - from]];
};

const question = (amount) => {
  const [input, output] = sides();
  return new URLSearchParams({ inputMint: input.mint, outputMint: output.mint, amount, pool: shown.pool });
};

// One whole token, or a thousandth of what the pool has where it has less than a thousand.
function probe() {
  const [input] = sides();
  const one = 10n ** BigInt(input.decimals);
  const most = BigInt(input.reserveString ?? '0') / 1000n;
  return String(one < most ? one : most > 0n ? most : 1n);
}

const isRecent = ([time]) => Date.now() - time < HISTORY_MS;

const isPriced = () => (history.at(-1)?.[1] ?? null) !== null;

// What is kept of the pool that is shown; of others what nobody would be shown any more is removed.
function recall() {
  const last = (name) => JSON.parse(sessionStorage.getItem(name)).at(-1)[0];
  const others = Object.keys(sessionStorage).filter((name) => name.startsWith(KEPT) && name !== KEPT + shown.pool);
  const kept = others.map((name) => [name, last(name)]);
  kept.sort(([, one], [, other]) => other - one);
  for (const [index, [name, time]] of kept.entries()) {
    if (index >= MOST_POOLS || !isRecent([time])) sessionStorage.removeItem(name);
  }
  history = JSON.parse(sessionStorage.getItem(KEPT + shown.pool) ?? '[]').filter(isRecent);
  if (isPriced() && Date.now() - history.at(-1)[0] > GAP_MS) history.push([history.at(-1)[0] + 1, null]);
}

function note(price) {
  history = [...history, [Date.now(), price]].filter(isRecent).slice(-MOST_POINTS);
  sessionStorage.setItem(KEPT + shown.pool, JSON.stringify(history));
  drawHistory();
}

function drawHistory() {
  const isTurned = byId('direction').value === '1';
  const points = history.map(([time, price]) => [time, isTurned && price !== null ? 1 / price : price]);
  const axes = { x: (value) => new Date(value).toLocaleTimeString(), y: (value) => value.toPrecision(6) };
  byId('history').replaceChildren(plot('Price over the last minutes', points, axes));
}

function priceOf({ tokens }) {
  const [first, second] = tokens.map(({ reserveString, decimals }) => Number(reserveString ?? 0) / 10 ** decimals);
  return first > 0 && second > 0 ? second / first : null;
}

function follow() {
  stream?.close();
  isLive = false;
  if (!shown.isTradable) {
    byId('live').textContent = shown.reason;
    return;
  }
  const followed = shown.pool;
  const amount = probe();
  const quoted = ({ context }) => {
    const [input, output] = sides();
    byId('live').textContent = `${whole(amount, input.decimals)} pays ${whole(context.amounts.outAmount, output.decimals)}, as of slot ${context.slot}`;
    isLive = true;
    call(`/v1/pools/${followed}`).then((answer) => {
      if (followed !== shown.pool) return;
      describe(answer);
      note(priceOf(answer.pool));
    }, () => {});
  };
  const told = (text) => {
    byId('live').textContent = text;
    isLive = false;
    if (isPriced()) note(null);
  };
  stream = followQuotes(() => question(amount), { quoted, waits: told, ended: told });
}

async function impact() {
  plottings += 1;
  const plotting = plottings;
  byId('impact').replaceChildren();
  if (!shown.isTradable) return;
  const [input] = sides();
  const reserve = BigInt(input.reserveString ?? '0');
  const points = [];
  for (const step of IMPACT_STEPS) {
    const amount = (reserve * BigInt(step)) / IMPACT_OF;
    if (amount === 0n) continue;
    const { context } = await call(`/v1/quote?${question(String(amount))}`);
    if (plotting !== plottings) return;
    points.push([Number(amount) / 10 ** input.decimals, context.priceImpactBps / 100]);
  }
  const axes = { x: (value) => value.toPrecision(3), y: (value) => `${value.toFixed(1)} %` };
  byId('impact').replaceChildren(plot('Price impact by amount', points, axes));
}

async function ask() {
  const [input, output] = sides();
  const amount = units(byId('amount').value, input.decimals);
  if (amount === null) {
    say(`Amount: a number with at most ${input.decimals} digits after the point`);
    return;
  }
  const { context } = await call(`/v1/quote?${question(amount)}`);
  byId('answer').textContent = `pays ${whole(context.amounts.outAmount, output.decimals)}, at least ${whole(context.amounts.minimumOut, output.decimals)}; it moves the price by ${context.priceImpactBps / 100} %`;
}

byId('search').addEventListener('submit', attempt(() => search()));
byId('more').addEventListener('click', attempt(() => search(true)));
byId('ask').addEventListener('submit', attempt(ask));
byId('direction').addEventListener('change', attempt(async () => {
  drawHistory();
  follow();
  await impact();
}));
setInterval(() => {
  if (isLive && isPriced()) note(history.at(-1)[1]);
}, TICK_MS);
attempt(() => search())();
