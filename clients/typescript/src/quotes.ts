/** Quotes: one as of now, or one for every slot in which it changes. */

import { OPERATIONS } from './generated/operations.js';
import type { components, operations } from './generated/schema.js';
import { serverEvents } from './lines.js';
import { ConnectionError } from './problem.js';
import { DEFAULT_IDLE, type StreamOptions, type StreamState, endOf, reopening } from './reopening.js';
import { type CallOptions, type Transport, readAnswer } from './transport.js';

type Schemas = components['schemas'];

/** What is asked of the market. `amount` may be a bigint, a number or a string of digits. */
export type QuoteQuery = operations['getQuote']['parameters']['query'];

/** A quote, and when it is true. */
export type QuoteResponse = Schemas['QuoteResponse'];

/** How a stream of quotes is read. */
export interface QuoteStreamOptions extends StreamOptions {
  /** The slot of a quote that is known already: it is not repeated. */
  readonly after?: bigint;
}

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
  stream(query: QuoteQuery, options: QuoteStreamOptions = {}): AsyncGenerator<QuoteResponse, void, undefined> {
    const state: QuoteStreamState = { last: options.after?.toString(), retry: 0, failures: 0 };
    return reopening(this.#transport, options, state, (signal) => this.#quotes(query, options, state, signal));
  }

  /** The quotes of one connection; returns why it ended. */
  async *#quotes(
    query: QuoteQuery,
    options: QuoteStreamOptions,
    state: QuoteStreamState,
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

/** What a stream of quotes keeps from one connection to the next. */
interface QuoteStreamState extends StreamState {
  last: string | undefined;
}
