// Calls: retries of idempotent ones only, deadlines, signals, problems.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ConnectionError, ProblemError, Sluice, TimeoutError } from '@sluice/client';

import { json, problem, serve } from './service.js';

const query = { inputMint: 'a', outputMint: 'b', amount: 18446744073709551615n };
const quote = { amountIn: 1, minimumOut: 1, outAmount: 1, inputMint: 'a', outputMint: 'b', pool: 'p', program: 'x' };
const swap = { quote, userPublicKey: 'u' };

// A client whose pauses have no jitter.
const client = (url, options = {}) => new Sluice({ url, random: () => 0, ...options });

test('amounts go out and come in as they are', async (t) => {
  const { url, requests } = await serve(t, (_, response) => {
    json(response, '{"quote":{"amountIn":18446744073709551615,"pool":"p"},"context":{"slot":5,"slippageBps":50}}');
  });
  const answer = await client(`${url}/`).quotes.get(query);
  assert.deepEqual(answer.quote, { amountIn: 18446744073709551615n, pool: 'p' });
  assert.deepEqual(answer.context, { slot: 5n, slippageBps: 50 });
  assert.equal(requests[0].url, '/v1/quote?inputMint=a&outputMint=b&amount=18446744073709551615');
  await client(url).swaps.transaction({ quote: { ...quote, amountIn: 18446744073709551615n }, userPublicKey: 'u' });
  assert.match(requests[1].body, /"amountIn":18446744073709551615,/);
  assert.equal(requests[1].headers['content-type'], 'application/json');
});

test('an idempotent call is repeated until it is answered', async (t) => {
  for (const status of [408, 429, 502, 503, 504]) {
    const { url, requests } = await serve(t, (_, response, nth) => {
      if (nth < 3) {
        problem(response, status, 'rate_limited');
      } else {
        json(response, { pool: {} });
      }
    });
    await client(url).pools.get('p');
    assert.equal(requests.length, 3, `${status}`);
    await client(url).swaps.transaction(swap);
  }
});

test('a named call keeps its name over all attempts', async (t) => {
  const { url, requests } = await serve(t, (_, response, nth) => {
    if (nth % 2 === 1) {
      problem(response, 503, 'rpc_failed');
    } else {
      json(response, {});
    }
  });
  await client(url).swaps.transaction(swap, { idempotencyKey: 'order-7' });
  const webhook = { url: 'https://x', events: ['transaction'], filters: {} };
  await client(url).webhooks.create(webhook, { idempotencyKey: 'hook-8' });
  const names = requests.map(({ headers }) => headers['idempotency-key']);
  assert.deepEqual(names, ['order-7', 'order-7', 'hook-8', 'hook-8']);
});

test('a connection that is lost is made again', async (t) => {
  const { url, requests } = await serve(t, (_, response, nth) => {
    if (nth === 1) {
      response.destroy();
    } else {
      json(response, { pool: {} });
    }
  });
  await client(url).pools.get('p');
  assert.equal(requests.length, 2);
});

test('a call that changes something is sent once', async (t) => {
  const { url, requests } = await serve(t, (_, response) => problem(response, 503, 'store_unavailable'));
  const { webhooks } = client(url, { apiKey: 'key' });
  const calls = [
    () => webhooks.create({ url: 'https://x', events: ['transaction'], filters: {} }),
    () => webhooks.change('w', {}),
    () => webhooks.addAccounts('w', ['a']),
    () => webhooks.redeliver('w', { failed: true }),
    () => webhooks.rotateSecret('w'),
    () => webhooks.test('w'),
    () => webhooks.report('w', { id: 'm', accepted: true, durationMs: 1 }),
    () => webhooks.replace('w', {}, { version: 3n }),
  ];
  for (const call of calls) {
    await assert.rejects(call(), (error) => error instanceof ProblemError && error.is('store_unavailable'));
  }
  assert.equal(requests.length, calls.length);
  assert.equal(requests[0].headers.authorization, 'Bearer key');
  assert.equal(requests.at(-1).headers['if-match'], '"3"');
});

test('a refusal is not repeated, and its problem is whole', async (t) => {
  const { url, requests } = await serve(t, (_, response) => {
    problem(response, 409, 'quote_stale', { 'x-request-id': 'r-7' }, { quote, context: { slot: 9 } });
  });
  const error = await client(url).swaps.transaction(swap).catch((error) => error);
  assert.ok(error instanceof ProblemError && error.is('quote_stale') && !error.is('rate_limited'));
  assert.deepEqual([error.status, error.retryable, error.requestId, error.attempts], [409, false, 'r-7', 1]);
  assert.equal(error.problem.context.slot, 9n);
  assert.equal(error.problem.quote.amountIn, 1n);
  assert.equal(requests.length, 1);
});

test('attempts have an end, and the last problem is thrown', async (t) => {
  const { url, requests } = await serve(t, (_, response) => problem(response, 503, 'market_not_ready'));
  const error = await client(url, { attempts: 3 }).quotes.get(query).catch((error) => error);
  assert.equal(error.code, 'market_not_ready');
  assert.equal(error.attempts, 3);
  assert.equal(requests.length, 3);
});

test('Retry-After is kept, and one beyond the call ends it at once', async (t) => {
  const { url, requests } = await serve(t, (_, response, nth) => {
    if (nth === 1) {
      problem(response, 429, 'rate_limited', { 'retry-after': '1' });
    } else {
      json(response, { pool: {} });
    }
  });
  const before = performance.now();
  await client(url).pools.get('p');
  assert.ok(performance.now() - before >= 990);
  assert.equal(requests.length, 2);

  const later = await serve(t, (_, response) => problem(response, 429, 'rate_limited', { 'retry-after': '3600' }));
  await assert.rejects(client(later.url).pools.get('p'), ProblemError);
  assert.equal(later.requests.length, 1);
});

test('a call ends by its time and by its signal, its pauses included', async (t) => {
  const silent = await serve(t, () => new Promise(() => {}));
  await assert.rejects(client(silent.url, { timeoutMs: 50 }).quotes.get(query), TimeoutError);
  const reason = new Error('enough');
  const aborted = client(silent.url).quotes.get(query, { signal: AbortSignal.abort(reason) });
  await assert.rejects(aborted, (error) => error === reason);

  const pausing = new AbortController();
  const busy = await serve(t, (_, response) => {
    problem(response, 429, 'rate_limited', { 'retry-after': '60' });
    setTimeout(() => pausing.abort(reason), 20);
  });
  const call = client(busy.url, { timeoutMs: 600_000 }).quotes.get(query, { signal: pausing.signal });
  await assert.rejects(call, (error) => error === reason);
});

test('what is not the service is named as such', async (t) => {
  const page = await serve(t, (_, response) => response.end('<html>'));
  await assert.rejects(client(page.url, { attempts: 1 }).pools.get('p'), ConnectionError);
  const missing = await serve(t, (_, response) => response.writeHead(404).end('<html>'));
  await assert.rejects(client(missing.url).pools.get('p'), /404 without a problem document/);
  await assert.rejects(client('http://127.0.0.1:1', { attempts: 1 }).pools.get('p'), ConnectionError);
});

test('deleting is repeated, and what an earlier attempt deleted is deleted', async (t) => {
  const { url } = await serve(t, (_, response, nth) => {
    if (nth === 1) {
      response.destroy();
    } else {
      problem(response, 404, 'not_found');
    }
  });
  await client(url).webhooks.delete('w');
  await assert.rejects(client(url).webhooks.delete('w'), (error) => error.is('not_found'));
});

test('readiness is an answer where the market is not ready, too', async (t) => {
  const { url } = await serve(t, (_, response) => {
    json(response, { ready: false, slot: null, reasons: ['the stream is down'] }, 503);
  });
  assert.deepEqual(await client(url).ready(), { ready: false, slot: null, reasons: ['the stream is down'] });
});
