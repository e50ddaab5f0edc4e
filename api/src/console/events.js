// Events of a webhook in their order, what was told beside what took it back.

import { byId, call, element, fillTable } from './page.js';

// Messages on a page.
const PAGE = 50;

let path = null;
let first = 0;
let listed = [];

// What a message is about, in a few words.
const about = ({ data }) => [data.name, data.pubkey, data.signature].filter((part) => typeof part === 'string').join(' ');

const link = (sequence, text) => (listed.some(({ body }) => body.sequence === sequence) ? element('a', { href: `#event-${sequence}` }, text) : text);

// What became of a message that was told, or what a retraction is of.
function fate({ sequence, type, data }, retractions) {
  if (type === 'reverted') return element('span', {}, link(data.sequence, `takes back number ${data.sequence}`), `, ${data.reason}`);
  const retraction = retractions.get(sequence);
  if (retraction === undefined) return 'stands';
  return element('span', { class: 'wrong' }, link(retraction.sequence, `taken back by number ${retraction.sequence}`), `, ${retraction.data.reason}`);
}

function show(lastSequence) {
  const retractions = new Map(listed.filter(({ body }) => body.type === 'reverted').map(({ body }) => [body.data.sequence, body]));
  fillTable(byId('events'), [
    ['Number', ({ body }) => element('span', { id: `event-${body.sequence}` }, String(body.sequence)), true],
    ['Type', ({ body }) => body.type],
    ['Slot', ({ body }) => body.slot ?? body.data.slot ?? '', true],
    ['Commitment', ({ body }) => body.commitment ?? ''],
    ['About', ({ body }) => element('span', { class: 'key' }, about(body))],
    ['What became of it', ({ body }) => fate(body, retractions)],
    ['Message', ({ id, body }) => element('details', {}, element('summary', {}, id), element('pre', { tabindex: '0' }, JSON.stringify(body, null, 1)))],
  ], listed, lastSequence === 0 ? 'no message yet' : 'none is kept any more');
  byId('earlier-events').hidden = first === 0;
}

async function read(after, limit) {
  return call(`${path}/events?after=${after}&limit=${limit}`);
}

// Shows the newest messages of the webhook at `webhookPath`.
export async function open(webhookPath) {
  path = webhookPath;
  const { lastSequence } = await read(0, 1);
  first = Math.max(0, lastSequence - PAGE);
  listed = (await read(first, PAGE)).events;
  show(lastSequence);
}

// Puts those before them in front.
export async function earlier() {
  const before = first;
  first = Math.max(0, before - PAGE);
  const page = await read(first, before - first);
  // A page of large messages ends early; the next ones follow by its last number.
  const found = page.events;
  while (found.length > 0 && found.at(-1).body.sequence < before) {
    const more = await read(found.at(-1).body.sequence, before - found.at(-1).body.sequence);
    if (more.events.length === 0) break;
    found.push(...more.events);
  }
  // What retention has removed is not there to be asked for.
  if (found.length === 0) first = 0;
  listed = [...found.filter(({ body }) => body.sequence <= before), ...listed];
  show(page.lastSequence);
}
