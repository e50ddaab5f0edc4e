/** Quotes: one as of now, or one for every slot in which it changes. */

import { OPERATIONS } from './generated/operations.js';
import type { components, operations } from './generated/schema.js';
import { serverEvents } from './lines.js';
import { ConnectionError, ProblemError, SluiceError, TimeoutError, isProblem } from './problem.js';
import { pauseAfter } from './retry.js';
import { type CallOptions, type Transport, pause, readAnswer } from './transport.js';

type Schemas = components['schemas'];

/** What is asked of the market. `amount` may be a bigint, a number or a string of digits. */
export type QuoteQuery = operations['getQuote']['parameters']['query'];

/** A quote, and when it is true. */
export type QuoteResponse = Schemas['QuoteResponse'];

/** How a stream of quotes is read. */
export interface QuoteStreamOptions {
  /** Ends the stream. */
  readonly signal?: AbortSignal;
  /** The slot of a quote that is known already: it is not repeated. */
  readonly after?: bigint;
  /** Called when the stream is lost; the newest quote may be out of date until the next one comes. */
  readonly onLost?: (reason: Error) => void;
  /** After how much silence a stream counts as lost, milliseconds. Default 40,000: a sign of life comes every 15,000. */
  readonly idleMs?: number;
}

const DEFAULT_IDLE = 40_000;

/** Asks for quotes. */
export class Quotes {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The quote as of now. */
  get(query: QuoteQuery, options?: CallOptions): Promise<QuoteResponse> {
    return this.#transport.call('getQuote', { query }, options);
  }

  /**
   * The quote as of now, and another one whenever it changes, until the loop is left or the signal is aborted. A stream that
   * is lost is opened again, after a growing pause; a problem that asking again cannot mend ends the loop as an error.
   */
  async *stream(query: QuoteQuery, options: QuoteStreamOptions = {}): AsyncGenerator<QuoteResponse, void, undefined> {
    const state: StreamState = { last: options.after?.toString(), retry: 0, failures: 0 };
    for (;;) {
      const ended = new AbortController();
      const abort = (): void => ended.abort(options.signal?.reason);
      options.signal?.throwIfAborted();
      options.signal?.addEventListener('abort', abort, { once: true });
      let reason: Error;
      try {
        reason = yield* this.#quotes(query, options, state, ended.signal);
      } catch (error) {
        options.signal?.throwIfAborted();
        reason = passing(error);
      } finally {
        options.signal?.removeEventListener('abort', abort);
        ended.abort();
      }
      state.failures += 1;
      options.onLost?.(reason);
      const wait = pauseAfter(state.failures, state.retry, this.#transport.random());
      await pause(wait, options.signal);
    }
  }

  /** The quotes of one connection; returns why it ended. */
  async *#quotes(
    query: QuoteQuery,
    options: QuoteStreamOptions,
    state: StreamState,
    signal: AbortSignal,
  ): AsyncGenerator<QuoteResponse, Error, undefined> {
    const headers: Record<string, string> = { accept: 'text/event-stream' };
    if (state.last !== undefined) {
      headers['last-event-id'] = state.last;
    }
    const response = await this.#transport.open(OPERATIONS.streamQuotes, { query, headers }, signal);
    if (response.body === null) {
      throw new ConnectionError('the stream has no body');
    }
    for await (const event of serverEvents(response.body, options.idleMs ?? DEFAULT_IDLE)) {
      state.retry = event.retry ?? state.retry;
      if (event.event === 'quote') {
        state.last = event.id ?? state.last;
        state.failures = 0;
        yield readAnswer(event.data) as QuoteResponse;
      } else if (event.event === 'end') {
        return endOf(event.data);
      }
    }
    return new ConnectionError('the stream was cut');
  }
}

/** What a stream keeps from one connection to the next. */
interface StreamState {
  last: string | undefined;
  retry: number;
  failures: number;
}

function endOf(data: string): Error {
  const problem = readAnswer(data);
  if (!isProblem(problem)) {
    return new ConnectionError(`the stream ended with ${data}`);
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
