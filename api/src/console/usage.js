// Usage: what the key has of its quotas, and the messages that were given up.

import { attempt, byId, call, element, facts, fillTable, say } from './page.js';

// Webhooks whose dead letters are read, and letters of each: the longest page that the API answers of both.
const WEBHOOKS = '100';
const LETTERS = '50';

const quota = ({ used, limit }) => `${used} of ${limit ?? 'any number'}`;

const rate = ({ used, limit, throttled }) => limit === null ? 'any number' : `${used} of ${limit}${throttled ? '; the others wait' : ''}`;

// Says what is left out, and where it is found. Nobody counts all of them, so the number is only of what is shown.
function sayCut(letters, webhooks, hasMoreWebhooks, cutOf) {
  const parts = [
    ...cutOf.map(([id, count]) => `of ${id} the newest ${count}`),
    ...(hasMoreWebhooks ? [`those of the oldest ${webhooks} webhooks alone`] : []),
  ];
  byId('cut').hidden = parts.length === 0;
  byId('cut').replaceChildren(
    `The first ${letters} are shown, and not all: ${parts.join('; ')}. The others are on the page `,
    element('a', { href: '/console/webhooks' }, 'Webhooks'),
    ': open a webhook there, choose the state failed, and read more of them, or redeliver all that failed.');
}

async function show() {
  const { webhooks, addresses, storedBytes, messagesPerSecond, deliverySlots } = await call('/api/usage');
  facts(byId('usage'), [['webhooks', quota(webhooks)], ['watched addresses', quota(addresses)], ['bytes of stored messages', quota(storedBytes)],
    ['messages sent in the last second', rate(messagesPerSecond)], ['deliveries at once', quota(deliverySlots)]]);
  const page = await call(`/api/webhooks?limit=${WEBHOOKS}`);
  const [rows, cutOf] = [[], []];
  for (const { id, url } of page.webhooks) {
    const failed = await call(`/api/webhooks/${encodeURIComponent(id)}/deliveries?state=failed&limit=${LETTERS}`);
    rows.push(...failed.deliveries.map((delivery) => ({ webhook: id, url, ...delivery })));
    if (failed.nextCursor !== null) cutOf.push([id, failed.deliveries.length]);
  }
  sayCut(rows.length, page.webhooks.length, page.nextCursor !== null, cutOf);
  fillTable(byId('dead'), [
    ['Webhook', ({ webhook }) => webhook],
    ['URL', ({ url }) => url],
    ['Number', ({ sequence }) => sequence, true],
    ['Type', ({ type }) => type],
    ['Why', ({ attempts }) => attempts.at(-1)?.error ?? 'not known'],
    ['', ({ webhook, id, sequence }) => element('button', { type: 'button', id: `redeliver-${id}`, 'aria-label': `Redeliver message ${sequence} of ${webhook}`, click: attempt(async () => {
      await call(`/api/webhooks/${encodeURIComponent(webhook)}/redeliver`, { method: 'POST', body: { id } });
      say(`Message ${sequence} is sent once more.`);
      await show();
    }) }, 'Redeliver')],
  ], rows, 'no dead letter');
}

attempt(show)();
