// Streams and pages: quotes by server-sent events, messages by lines, lists by cursors.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ProblemError, Sluice, TimeoutError } from '@sluice/client';

import { json, problem, serve } from './service.js';

const query = { inputMint: 'a', outputMint: 'b', amount: 5n };
const client = (url, options = {}) => new Sluice({ url, random: () => 0, ...options });
const event = (slot) => `event: quote\nid: ${slot}\ndata: {"quote":{"outAmount":${slot}},"context":{"slot":${slot}}}\n\n`;
const end = (code, retryable) => {
  const body = { type: 'about:blank', title: code, status: 503, code, detail: 'why', retryable };
  return `event: end\ndata: ${JSON.stringify(body)}\n\n`;
};
const stream = (response) => response.writeHead(200, { 'content-type': 'text/event-stream' });

test('quotes come as they change, and a lost stream goes on where it was', async (t) => {
  const { url, requests } = await serve(t, (_, response, nth) => {
    stream(response);
    if (nth === 1) {
      response.write('retry: 1\n\n: slot 3\n\n');
      // In pieces, in the middle of a character of a line break and of a word.
      for (const piece of [event(4).slice(0, 9), event(4).slice(9), event(6).replaceAll('\n', '\r\n').slice(0, -1)]) {
        response.write(piece);
      }
      response.write('\n');
      setTimeout(() => response.destroy(), 20);
    } else if (nth === 2) {
      response.end(event(7) + end('market_not_ready', true));
    } else {
      response.write(event(9));
    }
  });
  const slots = [];
  const lost = [];
  for await (const { quote, context } of client(url).quotes.stream(query, { onLost: (reason) => lost.push(reason) })) {
    assert.equal(quote.outAmount, context.slot);
    slots.push(context.slot);
    if (slots.length === 4) {
      break;
    }
  }
  assert.deepEqual(slots, [4n, 6n, 7n, 9n]);
  assert.deepEqual(requests.map(({ headers }) => headers['last-event-id']), [undefined, '6', '7']);
  assert.equal(requests[0].url, '/v1/quote/stream?inputMint=a&outputMint=b&amount=5');
  assert.equal(requests[0].headers.accept, 'text/event-stream');
  assert.equal(lost.length, 2);
  assert.equal(lost[1].code, 'market_not_ready');
});

test('a transaction is followed to its last status, over a lost stream', async (t) => {
  const status = (name) =>
    `event: status\ndata: {"signature":"s","status":"${name}","commitment":null,"received":9007199254740993}\n\n`;
  const { url, requests } = await serve(t, (_, response, nth) => {
    stream(response);
    if (nth === 1) {
      response.write(': it stands\n\n' + status('sent'));
      setTimeout(() => response.destroy(), 20);
    } else if (nth === 2) {
      response.end(status('processed') + end('stopping', true));
    } else {
      response.write(status('confirmed') + status('finalized'));
    }
  });
  const names = [];
  for await (const { status, received } of client(url).transactions.follow('s')) {
    assert.equal(received, 9007199254740993n);
    names.push(status);
  }
  assert.deepEqual(names, ['sent', 'processed', 'confirmed', 'finalized']);
  assert.equal(requests.length, 3);
  assert.equal(requests[0].url, '/v1/transactions/s/stream');
});

test('a problem that asking again cannot mend ends the stream', async (t) => {
  const ended = await serve(t, (_, response) => {
    stream(response);
    response.end(event(4) + end('unknown_pool', false));
  });
  const slots = [];
  const read = async (url) => {
    for await (const { context } of client(url).quotes.stream(query)) {
      slots.push(context.slot);
    }
  };
  await assert.rejects(read(ended.url), (error) => error instanceof ProblemError && error.is('unknown_pool'));
  assert.deepEqual(slots, [4n]);
  const refused = await serve(t, (_, response) => problem(response, 400, 'missing_field'));
  await assert.rejects(read(refused.url), (error) => error.is('missing_field'));
  assert.equal(refused.requests.length, 1);
});

test('a stream that is refused for now is asked for again', async (t) => {
  const { url } = await serve(t, (_, response, nth) => {
    if (nth < 3) {
      problem(response, 503, 'market_not_ready');
    } else {
      stream(response).write(event(1));
    }
  });
  for await (const { context } of client(url).quotes.stream(query)) {
    assert.equal(context.slot, 1n);
    break;
  }
});

test('silence is a lost stream', async (t) => {
  const { url, requests } = await serve(t, (_, response, nth) => {
    stream(response).write(nth === 1 ? 'retry: 1\n\n' : event(1));
  });
  const lost = [];
  const options = { idleMs: 30, onLost: (reason) => lost.push(reason) };
  for await (const { context } of client(url).quotes.stream(query, options)) {
    assert.equal(context.slot, 1n);
    break;
  }
  assert.ok(lost[0] instanceof TimeoutError);
  assert.equal(requests.length, 2);
});

test('a signal ends a stream, whether it waits for an event or to connect again', async (t) => {
  const reason = new Error('enough');
  for (const answer of [(_, response) => stream(response).write(event(1)), (_, response) => problem(response, 503, 'internal')]) {
    const { url } = await serve(t, answer);
    const stop = new AbortController();
    setTimeout(() => stop.abort(reason), 30);
    const read = async () => {
      for await (const _ of client(url, { random: () => 1 }).quotes.stream(query, { signal: stop.signal }));
    };
    await assert.rejects(read(), (error) => error === reason);
  }
});

test('leaving the loop ends the connection', async (t) => {
  const closed = Promise.withResolvers?.() ?? resolvers();
  const { url } = await serve(t, (_, response) => {
    response.on('close', closed.resolve);
    stream(response).write(event(1));
  });
  for await (const _ of client(url).quotes.stream(query)) {
    break;
  }
  await closed.promise;
});

function resolvers() {
  const made = {};
  made.promise = new Promise((resolve) => {
    made.resolve = resolve;
  });
  return made;
}

test('messages of a temporary webhook come line by line', async (t) => {
  const { url } = await serve(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    response.end('{"id":"m1","sequence":1,"type":"gap","attempt":1,"body":"{}"}\n\n{"id":"m2","sequence":2}\n');
  });
  const found = [];
  for await (const { id, sequence } of client(url).webhooks.stream('w')) {
    found.push([id, sequence]);
  }
  assert.deepEqual(found, [['m1', 1n], ['m2', 2n]]);
});

test('events are listed page by page up to the newest, with exact integers', async (t) => {
  const { url, requests } = await serve(t, (request, response) => {
    const after = Number(new URL(request.url, 'http://x').searchParams.get('after'));
    const events = [after + 1, after + 2].filter((n) => n <= 5).map((n) => ({ id: `m${n}`, body: { sequence: n, data: { u8: 3 } } }));
    json(response, { events, lastSequence: 5, oldestKept: 1 });
  });
  const found = [];
  for await (const { body } of client(url).webhooks.events('w', { after: 0n, limit: 2 })) {
    assert.deepEqual(body.data, { u8: 3n });
    found.push(body.sequence);
  }
  assert.deepEqual(found, [1n, 2n, 3n, 4n, 5n]);
  assert.deepEqual(requests.map(({ url }) => url.split('?')[1]), ['after=0&limit=2', 'after=2&limit=2', 'after=4&limit=2']);
});

test('lists go on from cursor to cursor', async (t) => {
  const { url, requests } = await serve(t, (request, response) => {
    const last = request.url.includes('cursor=c');
    const cursor = last ? null : 'c';
    json(response, { pools: [{ pool: last ? 'q' : 'p' }], webhooks: [{ id: last ? 'b' : 'a' }], deliveries: [], cursor, nextCursor: cursor });
  });
  const pools = [];
  for await (const { pool } of client(url).pools.list({ mint: 'm' })) {
    pools.push(pool);
  }
  const ids = [];
  for await (const { id } of client(url).webhooks.list()) {
    ids.push(id);
  }
  for await (const _ of client(url).webhooks.deliveries('w', { state: 'failed' }));
  assert.deepEqual([pools, ids], [['p', 'q'], ['a', 'b']]);
  assert.equal(requests[1].url, '/v1/pools?mint=m&cursor=c');
  assert.equal(requests.at(-1).url, '/api/webhooks/w/deliveries?state=failed&cursor=c');
});
