// Every operation of the API's document has a method, which sends it as the document says.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { Sluice } from '@sluice/client';

const document = JSON.parse(readFileSync(new URL('../../../openapi.json', import.meta.url), 'utf8'));

const all = async (items) => {
  for await (const _ of items);
};

// A call of each operation's method.
const CALLS = {
  addAccounts: ({ webhooks }) => webhooks.addAccounts('w', ['a']),
  addPrograms: ({ webhooks }) => webhooks.addPrograms('w', ['a']),
  buildInstruction: ({ swaps }) => swaps.instruction({}),
  buildTransaction: ({ swaps }) => swaps.transaction({}),
  changeWebhook: ({ webhooks }) => webhooks.change('w', {}),
  checkTransaction: ({ swaps }) => swaps.check({}),
  createKey: (sluice) => sluice.keys.create({ name: 'k', scopes: ['webhooks:read'] }),
  createWebhook: ({ webhooks }) => webhooks.create({}),
  deleteIdl: ({ webhooks }) => webhooks.deleteIdl('p'),
  deleteWebhook: ({ webhooks }) => webhooks.delete('w'),
  explainTransaction: ({ transactions }) => transactions.explain({ transaction: 't' }),
  getBackfill: ({ webhooks }) => webhooks.backfill('w'),
  getDryRun: ({ webhooks }) => webhooks.dryRun('w'),
  getIdl: ({ webhooks }) => webhooks.idl('p'),
  getMint: ({ pools }) => pools.mint('m'),
  getOperations: ({ webhooks }) => webhooks.operations('w'),
  getPool: ({ pools }) => pools.get('p'),
  getPriorityFees: ({ pools }) => pools.priorityFees({ pool: 'p' }),
  getQuote: ({ quotes }) => quotes.get({}),
  getTransaction: ({ transactions }) => transactions.get('s'),
  getUsage: (sluice) => sluice.usage(),
  getWebhook: ({ webhooks }) => webhooks.get('w'),
  listDeliveries: ({ webhooks }) => all(webhooks.deliveries('w')),
  listEvents: ({ webhooks }) => all(webhooks.events('w')),
  getMessage: ({ webhooks }) => webhooks.message('w', 'm'),
  listKeys: (sluice) => sluice.keys.list(),
  listPools: ({ pools }) => all(pools.list()),
  listWebhooks: ({ webhooks }) => all(webhooks.list()),
  live: (sluice) => sluice.live(),
  openStream: ({ webhooks }) => all(webhooks.stream('w')),
  putIdl: ({ webhooks }) => webhooks.putIdl('p', { idl: {} }),
  ready: (sluice) => sluice.ready(),
  redeliver: ({ webhooks }) => webhooks.redeliver('w', { failed: true }),
  removeAccounts: ({ webhooks }) => webhooks.removeAccounts('w', ['a']),
  removePrograms: ({ webhooks }) => webhooks.removePrograms('w', ['a']),
  replaceWebhook: ({ webhooks }) => webhooks.replace('w', {}),
  reportMessage: ({ webhooks }) => webhooks.report('w', {}),
  requestBackfill: ({ webhooks }) => webhooks.requestBackfill('w', { fromSlot: 1, toSlot: 2 }),
  requestDryRun: ({ webhooks }) => webhooks.requestDryRun('w', { slots: 1 }),
  revokeKey: (sluice) => sluice.keys.revoke('k'),
  rotateSecret: ({ webhooks }) => webhooks.rotateSecret('w'),
  sendTransaction: ({ transactions }) => transactions.send({ transaction: 't' }),
  setOperations: ({ webhooks }) => webhooks.setOperations('w', { events: ['quota'] }),
  skipMessage: ({ webhooks }) => webhooks.skip('w', { id: 'm' }),
  streamQuotes: ({ quotes }) => quotes.stream({}).next(),
  streamTransaction: ({ transactions }) => transactions.follow('s').next(),
  testWebhook: ({ webhooks }) => webhooks.test('w'),
};

// A page of everything, the last one.
const PAGE = '{"pools":[],"webhooks":[],"deliveries":[],"events":[],"lastSequence":0,"cursor":null,"nextCursor":null}';

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), ...operation })),
);

test('no operation is without a method, and no method without an operation', () => {
  assert.deepEqual(Object.keys(CALLS).sort(), operations.map(({ operationId }) => operationId).sort());
});

for (const { operationId, path, method, requestBody, ...operation } of operations) {
  test(`${operationId} is ${method} ${path}`, async () => {
    const sent = [];
    const isEvents = operation.responses['200']?.content?.['text/event-stream'];
    const sluice = new Sluice({
      url: 'https://sluice.test',
      fetch: async (url, request) => {
        sent.push({ url: new URL(url), ...request });
        const event = operationId === 'streamQuotes' ? 'quote' : 'status';
        return new Response(isEvents ? `event: ${event}\ndata: ${PAGE}\n\n` : PAGE, { status: 200 });
      },
    });
    await CALLS[operationId](sluice);
    assert.equal(sent.length, 1);
    assert.equal(sent[0].method, method);
    assert.match(sent[0].url.pathname, new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`));
    assert.equal(sent[0].body !== undefined, requestBody !== undefined, 'a body where there is to be one');
  });
}
