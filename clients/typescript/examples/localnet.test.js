// The examples on a localnet: swap, sponsor, quote bot, webhook receiver.
//
// `cargo xtask clients` starts a localnet and sets the environment variables that name it.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';

import { createClient, createKeyPairSignerFromBytes, generateKeyPairSigner } from '@solana/kit';
import { GUARD, ProblemError, Sluice } from '@sluice/client';
import { sluice as plugin } from '@sluice/client/kit';

import { Chain } from './chain.js';
import { swapAt } from './quote-bot.js';
import { sponsoredSwap } from './sponsor.js';
import { swap } from './swap.js';
import { receiver } from './webhook-receiver.js';

function setting(name) {
  const value = process.env[name];
  if (!value) {
    throw new Error(`${name} is not set; \`cargo xtask clients\` starts a localnet and sets it`);
  }
  return value;
}

// How long a webhook's filter may take until it is in force, and a delivery until it arrives, milliseconds.
const PATIENCE = 30_000;

// Pause between two looks, milliseconds.
const POLL = 20;

const sluice = new Sluice({ url: setting('SLUICE_API_URL') });
const chain = new Chain({ rpcUrl: setting('SLUICE_RPC_URL'), rpcWebSocketUrl: setting('SLUICE_RPC_WS_URL') });
const wallet = await createKeyPairSignerFromBytes(
  Uint8Array.from(JSON.parse(readFileSync(setting('SLUICE_WALLET'), 'utf8'))),
);
const [SOL, USDL, LEVY] = ['SOL', 'USDL', 'LEVY'].map((name) => setting(`SLUICE_MINT_${name}`));

async function until(what, look) {
  const deadline = Date.now() + PATIENCE;
  for (;;) {
    const found = await look();
    if (found) {
      return found;
    }
    assert.ok(Date.now() < deadline, `${what} did not come in time`);
    await pause(POLL);
  }
}

test('a swap pays what was quoted', async () => {
  const before = await chain.balance(wallet.address, USDL);
  const { quote } = await swap({ sluice, chain, wallet, inputMint: SOL, outputMint: USDL, amount: 700_000_000n });
  assert.equal((await chain.balance(wallet.address, USDL)) - before, quote.outAmount);
});

test('a swap by the plugin of @solana/kit pays SOL', async () => {
  const client = createClient().use(plugin({ url: setting('SLUICE_API_URL') }));
  const before = await chain.lamports(wallet.address);
  const order = { inputMint: USDL, outputMint: SOL, amount: 20_000_000n };
  const { quote } = await swap({ sluice: client.sluice, chain, wallet, ...order });
  const gained = (await chain.lamports(wallet.address)) - before;
  assert.ok(gained <= quote.outAmount && gained > quote.outAmount - 100_000n, `${gained} of ${quote.outAmount}`);
});

test('a user without SOL swaps at the cost of a sponsor', async () => {
  const user = await generateKeyPairSigner();
  const gift = { inputMint: SOL, outputMint: USDL, amount: 500_000_000n, receiver: user.address };
  await swap({ sluice, chain, wallet, ...gift });
  const amount = await chain.balance(user.address, USDL);
  const order = { inputMint: USDL, outputMint: LEVY, amount };
  const { quote, fee, signers } = await sponsoredSwap({ sluice, chain, user, sponsor: wallet, ...order });
  assert.deepEqual(signers, [wallet.address, user.address]);
  assert.equal(fee, 10_000n);
  assert.equal(await chain.balance(user.address, LEVY), quote.outAmount);
  assert.equal(await chain.balance(user.address, USDL), 0n);
  assert.equal(await chain.lamports(user.address), 0n);
});

test('a bot swaps when the market pays what it waits for, and not before', async () => {
  const order = { inputMint: SOL, outputMint: USDL, amount: 150_000_000n };
  const atLeast = (await sluice.quotes.get(order)).quote.outAmount + 1n;
  const before = await chain.balance(wallet.address, USDL);
  const seen = [];
  let swapped;
  const waiting = new Promise((resolve) => {
    const onQuote = ({ outAmount }) => resolve(seen.push(outAmount));
    swapped = swapAt({ sluice, chain, wallet, ...order, atLeast, onQuote });
  });
  // A bot that fails is not waited for.
  await Promise.race([waiting, swapped]);
  // With more of the output in the pool, the price is there.
  const moved = 50_000_000n;
  await swap({ sluice, chain, wallet, inputMint: USDL, outputMint: SOL, amount: moved });
  const { quote } = await swapped;
  assert.ok(seen[0] < atLeast && quote.outAmount >= atLeast, `${seen} for ${atLeast}`);
  assert.equal(quote.minimumOut, atLeast);
  assert.deepEqual(seen.slice(0, -1).filter((outAmount) => outAmount >= atLeast), []);
  assert.equal((await chain.balance(wallet.address, USDL)) - before + moved, quote.outAmount);
});

test('a bot that is told to stop swaps nothing', async () => {
  const before = await chain.balance(wallet.address, USDL);
  const stop = new AbortController();
  const order = { inputMint: SOL, outputMint: USDL, amount: 150_000_000n, atLeast: 2n ** 63n };
  const stopped = swapAt({ sluice, chain, wallet, ...order, signal: stop.signal, onQuote: () => stop.abort() });
  await stopped.catch((error) => assert.equal(error, stop.signal.reason));
  assert.equal(await chain.balance(wallet.address, USDL), before);
});

test('a webhook receiver handles what it verified', async (t) => {
  const messages = [];
  let secret = '';
  const server = receiver({ secret: () => secret, handle: (message) => messages.push(message) });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const created = await sluice.webhooks.create({
    url: `http://127.0.0.1:${server.address().port}/hook`,
    events: ['transaction', 'programEvent'],
    filters: { programs: [GUARD] },
  });
  secret = created.secret;
  const { id } = created.webhook;
  t.after(() => sluice.webhooks.delete(id));
  await until('the filter', async () => (await sluice.webhooks.get(id)).status.filter?.inForceSlot);
  const order = { inputMint: SOL, outputMint: USDL, amount: 100_000_000n };
  const { quote, signature } = await swap({ sluice, chain, wallet, ...order });
  const event = await until('the event', () =>
    messages.find(({ type, data }) => type === 'programEvent' && data.signature === signature),
  );
  assert.equal(event.data.name, 'Swapped');
  assert.deepEqual([event.data.fields.spent, event.data.fields.received], [100_000_000n, quote.outAmount]);

  // A receiver that was away reads the same messages from the list.
  const listed = [];
  for await (const { body } of sluice.webhooks.events(id, { limit: 1 })) {
    listed.push(body);
  }
  assert.deepEqual(listed.find(({ sequence }) => sequence === event.sequence), event);
  const stranger = await fetch(`http://127.0.0.1:${server.address().port}/hook`, { method: 'POST', body: '{}' });
  assert.equal(stranger.status, 400);
});

test('pools and mints are listed with exact reserves', async () => {
  const pools = [];
  for await (const pool of sluice.pools.list({ mint: USDL, limit: 1 })) {
    pools.push(pool);
  }
  assert.ok(pools.length > 1);
  const { pool } = await sluice.pools.get(pools[0].pool);
  assert.equal(typeof pool.tokens[0].reserve, 'bigint');
  assert.equal((await sluice.pools.mint(USDL)).mint, USDL);
});

test('a refusal has its code', async () => {
  const call = sluice.quotes.get({ inputMint: USDL, outputMint: USDL, amount: 5n });
  await assert.rejects(call, (error) => error instanceof ProblemError && error.is('invalid_field'));
  assert.ok((await sluice.ready()).ready);
  await sluice.live();
});
