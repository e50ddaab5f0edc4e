// Somebody's endpoint: keeps what arrives, refuses some of it, and checks signatures as the scheme says.

import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';

// What it answers where it refuses.
export const REFUSAL = 'not today, said the receiver of the tests';

// Listens, and refuses as many as `refused` of what comes first, or until it is told to accept.
export async function receive(refused = 0) {
  const received = [];
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    received.push({ id: request.headers['webhook-id'], headers: request.headers, body: Buffer.concat(chunks).toString() });
    if (received.length <= refused) response.writeHead(500).end(REFUSAL);
    else response.writeHead(204).end();
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    url: `http://127.0.0.1:${server.address().port}/console`,
    received,
    accept: () => {
      refused = 0;
    },
    times: (id) => received.filter((each) => each.id === id).length,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

// Whether one of the signatures of a request is of this secret.
export function isSigned(secret, { headers, body }) {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const mac = createHmac('sha256', key).update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`).digest('base64');
  return headers['webhook-signature'].split(' ').includes(`v1,${mac}`);
}
