// Streams over WebSocket: the same items as by server-sent events, also where no WebSocket opens.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as after } from 'node:timers/promises';

import { ProblemError, Sluice, TimeoutError } from '@sluice/client';

import { problem, serve } from './service.js';

const query = { inputMint: 'a', outputMint: 'b', amount: 5n };
const over = 'websocket';
const client = (url, options = {}) => new Sluice({ url, random: () => 0, ...options });
const quote = (slot) => ({ event: 'quote', id: slot, data: { quote: { outAmount: slot }, context: { slot } } });
const end = (code, retryable) => ({
  event: 'end',
  data: { type: 'about:blank', title: code, status: 503, code, detail: 'why', retryable },
});
const unasked = () => assert.fail('asked over HTTP');

test('quotes come as they change, and a lost socket goes on where it was', async (t) => {
  const { url, requests } = await serve(t, unasked, (socket, _, nth) => {
    if (nth === 1) {
      socket.send(quote(4));
      socket.ping('slot 5');
      socket.send(quote(6));
      setTimeout(() => socket.destroy(), 20);
    } else if (nth === 2) {
      socket.send(quote(7));
      socket.send(end('market_not_ready', true));
      socket.close(1013, 'market_not_ready');
    } else {
      socket.send(quote(9));
    }
  });
  const slots = [];
  const lost = [];
  const options = { over, onLost: (reason) => lost.push(reason) };
  for await (const { quote, context } of client(url).quotes.stream(query, options)) {
    assert.equal(quote.outAmount, context.slot);
    slots.push(context.slot);
    if (slots.length === 4) {
      break;
    }
  }
  assert.deepEqual(slots, [4n, 6n, 7n, 9n]);
  const path = '/v1/quote/stream?inputMint=a&outputMint=b&amount=5';
  assert.deepEqual(requests.map(({ url }) => url), [path, `${path}&lastEventId=6`, `${path}&lastEventId=7`]);
  assert.ok(requests.every(({ headers }) => headers.upgrade === 'websocket'));
  assert.equal(lost.length, 2);
  assert.equal(lost[1].code, 'market_not_ready');
});

test('a quote that is known already is named', async (t) => {
  const { url, requests } = await serve(t, unasked, (socket) => socket.send(quote(8)));
  for await (const { context } of client(url).quotes.stream(query, { over, after: 7n })) {
    assert.equal(context.slot, 8n);
    break;
  }
  assert.match(requests[0].url, /&lastEventId=7$/);
});

test('a transaction is followed to its last status, over a lost socket', async (t) => {
  const status = (name) => ({ event: 'status', data: { signature: 's', status: name, commitment: null } });
  const { url, requests } = await serve(t, unasked, (socket, _, nth) => {
    socket.send(status(nth === 1 ? 'sent' : 'confirmed'));
    if (nth === 1) {
      setTimeout(() => socket.destroy(), 20);
    } else {
      socket.send(status('finalized'));
      socket.close(1000, '');
    }
  });
  const names = [];
  for await (const { status } of client(url).transactions.follow('s', { over })) {
    names.push(status);
  }
  assert.deepEqual(names, ['sent', 'confirmed', 'finalized']);
  assert.deepEqual(requests.map(({ url }) => url), ['/v1/transactions/s/stream', '/v1/transactions/s/stream']);
});

test('a problem that asking again cannot mend ends the stream, also where the socket is refused for it', async (t) => {
  const slots = [];
  const read = async (url) => {
    for await (const { context } of client(url).quotes.stream(query, { over })) {
      slots.push(context.slot);
    }
  };
  const ended = await serve(t, unasked, (socket) => {
    socket.send(quote(4));
    socket.send(end('unknown_pool', false));
    socket.close(1008, 'unknown_pool');
  });
  await assert.rejects(read(ended.url), (error) => error instanceof ProblemError && error.is('unknown_pool'));
  assert.deepEqual(slots, [4n]);
  const refused = await serve(t, (_, response) => problem(response, 400, 'missing_field'));
  await assert.rejects(read(refused.url), (error) => error.is('missing_field'));
  assert.equal(refused.requests.length, 2);
});

test('where no socket opens, or the platform has none, quotes come as server-sent events', async (t) => {
  const { url, requests } = await serve(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(`event: quote\nid: 1\ndata: ${JSON.stringify(quote(1).data)}\n\n`);
  });
  const first = async () => {
    for await (const { context } of client(url).quotes.stream(query, { over })) {
      return context.slot;
    }
  };
  assert.equal(await first(), 1n);
  assert.deepEqual(requests.map(({ headers }) => headers.upgrade), ['websocket', undefined]);
  const Known = globalThis.WebSocket;
  t.after(() => {
    globalThis.WebSocket = Known;
  });
  globalThis.WebSocket = undefined;
  assert.equal(await first(), 1n);
  assert.equal(requests.length, 3);
});

test('of what comes while nobody reads the newest is kept', async (t) => {
  const last = 100;
  const { url } = await serve(t, unasked, (socket) => {
    for (let slot = 1; slot <= last; slot += 1) {
      socket.send(quote(slot));
    }
  });
  const slots = [];
  for await (const { context } of client(url).quotes.stream(query, { over })) {
    slots.push(Number(context.slot));
    if (slots.length === 1) {
      await after(500);
    }
    if (slots.at(-1) === last) {
      break;
    }
  }
  assert.ok(slots.length < last / 2, `${slots.length} were kept`);
  assert.deepEqual(slots, slots.toSorted((one, other) => one - other));
});

test('silence is a lost stream', async (t) => {
  const { url, requests } = await serve(t, unasked, (socket, _, nth) => {
    if (nth > 1) {
      socket.send(quote(1));
    }
  });
  const lost = [];
  const options = { over, idleMs: 50, onLost: (reason) => lost.push(reason) };
  for await (const { context } of client(url).quotes.stream(query, options)) {
    assert.equal(context.slot, 1n);
    break;
  }
  assert.ok(lost[0] instanceof TimeoutError);
  assert.ok(requests.length > 1);
});

test('a signal ends the stream and its socket, and so does leaving the loop', async (t) => {
  const sockets = [];
  const { url } = await serve(t, unasked, (socket) => {
    sockets.push(socket);
    socket.send(quote(1));
  });
  const stop = new AbortController();
  const reason = new Error('enough');
  const lost = [];
  const options = { over, signal: stop.signal, onLost: (reason) => lost.push(reason) };
  const read = async () => {
    for await (const _ of client(url).quotes.stream(query, options)) {
      setTimeout(() => stop.abort(reason), 20);
    }
  };
  await assert.rejects(read(), (error) => error === reason);
  assert.deepEqual(lost, []);
  for await (const _ of client(url).quotes.stream(query, { over })) {
    break;
  }
  await Promise.all(sockets.map(({ closed }) => closed));
  assert.equal(sockets.length, 2);
});
