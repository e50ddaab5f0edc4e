// Dry run of a webhook's filter: what it would have matched in the last slots, with nothing stored and nothing sent.

import { byId, call, element, facts } from './page.js';

// Between two looks at one that is not done, milliseconds.
const POLL_MS = 500;

// Looks at most: reading goes by the service's own pace, and who waits longer asks again.
const MOST_LOOKS = 240;

let shown = null;

function show(run) {
  facts(byId('dry-run-facts'), [
    ['state', run.error === null ? run.state : element('span', { class: 'wrong' }, `${run.state}: ${run.error}`)],
    ['slots', `${run.fromSlot} to ${run.toSlot}, read before ${run.nextSlot}`],
    ['messages that they would have caused', run.matched],
    ['slots that the node does not have', run.lostSlots],
    ['not looked for, since no node has them', run.missingKinds.length === 0 ? 'nothing' : run.missingKinds.join(', ')],
  ]);
  byId('dry-run-samples').replaceChildren(...run.samples.map((sample) =>
    element('details', {}, element('summary', {}, `${sample.type}, slot ${sample.slot}`), element('pre', { tabindex: '0' }, JSON.stringify(sample, null, 1)))));
}

// Forgets what was shown of another webhook.
export function close(path) {
  shown = path;
  facts(byId('dry-run-facts'), []);
  byId('dry-run-samples').replaceChildren();
}

// Asks for one of the webhook at `path`, and follows it to its end.
export async function run(path) {
  shown = path;
  let state = await call(`${path}/dry-run`, { method: 'POST', body: { slots: Number(byId('dry-run-slots').value) } });
  for (let look = 0; look < MOST_LOOKS && shown === path; look += 1) {
    show(state);
    if (state.state !== 'pending') return;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    state = await call(`${path}/dry-run`);
  }
}
