/** Lines of a body that goes on: as they are, or read as server-sent events. */

import { ConnectionError, TimeoutError } from './problem.js';

/** The longest line that is read, characters. An event of a webhook may hold an account of 10 MiB in base64. */
const LONGEST_LINE = 32 * 1024 * 1024;

/** A server-sent event; `comment` is what keeps an idle stream alive. */
export interface ServerEvent {
  readonly event: string;
  readonly data: string;
  /** The newest id that the stream has named. */
  readonly id: string | undefined;
  /** After how long to connect again, milliseconds, where the stream names it. */
  readonly retry: number | undefined;
}

/**
 * The lines of a body. Throws a TimeoutError when nothing comes for `idleMs`; leaving the loop ends the body.
 */
export async function* lines(body: ReadableStream<Uint8Array>, idleMs: number): AsyncGenerator<string, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await within(reader.read(), idleMs);
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      // A carriage return at the end may be the first half of a line break.
      const whole = done || !rest.endsWith('\r') ? rest : rest.slice(0, -1);
      const parts = whole.split(/\r\n|\n|\r/);
      rest = (parts.pop() ?? '') + rest.slice(whole.length);
      if (rest.length > LONGEST_LINE) {
        throw new ConnectionError(`a line of the stream is longer than ${LONGEST_LINE} characters`);
      }
      yield* parts;
      if (done) {
        return;
      }
    }
  } finally {
    // Not waited for: a peer that has gone silent would not answer.
    reader.cancel().catch(() => undefined);
  }
}

/** The events of a stream, each when it is whole. */
export async function* serverEvents(
  body: ReadableStream<Uint8Array>,
  idleMs: number,
): AsyncGenerator<ServerEvent, void, undefined> {
  let id: string | undefined;
  let retry: number | undefined;
  let event = '';
  let data: string[] = [];
  for await (const line of lines(body, idleMs)) {
    if (line === '') {
      if (data.length > 0) {
        yield { event: event || 'message', data: data.join('\n'), id, retry };
      }
      event = '';
      data = [];
      continue;
    }
    const [, field = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (field === 'event') {
      event = value;
    } else if (field === 'data') {
      data.push(value);
    } else if (field === 'id' && !value.includes('\0')) {
      id = value;
    } else if (field === 'retry' && /^\d+$/.test(value)) {
      retry = Number(value);
    }
  }
}

/** Waits no longer than this. */
export function within<Value>(promise: Promise<Value>, milliseconds: number): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new TimeoutError(`the stream has been silent for ${milliseconds} ms`));
    }, milliseconds);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
