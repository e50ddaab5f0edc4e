/** Reopening: opens a lost stream again, after a growing pause, while asking again can help. */

import { stringify } from './json.js';
import { ConnectionError, ProblemError, SluiceError, TimeoutError, isProblem } from './problem.js';
import { pauseAfter } from './retry.js';
import { type Transport, pause } from './transport.js';

/** How a stream is read. */
export interface StreamOptions {
  /** Ends the stream. */
  readonly signal?: AbortSignal;
  /** Called when the stream is lost; what came last may be out of date until the next comes. */
  readonly onLost?: (reason: Error) => void;
  /**
   * After how much silence a stream counts as lost, milliseconds. Default 40,000: a sign of life comes every 15,000. Over a
   * WebSocket, which shows no signs of life to a program, 120,000.
   */
  readonly idleMs?: number;
  /**
   * As server-sent events, the default, or over a WebSocket: a browser has no more than six connections of HTTP/1.1 to a
   * host, and as many WebSockets as it wants. Where none opens, the stream comes as server-sent events.
   */
  readonly over?: 'http' | 'websocket';
}

/** What a stream keeps from one connection to the next. */
export interface StreamState {
  /** The id of the newest event, where the stream has ids. */
  last: string | undefined;
  retry: number;
  failures: number;
}

/** Of `StreamOptions.idleMs`. */
export const DEFAULT_IDLE = 40_000;

/** What each connection yields, one after the other. A connection returns why it ended, or nothing where that was the end. */
export async function* reopening<Item>(
  transport: Transport,
  options: StreamOptions,
  state: StreamState,
  connection: (signal: AbortSignal) => AsyncGenerator<Item, Error | undefined, undefined>,
): AsyncGenerator<Item, void, undefined> {
  for (;;) {
    const ended = new AbortController();
    const abort = (): void => ended.abort(options.signal?.reason);
    options.signal?.throwIfAborted();
    options.signal?.addEventListener('abort', abort, { once: true });
    let reason: Error | undefined;
    try {
      reason = yield* connection(ended.signal);
    } catch (error) {
      options.signal?.throwIfAborted();
      reason = passing(error);
    } finally {
      options.signal?.removeEventListener('abort', abort);
      ended.abort();
    }
    if (reason === undefined) {
      return;
    }
    state.failures += 1;
    options.onLost?.(reason);
    const wait = pauseAfter(state.failures, state.retry, transport.random());
    await pause(wait, options.signal);
  }
}

/** Why a stream ended with this `end`; throws it where asking again cannot help. */
export function endOf(problem: unknown): Error {
  if (!isProblem(problem)) {
    return new ConnectionError(`the stream ended with ${stringify(problem)}`);
  }
  return passing(new ProblemError(problem, undefined, 1));
}

/** The error where asking again may help; throws it where it does not. */
function passing(error: unknown): Error {
  const helps =
    error instanceof ProblemError
      ? error.retryable
      : error instanceof ConnectionError || error instanceof TimeoutError || !(error instanceof SluiceError);
  if (!helps || !(error instanceof Error)) {
    throw error;
  }
  return error;
}
