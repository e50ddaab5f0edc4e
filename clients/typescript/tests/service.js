// A server on the loopback that answers as a test scripts it, and keeps what it was asked.

import { createServer } from 'node:http';

// Starts one. `answer(request, response, nth)` gets the request with its `body` as text.
export async function serve(t, answer) {
  const requests = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) {
      body += chunk;
    }
    requests.push({ method: request.method, url: request.url, headers: request.headers, body });
    await answer(requests.at(-1), response, requests.length);
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${server.address().port}`, requests };
}

export function json(response, value, status = 200, headers = {}) {
  const type = status < 400 ? 'application/json' : 'application/problem+json';
  response.writeHead(status, { 'content-type': type, ...headers });
  response.end(typeof value === 'string' ? value : JSON.stringify(value));
}

export function problem(response, status, code, headers = {}, members = {}) {
  const retryable = status === 429 || status >= 500;
  json(response, { type: 'about:blank', title: code, status, code, detail: 'why', retryable, ...members }, status, headers);
}
