// A receiver of webhooks: verifies each delivery, answers at once, and handles every message once.

import { createServer } from 'node:http';

import { VerificationError, webhooks } from '@sluice/client';

// The most bytes of a body that are read: an account of 10 MiB is 14 MiB in base64.
const MOST_BYTES = 32 * 1024 * 1024;

export function receiver({ secret, handle }) {
  const handled = new Set();
  return createServer(async (request, response) => {
    try {
      const body = await bytesOf(request);
      const { id, message } = await webhooks.verify(body, request.headers, secret());
      response.writeHead(204).end();
      // A delivery may come twice, always under the same id. A real receiver keeps the ids in its database.
      if (!handled.has(id)) {
        handled.add(id);
        handle(message, id);
      }
    } catch (error) {
      response.writeHead(error instanceof VerificationError ? 400 : 500).end();
    }
  });
}

async function bytesOf(request) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > MOST_BYTES) {
      throw new VerificationError('the body is too long');
    }
  }
  return Buffer.concat(chunks);
}
