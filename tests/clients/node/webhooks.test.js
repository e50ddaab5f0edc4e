// Deliveries of a webhook, checked by npm's `standardwebhooks`, the scheme's official library for JavaScript.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';

import { VersionedTransaction } from '@solana/web3.js';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';

import { createWebhook, deleteWebhook, guard, mints, post, quote } from './localnet.js';
import { sendAndConfirm, wallet } from './web3js.js';

// How long after the swap's confirmation a delivery may arrive, milliseconds; it usually has arrived before.
const DELIVERY_DEADLINE = 60_000;

// Pause between two looks at what has arrived, milliseconds.
const POLL = 20;

// What has arrived: the raw body, on which alone a signature can be checked, and the headers.
const deliveries = [];

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) {
    chunks.push(chunk);
  }
  deliveries.push({ body: Buffer.concat(chunks), headers: request.headers });
  response.writeHead(204).end();
});

let webhook;
let secret;

before(async () => {
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  const created = await createWebhook({
    url: `http://127.0.0.1:${server.address().port}/hook`,
    events: ['accountChange', 'transaction', 'programEvent'],
    filters: { accounts: [wallet.publicKey.toBase58()], programs: [guard] },
  });
  ({ webhook, secret } = created);
});

after(async () => {
  await deleteWebhook(webhook.id);
  server.closeAllConnections();
  server.close();
});

async function swap() {
  const wanted = await quote(mints.SOL, mints.USDL, 100_000_000);
  const answer = await post('/v1/swap/transaction', {
    quote: wanted,
    userPublicKey: wallet.publicKey.toBase58(),
  });
  const transaction = VersionedTransaction.deserialize(Buffer.from(answer.transaction, 'base64'));
  transaction.sign([wallet]);
  const { signature } = await sendAndConfirm(transaction.serialize(), answer);
  return { signature, received: wanted.outAmount };
}

// Waits for the first delivery whose body `isIt`.
async function delivery(what, isIt) {
  const deadline = Date.now() + DELIVERY_DEADLINE;
  for (;;) {
    const found = deliveries.find(({ body }) => isIt(JSON.parse(body)));
    if (found) {
      return found;
    }
    assert.ok(Date.now() < deadline, `no ${what} among ${deliveries.length} deliveries`);
    await pause(POLL);
  }
}

test('every kind of delivery verifies, and nothing else does', async () => {
  const { signature, received } = await swap();
  const arrived = {
    transaction: await delivery('transaction', ({ type, data }) =>
      type === 'transaction' && data.signature === signature),
    programEvent: await delivery('programEvent', ({ type, data }) =>
      type === 'programEvent' && data.signature === signature),
    accountChange: await delivery('accountChange', ({ type, data }) =>
      type === 'accountChange' && data.pubkey === wallet.publicKey.toBase58()),
  };
  const verifier = new Webhook(secret);
  const stranger = new Webhook(`whsec_${Buffer.from('the secret of another webhook').toString('base64')}`);
  for (const [kind, { body, headers }] of Object.entries(arrived)) {
    assert.equal(verifier.verify(body, headers).type, kind);

    const refused = (verifier, body, headers) =>
      assert.throws(() => verifier.verify(body, headers), WebhookVerificationError, kind);
    const tampered = Buffer.from(body);
    tampered[tampered.length - 2] ^= 1;
    refused(verifier, tampered, headers);
    refused(verifier, body, { ...headers, 'webhook-id': `${headers['webhook-id']}x` });
    const later = String(Number(headers['webhook-timestamp']) + 1);
    refused(verifier, body, { ...headers, 'webhook-timestamp': later });
    refused(stranger, body, headers);
  }
  const { data } = verifier.verify(arrived.programEvent.body, arrived.programEvent.headers);
  assert.equal(data.fields.received, received);
});
