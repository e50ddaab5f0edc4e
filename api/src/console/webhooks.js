// Webhooks: list, create, edit, pause, test, rotate, delete; the other files have their deliveries, dry runs and events.

import * as conditions from './conditions.js';
import * as deliveries from './deliveries.js';
import * as delivery from './delivery.js';
import * as dryRun from './dry-run.js';
import * as events from './events.js';
import * as operations from './operations.js';
import { attempt, byId, call, element, facts, fillTable, say } from './page.js';

let shown = null;
let version = null;
let listed = [];
let cursor = null;

const path = (rest = '') => `/api/webhooks/${encodeURIComponent(shown.id)}${rest}`;

async function list(more = false) {
  const query = new URLSearchParams({ limit: '50' });
  if (more) query.set('cursor', cursor);
  const page = await call(`/api/webhooks?${query}`);
  listed = more ? [...listed, ...page.webhooks] : page.webhooks;
  cursor = page.nextCursor;
  byId('more').hidden = cursor === null;
  fillTable(byId('list'), [
    ['Webhook', (webhook) => element('button', { type: 'button', class: 'key', click: attempt(() => open(webhook.id)) }, webhook.id)],
    ['URL', ({ url }) => url],
    ['Events', ({ events, operations: told }) => [...events, ...told].join(', ')],
    ['State', ({ active, status }) => (active ? (status.refused ?? health(status.endpoint)) : (status.disabledReason ?? 'paused'))],
    ['Last event', ({ lastTriggered }) => lastTriggered ?? 'none yet'],
  ], listed, 'no webhook yet');
}

// What the attempts say of the receiver of an active webhook.
function health({ failingSince, failures, pausedUntil }) {
  if (failures === 0) return 'active';
  const since = failingSince ? ` since ${failingSince}` : '';
  return `fails${since}, ${failures} times in a row${pausedUntil ? `, next at ${pausedUntil}` : ''}`;
}

function show(webhook) {
  shown = webhook;
  version = webhook.status.version;
  byId('detail').hidden = false;
  byId('detail-title').textContent = `Webhook ${webhook.id}`;
  byId('pause').textContent = webhook.active ? 'Pause' : 'Resume';
  facts(byId('facts'), [
    ['URL', webhook.url],
    ['description', webhook.description],
    ['events', webhook.events.join(', ') || 'none'],
    ['commitment', webhook.commitment],
    ['order', webhook.order],
    ['accounts', webhook.filters.accounts.join(' ')],
    ['programs', webhook.filters.programs.join(' ')],
    ...conditions.describe(webhook.filters),
    ...delivery.describe(webhook),
    ['token owners', (webhook.filters.tokenOwners ?? []).join(' ')],
    ['state', webhook.active ? health(webhook.status.endpoint) : (webhook.status.disabledReason ?? 'paused')],
    ['in force since slot', webhook.status.filter.inForceSlot ?? 'not yet'],
    ['verifies v1a', webhook.status.publicKey],
    ['refused by the stream', webhook.status.refused ?? 'no'],
    ['not told', webhook.status.notTold ?? 'nothing is left out'],
    ['created', webhook.created],
  ]);
}

// The last reading of a webhook and of all that is shown of it.
let opening = Promise.resolve();

function open(id) {
  opening = read(id);
  return opening;
}

async function read(id) {
  byId('editor').hidden = true;
  byId('secret').textContent = '';
  operations.close();
  show(await call(`/api/webhooks/${encodeURIComponent(id)}`));
  await deliveries.open(path());
  dryRun.close(path());
  await operations.open(path());
  await events.open(path());
  byId('detail-title').scrollIntoView();
}

// The lists of addresses of which a filter needs one, by field and member.
const ADDRESSES = [['accounts', 'accounts'], ['programs', 'programs'], ['token-owners', 'tokenOwners']];

function edit(webhook) {
  const form = byId('definition');
  form.reset();
  byId('fault').textContent = '';
  byId('editor').hidden = false;
  byId('editor-title').textContent = webhook ? `Edit ${webhook.id}` : 'New webhook';
  byId('save').textContent = webhook ? 'Save' : 'Create';
  byId('detail').hidden = true;
  shown = webhook;
  conditions.fill(webhook?.filters);
  delivery.fill(webhook);
  if (webhook) {
    for (const name of ['url', 'commitment', 'order']) form.elements[name].value = webhook[name];
    form.elements.description.value = webhook.description ?? '';
    for (const box of form.querySelectorAll('[name="events"]')) box.checked = webhook.events.includes(box.value);
    for (const box of form.querySelectorAll('[name="told"]')) box.checked = webhook.operations.includes(box.value);
    for (const [id, member] of ADDRESSES) form.elements[id].value = (webhook.filters[member] ?? []).join('\n');
  }
  byId('url').focus();
}

const checked = (name) => [...document.querySelectorAll(`[name="${name}"]:checked`)].map(({ value }) => value);

const kinds = () => checked('events');

// What is wrong with the form, before the API is asked.
function fault() {
  for (const [id, member] of ADDRESSES) {
    const wrong = conditions.words(id).find((word) => !conditions.ADDRESS.test(word));
    if (wrong !== undefined) return `${member}: ${wrong} is no address; write base58, one a line`;
  }
  const noAddress = ADDRESSES.every(([id]) => conditions.words(id).length === 0);
  if (noAddress && kinds().length === 0 && checked('told').length > 0) return conditions.fault(kinds()) || delivery.fault();
  if (noAddress) return 'accounts, programs, tokenOwners: name at least one address';
  if (kinds().length === 0) return 'events: choose at least one kind';
  return conditions.fault(kinds()) || delivery.fault();
}

async function save(event) {
  event.preventDefault();
  const wrong = fault();
  byId('fault').textContent = wrong;
  if (wrong !== '') return;
  const form = byId('definition');
  const body = {
    url: form.elements.url.value,
    events: kinds(),
    operations: checked('told'),
    filters: { ...Object.fromEntries(ADDRESSES.map(([id, member]) => [member, conditions.words(id)])), ...conditions.read() },
    commitment: form.elements.commitment.value,
    order: form.elements.order.value,
    ...delivery.read(),
    description: form.elements.description.value === '' ? null : form.elements.description.value,
  };
  try {
    if (shown) {
      await call(path(), { method: 'PATCH', body, headers: { 'if-match': `"${version}"` } });
      await open(shown.id);
    } else {
      const { webhook, secret } = await call('/api/webhooks', { method: 'POST', body });
      await open(webhook.id);
      byId('secret').textContent = `Secret, shown this once: ${secret}`;
    }
    await list();
  } catch (error) {
    byId('fault').textContent = error.message;
  }
}

async function change(body) {
  show(await call(path(), { method: 'PATCH', body }));
  await list();
}

byId('definition').addEventListener('submit', save);
byId('definition').addEventListener('input', () => {
  byId('fault').textContent = fault();
});
byId('new').addEventListener('click', () => edit(null));
byId('edit').addEventListener('click', () => edit(shown));
byId('cancel').addEventListener('click', () => {
  byId('editor').hidden = true;
  byId('detail').hidden = shown === null;
});
byId('more').addEventListener('click', attempt(() => list(true)));
byId('more-deliveries').addEventListener('click', attempt(() => deliveries.more()));
byId('reload').addEventListener('click', attempt(() => deliveries.read()));
byId('state').addEventListener('change', attempt(() => deliveries.read()));
byId('pause').addEventListener('click', attempt(() => change({ active: !shown.active })));
byId('test').addEventListener('click', attempt(async () => {
  const { results } = await call(path('/test'), { method: 'POST' });
  say(results.map(({ type, accepted, status, error }) => `${type}: ${accepted ? `accepted, ${status}` : (error ?? status)}`).join('; '));
}));
byId('dry-run').addEventListener('submit', attempt(() => dryRun.run(path())));
byId('operations').addEventListener('submit', attempt(() => operations.save(path())));
byId('backfill').addEventListener('submit', attempt(() => operations.backfill(path())));
byId('read-events').addEventListener('click', attempt(() => events.open(path())));
byId('earlier-events').addEventListener('click', attempt(() => events.earlier()));
byId('rotate').addEventListener('click', attempt(async () => {
  if (!confirm('Sign with a new secret from now on?')) return;
  const { secret, previousSecretUntil } = await call(path('/rotate-secret'), { method: 'POST' });
  byId('secret').textContent = `New secret, shown this once: ${secret}. The one before signs as well until ${previousSecretUntil}.`;
}));
byId('redeliver-chosen').addEventListener('click', attempt(() => deliveries.redeliverChosen()));
byId('redeliver-failed').addEventListener('click', attempt(() => deliveries.redeliverFailed()));
byId('delete').addEventListener('click', attempt(async () => {
  if (!confirm(`Delete ${shown.id} with its messages?`)) return;
  // What is still being read of it would not be found any more.
  await opening.catch(() => {});
  await call(path(), { method: 'DELETE' });
  byId('detail').hidden = true;
  await list();
}));
attempt(() => list())();
