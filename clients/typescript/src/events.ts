/** Events of a stream: in a body that goes on, or as messages of a WebSocket. */

import { serverEvents, within } from './lines.js';
import { ConnectionError } from './problem.js';
import { DEFAULT_IDLE, type StreamOptions, type StreamState, endOf } from './reopening.js';
import { type RequestParts, type Target, type Transport, readAnswer } from './transport.js';

/** Of `StreamOptions.idleMs` over a WebSocket. */
const SOCKET_IDLE = 120_000;

/** The most messages that wait to be read. A socket cannot be held back; the newest say what the older ones did. */
const MOST_WAITING = 16;

/** What is read of a stream. */
export interface Reading<Item> {
  readonly target: Target;
  readonly parts: RequestParts;
  /** Name of the events that hold items. */
  readonly event: string;
  /** Whether nothing comes after an item. */
  readonly isLast?: (item: Item) => boolean;
}

interface StreamEvent {
  readonly event: string;
  readonly id?: unknown;
  /** The text of it, or what was read already. */
  readonly data: unknown;
}

/** The items of one connection; returns why it ended, or nothing after the last item. */
export async function* items<Item>(
  transport: Transport,
  reading: Reading<Item>,
  options: StreamOptions,
  state: StreamState,
  signal: AbortSignal,
): AsyncGenerator<Item, Error | undefined, undefined> {
  for await (const { event, id, data } of received(transport, reading, options, state, signal)) {
    const read = (): unknown => (typeof data === 'string' ? readAnswer(data) : data);
    if (event === 'end') {
      return endOf(read());
    }
    if (event === reading.event) {
      state.last = id === undefined ? state.last : String(id);
      state.failures = 0;
      const item = read() as Item;
      yield item;
      if (reading.isLast?.(item)) {
        return undefined;
      }
    }
  }
  return new ConnectionError('the stream was cut');
}

async function* received<Item>(
  transport: Transport,
  { target, parts }: Reading<Item>,
  options: StreamOptions,
  state: StreamState,
  signal: AbortSignal,
): AsyncGenerator<StreamEvent, void, undefined> {
  if (options.over === 'websocket') {
    const query = { ...parts.query, lastEventId: state.last };
    const socket = transport.socket(target, { ...parts, query });
    if (socket !== undefined && (yield* messages(socket, options.idleMs ?? SOCKET_IDLE, signal))) {
      return;
    }
    // No page is told why a WebSocket was refused: what is asked for over HTTP is answered, or refused with a problem.
  }
  const headers: Record<string, string> = { accept: 'text/event-stream' };
  if (state.last !== undefined) {
    headers['last-event-id'] = state.last;
  }
  const response = await transport.open(target, { ...parts, headers }, signal);
  if (response.body === null) {
    throw new ConnectionError('the stream has no body');
  }
  for await (const event of serverEvents(response.body, options.idleMs ?? DEFAULT_IDLE)) {
    state.retry = event.retry ?? state.retry;
    yield event;
  }
}

/** The messages of a WebSocket until it is closed; returns whether it was ever open. */
async function* messages(
  socket: WebSocket,
  idleMs: number,
  signal: AbortSignal,
): AsyncGenerator<StreamEvent, boolean, undefined> {
  const waiting: string[] = [];
  let wasOpen = false;
  let hasEnded = false;
  let wake = (): void => undefined;
  const end = (): void => {
    hasEnded = true;
    wake();
  };
  socket.addEventListener('open', () => {
    wasOpen = true;
  });
  socket.addEventListener('message', ({ data }) => {
    waiting.push(String(data));
    if (waiting.length > MOST_WAITING) {
      waiting.shift();
    }
    wake();
  });
  socket.addEventListener('close', end);
  // Node says no more than this of one that was refused.
  socket.addEventListener('error', end);
  signal.addEventListener('abort', end);
  try {
    for (;;) {
      const text = waiting.shift();
      signal.throwIfAborted();
      if (text !== undefined) {
        yield readAnswer(text) as StreamEvent;
      } else if (hasEnded) {
        return wasOpen;
      } else {
        const woken = new Promise<void>((resolve) => {
          wake = resolve;
        });
        await within(woken, idleMs);
      }
    }
  } finally {
    socket.close();
  }
}
