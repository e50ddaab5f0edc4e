// Overview: health, market, servers and rates, read again every few seconds.

import { byId, call, element, facts, fillTable, Problem } from './page.js';

const EVERY_MS = 3000;

const REMEDIES = [
  [/^market/, 'the log names the server that is missing; `sluice doctor --config FILE` says what to do'],
  [/^store/, 'see whether the database runs and its disk has room; the log has the cause'],
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

async function health() {
  const answer = await fetch('/health/ready');
  const { ready, slot, reasons } = await answer.json();
  const health = byId('health');
  health.textContent = ready ? 'Ready: quotes are exact, and webhooks are stored.' : 'Not ready.';
  health.className = ready ? 'well' : 'wrong';
  byId('reasons').replaceChildren(...reasons.map((reason) => {
    const remedy = REMEDIES.find(([pattern]) => pattern.test(reason))?.[1];
    return element('li', {}, remedy ? `${reason} → ${remedy}` : reason);
  }));
  return slot;
}

function requests(read, now) {
  const counts = read.filter(({ name, labels }) => name === 'sluice_api_request_duration_seconds_count' && labels.route);
  const sums = new Map(read.filter(({ name }) => name === 'sluice_api_request_duration_seconds_sum').map(({ labels, value }) => [labels.route + labels.status, value]));
  const rows = counts.filter(({ value }) => value > 0).map(({ labels, value }) => {
    const last = before?.counts.get(labels.route + labels.status) ?? value;
    const rate = before === null ? null : (value - last) / ((now - before.now) / 1000);
    return { ...labels, value, rate, mean: (sums.get(labels.route + labels.status) ?? 0) / value };
  });
  fillTable(byId('requests'), [
    ['Route', ({ route }) => route],
    ['Status', ({ status }) => status],
    ['All', ({ value }) => value, true],
    ['Each second', ({ rate }) => (rate === null ? '–' : rate.toFixed(1)), true],
    ['Mean', ({ mean }) => `${(mean * 1000).toFixed(2)} ms`, true],
  ], rows);
  before = { now, counts: new Map(counts.map(({ labels, value }) => [labels.route + labels.status, value])) };
}

async function show() {
  const slot = await health();
  const text = await call('/console/metrics');
  const read = samples(text);
  const rest = read.filter(({ name, labels }) => /market|slot|pools|stream|fork|lag/.test(name) && Object.keys(labels).length === 0 && !/_bucket$/.test(name));
  facts(byId('market'), [['slot', slot], ...rest.map(({ name, value }) => [name.replace('sluice_api_', '').replaceAll('_', ' '), value])]);
  const served = new Map();
  for (const { name, labels, value } of read) {
    if (!labels.server || /_bucket$/.test(name)) continue;
    const row = served.get(labels.server) ?? { server: labels.server, figures: [] };
    row.figures.push(`${name.replace('sluice_api_', '').replaceAll('_', ' ')} ${Number.isInteger(value) ? value : value.toFixed(3)}`);
    served.set(labels.server, row);
  }
  fillTable(byId('servers'), [['Server', ({ server }) => server], ['Figures', ({ figures }) => figures.join(' · ')]], [...served.values()]);
  requests(read, performance.now());
  const calls = read.filter(({ name, value }) => name === 'sluice_api_rpc_calls_total' && value > 0);
  fillTable(byId('calls'), [['Method', ({ labels }) => labels.method], ['Outcome', ({ labels }) => labels.outcome], ['Calls', ({ value }) => value, true]], calls);
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
