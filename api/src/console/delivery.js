// How a webhook is delivered to: as a form shows it, as the API takes it, and what is wrong with it.

import { byId } from './page.js';

// Numbers by their fields: the member, the least and the most that the API takes.
const OPTIONS = [
  ['concurrency', 'concurrency', 1, 16],
  ['max-per-second', 'maxPerSecond', 1, 1000],
  ['timeout-ms', 'timeoutMs', 1000, 30000],
  ['max-payload-bytes', 'maxPayloadBytes', 1024, 16777216],
];
const BATCH = [
  ['batch-messages', 'maxMessages', 1, 500],
  ['batch-bytes', 'maxBytes', 1024, 4194304],
  ['batch-wait', 'maxWaitMs', 0, 5000],
];

const MAX_PAUSES = 20;
const MAX_PAUSE_SECONDS = 86400;

// As a member of its own, no pause at all is something else than the pauses of every webhook.
const ONCE = 'none';

const text = (id) => byId(id).value.trim();
const numbers = (fields) => Object.fromEntries(fields.filter(([id]) => text(id) !== '').map(([id, member]) => [member, Number(text(id))]));
const pauses = () => text('retry-pauses').split(/[\s,]+/).filter((word) => word !== '');
const whole = (word, least, most) => /^\d+$/.test(word) && Number(word) >= least && Number(word) <= most;

// `delivery` and `batch` of the form; null where all is as for every webhook.
export function read() {
  const delivery = numbers(OPTIONS);
  if (pauses().length > 0) delivery.retryPausesSeconds = text('retry-pauses') === ONCE ? [] : pauses().map(Number);
  if (byId('signatures').value !== '') delivery.signatures = byId('signatures').value.split(' ');
  if (byId('payload').value !== '') delivery.payload = byId('payload').value;
  return {
    delivery: Object.keys(delivery).length === 0 ? null : delivery,
    batch: byId('batched').checked ? numbers(BATCH) : null,
  };
}

// Puts those of a webhook into the form; those of every webhook where there is none.
export function fill(webhook) {
  const delivery = webhook?.delivery ?? {};
  for (const [id, member] of OPTIONS) byId(id).value = delivery[member] ?? '';
  const own = delivery.retryPausesSeconds;
  byId('retry-pauses').value = own === undefined ? '' : own.length === 0 ? ONCE : own.join(' ');
  byId('signatures').value = (delivery.signatures ?? []).join(' ');
  byId('payload').value = delivery.payload ?? '';
  const batch = webhook?.batch ?? null;
  byId('batched').checked = batch !== null;
  for (const [id, member] of BATCH) byId(id).value = batch?.[member] ?? '';
  byId('delivery').open = describe(webhook ?? {}).length > 0;
}

// What is wrong, before the API is asked; empty where nothing is.
export function fault() {
  for (const [prefix, fields] of [['delivery', OPTIONS], ['batch', BATCH]]) {
    const wrong = fields.find(([id, , least, most]) => text(id) !== '' && !whole(text(id), least, most));
    if (wrong !== undefined) return `${prefix}.${wrong[1]}: must be ${wrong[2]} to ${wrong[3]}`;
  }
  if (text('retry-pauses') === ONCE) return '';
  if (pauses().length > MAX_PAUSES || !pauses().every((word) => whole(word, 1, MAX_PAUSE_SECONDS))) {
    return `delivery.retryPausesSeconds: must be at most ${MAX_PAUSES} numbers of 1 to ${MAX_PAUSE_SECONDS}, or ${ONCE}`;
  }
  return '';
}

// What is not as for every webhook, in words: name and value.
export const describe = ({ delivery, batch }) =>
  [
    ['attempts at once', delivery?.concurrency],
    ['attempts in a second', delivery?.maxPerSecond],
    ['deadline of an attempt, ms', delivery?.timeoutMs],
    ['pauses between attempts, s', delivery?.retryPausesSeconds && (delivery.retryPausesSeconds.join(' ') || 'tried once')],
    ['signatures', delivery?.signatures?.join(' ')],
    ['payload', delivery?.payload],
    ['thin beyond, bytes', delivery?.maxPayloadBytes],
    ['messages in one POST', batch && `${batch.maxMessages}, of ${batch.maxBytes} bytes, after ${batch.maxWaitMs} ms`],
  ].filter(([, value]) => value !== undefined && value !== null);
