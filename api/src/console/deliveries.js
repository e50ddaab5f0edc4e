// Deliveries of a webhook: how long each part of an attempt took, what was sent, what was answered, and what is sent once more.

import { attempt, byId, call, element, fillTable, say, shape } from './page.js';

let path = null;
let listed = [];
let cursor = null;

// Readings that were asked for. Answers may overtake each other: that of the last one alone is shown.
let readings = 0;

// Messages that are chosen to be sent once more: number by id.
const chosen = new Map();

// The parts that an attempt has come to: name, and when it was done. What ends without an answer has no body.
function parts({ resolvedMicros, connectedMicros, securedMicros, firstByteMicros, durationMicros }) {
  const end = firstByteMicros === null ? 'given up' : 'body';
  const all = [['name', resolvedMicros], ['connect', connectedMicros], ['TLS', securedMicros], ['first byte', firstByteMicros], [end, durationMicros]];
  return all.filter(([, at]) => at !== null);
}

// The parts of an attempt, one after the other, as bars on one line, and in words below: colours alone name nothing.
function waterfall(made) {
  const all = made.durationMicros || 1;
  const svg = shape('svg', { viewBox: '0 0 200 14', 'aria-hidden': 'true' });
  const words = [];
  let from = 0;
  for (const [name, at] of parts(made)) {
    const [x, width] = [(from / all) * 200, Math.max(((at - from) / all) * 200, 0.5)];
    const word = `${name} until ${(at / 1000).toFixed(1)} ms`;
    const bar = shape('rect', { class: 'bar', x: x.toFixed(1), y: 1, height: 12, width: width.toFixed(1) });
    bar.append(shape('title', {}, word));
    svg.append(bar);
    words.push(word);
    from = at;
  }
  return element('div', { class: 'waterfall' }, svg, element('p', { class: 'soft' }, words.join(', ')));
}

const text = (title, place) => element('div', {}, element('p', { class: 'soft' }, title), place);
const block = (...children) => element('pre', { class: 'wide', tabindex: '0' }, ...children);

// What came back. Of an answer that accepted the message nothing is kept but its status.
const answer = ({ status, response, responseCut }) =>
  response === null ? (status === null ? 'no answer' : `status ${status}, and nothing of the answer is kept`) : `${response}${responseCut ? '…' : ''}`;

// One attempt. The message is asked for when it is opened: a list of whole messages would be long.
function one(id, made) {
  const body = block('…');
  const fill = async () => {
    try {
      const message = await call(`${path}/messages/${encodeURIComponent(id)}`);
      body.textContent = JSON.stringify(message.body, null, 1);
    } catch (error) {
      body.textContent = error.message;
    }
  };
  const opened = ({ target }) => {
    if (target.open) fill();
  };
  return element('details', { toggle: opened },
    element('summary', {}, `${made.number}: ${made.status ?? 'no answer'}, ${(made.durationMicros / 1000).toFixed(1)} ms${made.error ? `, ${made.error}` : ''}`),
    waterfall(made),
    element('div', { class: 'row bodies' },
      text('Headers that were sent', block(made.requestHeaders.map(([name, value]) => `${name}: ${value}`).join('\n'))),
      text('Message, whole: the body, unless it is sent thin or with others', body),
      text('Answer', block(answer(made)))));
}

const box = ({ id, sequence }) =>
  element('input', { type: 'checkbox', id: `choose-${id}`, 'aria-label': `Choose message ${sequence}`, checked: chosen.has(id), change: ({ target }) => {
    if (target.checked) chosen.set(id, sequence);
    else chosen.delete(id);
  } });

const again = ({ id, sequence }) =>
  element('button', { type: 'button', id: `redeliver-${id}`, 'aria-label': `Redeliver message ${sequence}`, click: attempt(async () => {
    await call(`${path}/redeliver`, { method: 'POST', body: { id } });
    say(`Message ${sequence} is sent once more.`);
    await read();
  }) }, 'Redeliver');

// Those of the state that is chosen, from the first page; with `further` the next page as well.
export async function read(further = false) {
  const query = new URLSearchParams({ limit: '20' });
  if (byId('state').value !== '') query.set('state', byId('state').value);
  if (further) query.set('cursor', cursor);
  readings += 1;
  const reading = readings;
  const page = await call(`${path}/deliveries?${query}`);
  if (reading !== readings) return;
  listed = further ? [...listed, ...page.deliveries] : page.deliveries;
  cursor = page.nextCursor;
  byId('more-deliveries').hidden = cursor === null;
  // What is not shown is not chosen: nobody would see that it is sent.
  for (const id of chosen.keys()) if (!listed.some((delivery) => delivery.id === id)) chosen.delete(id);
  fillTable(byId('deliveries'), [
    ['Chosen', box],
    ['Number', ({ sequence }) => sequence, true],
    ['Type', ({ type }) => type],
    ['Slot', ({ slot }) => slot, true],
    ['State', ({ state, nextAttempt }) => (nextAttempt ? `${state}, again ${nextAttempt}` : state)],
    ['Attempts', ({ id, attempts }) => element('div', {}, ...attempts.map((made) => one(id, made)))],
    ['', again],
  ], listed, 'no delivery');
}

export const more = () => read(true);

// Shows those of the webhook at `webhookPath`.
export async function open(webhookPath) {
  path = webhookPath;
  chosen.clear();
  await read();
}

// One request for each: a range of numbers would take in those between them.
export async function redeliverChosen() {
  if (chosen.size === 0) {
    say('Choose messages in the table first.');
    return;
  }
  let sent = 0;
  const refused = [];
  for (const [id, sequence] of [...chosen]) {
    try {
      await call(`${path}/redeliver`, { method: 'POST', body: { id } });
      sent += 1;
      chosen.delete(id);
    } catch (error) {
      refused.push(`message ${sequence}: ${error.message}`);
    }
  }
  say([`${sent} sent once more`, ...refused].join('; '));
  await read();
}

export async function redeliverFailed() {
  const { redelivered } = await call(`${path}/redeliver`, { method: 'POST', body: { failed: true } });
  say(`${redelivered} are sent once more.`);
  await read();
}
