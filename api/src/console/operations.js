// Of which operations a webhook is told, and slots that are read again for it.

import { byId, call, element, facts, say } from './page.js';

// Between two looks at a backfill that is not done, milliseconds.
const POLL_MS = 500;

// Looks at most: reading goes by the service's own pace, and who waits longer asks again.
const MOST_LOOKS = 240;

let shown = null;

const boxes = () => [...document.querySelectorAll('[name="operations"]')];

// Lets nothing be chosen until it is read what is: the answer would take it back.
export function close() {
  for (const box of boxes()) box.disabled = true;
}

// Shows those of the webhook at `path`, and forgets the backfill of another.
export async function open(path) {
  shown = path;
  facts(byId('backfill-facts'), []);
  const { events } = await call(`${path}/operations`);
  for (const box of boxes()) Object.assign(box, { checked: events.includes(box.value), disabled: false });
}

export async function save(path) {
  const events = boxes().filter(({ checked }) => checked).map(({ value }) => value);
  const told = await call(`${path}/operations`, { method: 'PUT', body: { events } });
  say(told.events.length === 0 ? 'It is told of no operation.' : `It is told of ${told.events.join(', ')}.`);
}

function show(run) {
  facts(byId('backfill-facts'), [
    ['state', run.error === null ? run.state : element('span', { class: 'wrong' }, `${run.state}: ${run.error}`)],
    ['slots', `${run.fromSlot} to ${run.toSlot}, read before ${run.nextSlot}`],
    ['messages that they cause', run.matched],
    ['of those not stored before', run.told],
    ['slots that the node does not have', run.lostSlots],
    ['not told, since no node has them', run.missingKinds.length === 0 ? 'nothing' : run.missingKinds.join(', ')],
  ]);
}

// Has slots read again for the webhook at `path`, and follows it to its end.
export async function backfill(path) {
  shown = path;
  const [fromSlot, toSlot] = ['backfill-from', 'backfill-to'].map((id) => Number(byId(id).value));
  let state = await call(`${path}/backfill`, { method: 'POST', body: { fromSlot, toSlot } });
  for (let look = 0; look < MOST_LOOKS && shown === path; look += 1) {
    show(state);
    if (state.state !== 'pending') return;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    state = await call(`${path}/backfill`);
  }
}
