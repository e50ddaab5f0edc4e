// A server on the loopback that answers as a test scripts it, and keeps what it was asked.

import { createHash } from 'node:crypto';
import { createServer } from 'node:http';

// Starts one. `answer(request, response, nth)` gets the request with its `body` as text. `answerSocket(socket, request, nth)`
// gets each WebSocket, whose handshake is one of `requests` as well; without it none is opened.
export async function serve(t, answer, answerSocket) {
  const requests = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) {
      body += chunk;
    }
    requests.push({ method: request.method, url: request.url, headers: request.headers, body });
    await answer(requests.at(-1), response, requests.length);
  });
  const sockets = [];
  server.on('upgrade', (request, connection) => {
    requests.push({ method: request.method, url: request.url, headers: request.headers });
    sockets.push(connection);
    connection.on('error', () => undefined);
    if (answerSocket === undefined) {
      connection.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n');
    } else {
      answerSocket(new Socket(connection, request.headers['sec-websocket-key']), request, requests.length);
    }
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  t.after(() => {
    server.closeAllConnections();
    sockets.forEach((socket) => socket.destroy());
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

// Of RFC 6455: what a key is hashed with, and the kinds of frames.
const HANDSHAKE = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const [TEXT, CLOSE, PING] = [0x81, 0x88, 0x89];

// A WebSocket as a server has it. What the client sends is read for its goodbye alone.
class Socket {
  #connection;

  constructor(connection, key) {
    this.#connection = connection;
    const accept = createHash('sha1').update(key + HANDSHAKE).digest('base64');
    const head = ['HTTP/1.1 101 Switching Protocols', 'upgrade: websocket', 'connection: upgrade', `sec-websocket-accept: ${accept}`];
    connection.write(`${head.join('\r\n')}\r\n\r\n`);
    this.closed = new Promise((resolve) => connection.on('close', resolve));
    connection.on('data', (frame) => {
      if (frame[0] === CLOSE) {
        connection.end();
      }
    });
  }

  send(value) {
    this.#write(TEXT, Buffer.from(JSON.stringify(value)));
  }

  ping(words) {
    this.#write(PING, Buffer.from(words));
  }

  close(code, reason) {
    this.#write(CLOSE, Buffer.concat([Buffer.from([code >> 8, code & 255]), Buffer.from(reason)]));
  }

  // As a connection that is lost.
  destroy() {
    this.#connection.destroy();
  }

  #write(kind, bytes) {
    const length = bytes.length < 126 ? [bytes.length] : [126, bytes.length >> 8, bytes.length & 255];
    this.#connection.write(Buffer.concat([Buffer.from([kind, ...length]), bytes]));
  }
}
