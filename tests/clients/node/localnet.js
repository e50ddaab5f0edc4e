// Localnet that the tests run against, and Sluice's REST interface as any integrator would call it.
//
// Environment variables name it. It takes `fetch`, JSON, and nothing of ours.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

function setting(name) {
  const value = process.env[name];
  if (!value) {
    throw new Error(`${name} is not set; \`cargo xtask clients\` starts a localnet and sets it`);
  }
  return value;
}

const apiUrl = setting('SLUICE_API_URL');
const indexerUrl = setting('SLUICE_INDEXER_URL');

export const rpcUrl = setting('SLUICE_RPC_URL');
export const rpcWebSocketUrl = setting('SLUICE_RPC_WS_URL');

// The file that Solana's tools keep a key pair in: a JSON array of 64 bytes.
export const walletBytes = Uint8Array.from(JSON.parse(readFileSync(setting('SLUICE_WALLET'), 'utf8')));

// Wrapped SOL, three plain tokens, and LEVY: a Token-2022 mint that withholds a fee from every transfer.
export const mints = {
  SOL: setting('SLUICE_MINT_SOL'),
  USDL: setting('SLUICE_MINT_USDL'),
  ALFA: setting('SLUICE_MINT_ALFA'),
  BETA: setting('SLUICE_MINT_BETA'),
  LEVY: setting('SLUICE_MINT_LEVY'),
};

export const guard = setting('SLUICE_GUARD');

// Lamports that every transaction costs for its one signature.
export const BASE_FEE = 5_000;

// How long the indexer may take until a new webhook's filter is in force on the stream, milliseconds.
const FILTER_DEADLINE = 60_000;

// How long the market may take to read a slot that the node has confirmed, milliseconds.
const MARKET_DEADLINE = 60_000;

// Pause between two looks at the filter or the market, milliseconds.
const POLL = 20;

async function call(url, request) {
  const response = await fetch(url, request);
  const text = await response.text();
  if (!response.ok) {
    throw new Error(`${request?.method ?? 'GET'} ${url} was refused: ${response.status} ${text}`);
  }
  return text === '' ? undefined : JSON.parse(text);
}

export function post(path, body) {
  return call(`${apiUrl}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
}

// The quote for `amount` smallest units. Amounts of the localnet stay below 2^53; a caller whose amounts do not takes
// them from `context.amounts`, where they are strings.
export async function quote(inputMint, outputMint, amount) {
  const query = new URLSearchParams({ inputMint, outputMint, amount, slippageBps: 50 });
  const { quote } = await call(`${apiUrl}/v1/quote?${query}`);
  assert.ok(Number.isSafeInteger(quote.outAmount) && quote.outAmount > 0);
  assert.ok(quote.minimumOut > 0 && quote.minimumOut <= quote.outAmount);
  return quote;
}

// Waits until quotes are made from this slot or a later one. The node confirms a slot by itself, and a quote of the moment after
// may be of the slot before.
export async function untilQuotedFrom(slot) {
  const deadline = Date.now() + MARKET_DEADLINE;
  while ((await call(`${apiUrl}/health/ready`)).slot < slot) {
    assert.ok(Date.now() < deadline, `the market did not read slot ${slot} in time`);
    await pause(POLL);
  }
}

// Creates a webhook and waits until its filter is in force: what happens before is not promised to it.
export async function createWebhook(webhook) {
  const before = await filterRevision();
  const created = await post('/api/webhooks', webhook);
  const deadline = Date.now() + FILTER_DEADLINE;
  for (;;) {
    const { wantedRevision, inForceRevision } = await filterRevision();
    if (wantedRevision > before.wantedRevision && inForceRevision === wantedRevision) {
      return created;
    }
    assert.ok(Date.now() < deadline, "the new webhook's filter did not come into force in time");
    await pause(POLL);
  }
}

export async function deleteWebhook(id) {
  await call(`${apiUrl}/api/webhooks/${id}`, { method: 'DELETE' });
}

async function filterRevision() {
  return (await call(`${indexerUrl}/health/ready`)).filter;
}
