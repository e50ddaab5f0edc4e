/** Quotes: one as of now, or one for every slot in which it changes. */

import { items } from './events.js';
import { OPERATIONS } from './generated/operations.js';
import type { components, operations } from './generated/schema.js';
import { type StreamOptions, type StreamState, reopening } from './reopening.js';
import type { CallOptions, Transport } from './transport.js';

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
    const state: StreamState = { last: options.after?.toString(), retry: 0, failures: 0 };
    const reading = { target: OPERATIONS.streamQuotes, parts: { query }, event: 'quote' };
    return reopening(this.#transport, options, state, (signal) =>
      items<QuoteResponse>(this.#transport, reading, options, state, signal),
    );
  }
}
