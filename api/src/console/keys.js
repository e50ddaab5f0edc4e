// Keys: those of the whole installation, made and revoked, for who has signed in with one that may do that.

import { attempt, byId, call, element, fillTable, say } from './page.js';

const NUMBERS = [['webhooks', 'webhooks'], ['addresses', 'addresses'], ['stored', 'storedMib'], ['rate', 'messagesPerSecond'], ['slots', 'deliverySlots']];

const limits = ({ quotas }) =>
  Object.entries(quotas).filter(([, limit]) => limit !== null).map(([name, limit]) => `${name} ${limit}`).join(', ') || 'as configured';

const state = ({ revoked, expires }) => {
  if (revoked !== null) return `revoked ${revoked}`;
  if (expires === null) return 'in use';
  return Date.parse(expires) <= Date.now() ? `ended ${expires}` : `in use until ${expires}`;
};

const revoke = ({ id, name }) =>
  attempt(async () => {
    if (!confirm(`Revoke ${name}, for good? Its webhooks are switched off.`)) return;
    await call(`/api/keys/${encodeURIComponent(id)}`, { method: 'DELETE' });
    say(`${name} is revoked.`);
    await show();
  });

async function show() {
  const { keys } = await call('/api/keys');
  byId('none').hidden = keys.length > 0;
  fillTable(byId('keys'), [
    ['Name', ({ name }) => name],
    ['Key', ({ id }) => id],
    ['May', ({ scopes }) => scopes.join(', ')],
    ['State', state],
    ['Webhooks', ({ webhooks }) => webhooks, true],
    ['Limits', limits],
    ['Created', ({ created }) => created],
    ['', (key) => (key.revoked === null ? element('button', { type: 'button', 'aria-label': `Revoke ${key.name}`, click: revoke(key) }, 'Revoke') : '')],
  ], keys, 'no key yet');
}

const number = (id) => (byId(id).value === '' ? null : Number(byId(id).value));

async function make(event) {
  event.preventDefault();
  byId('fault').textContent = '';
  byId('secret').textContent = '';
  const form = byId('new');
  const scopes = [...form.querySelectorAll('[name="scopes"]:checked')].map(({ value }) => value);
  if (scopes.length === 0) {
    byId('fault').textContent = 'scopes: choose at least one';
    return;
  }
  const quotas = Object.fromEntries(NUMBERS.map(([id, member]) => [member, number(id)]));
  try {
    const { key, secret } = await call('/api/keys', { method: 'POST', body: { name: byId('name').value.trim(), scopes, expiresInDays: number('expires'), quotas } });
    form.reset();
    byId('secret').textContent = `Key ${key.name}, shown this once: ${secret}`;
    await show();
  } catch (error) {
    byId('fault').textContent = error.message;
  }
}

byId('new').addEventListener('submit', make);
attempt(show)();
