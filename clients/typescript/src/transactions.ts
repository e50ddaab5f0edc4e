/** Transactions: signed swaps that the service sends, and what becomes of them. */

import { OPERATIONS } from './generated/operations.js';
import type { components } from './generated/schema.js';
import { serverEvents } from './lines.js';
import { ConnectionError } from './problem.js';
import { DEFAULT_IDLE, type StreamOptions, type StreamState, endOf, reopening } from './reopening.js';
import { type CallOptions, type Transport, readAnswer } from './transport.js';

type Schemas = components['schemas'];

/** A signed transaction, base64, and the last block height at which it can land. */
export type SendRequest = Schemas['SendRequest'];

/** What is known of a transaction. */
export type TransactionStatus = Schemas['TransactionStatus'];

/** A transaction in base64, or the signature of one that has landed. */
export type ExplainRequest = Schemas['ExplainRequest'];

/** What a transaction does, by the service's own reading. */
export type ExplanationResponse = Schemas['ExplanationResponse'];

/** Statuses after which nothing more is expected. One that failed is final with its `commitment`. */
const LAST: ReadonlySet<string> = new Set(['finalized', 'expired', 'unknown']);

/** Sends signed swaps and follows them. */
export class Transactions {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Sends a signed swap to every node of the service, again until it is confirmed or cannot land. Twice is as once. */
  send(body: SendRequest, options?: CallOptions): Promise<TransactionStatus> {
    return this.#transport.call('sendTransaction', { body }, options);
  }

  /** What any transaction does, instruction by instruction, as the service reads it; `explain` asks nobody. */
  explain(body: ExplainRequest, options?: CallOptions): Promise<ExplanationResponse> {
    return this.#transport.call('explainTransaction', { body }, options);
  }

  /** What is known of a transaction that was sent. */
  get(signature: string, options?: CallOptions): Promise<TransactionStatus> {
    return this.#transport.call('getTransaction', { path: { signature } }, options);
  }

  /** What is known of a transaction, and again whenever that changes; the loop ends after the last status. */
  follow(signature: string, options: StreamOptions = {}): AsyncGenerator<TransactionStatus, void, undefined> {
    const state: StreamState = { retry: 0, failures: 0 };
    return reopening(this.#transport, options, state, (signal) => this.#statuses(signature, options, state, signal));
  }

  /** The statuses of one connection; returns why it ended, or nothing after the last status. */
  async *#statuses(
    signature: string,
    options: StreamOptions,
    state: StreamState,
    signal: AbortSignal,
  ): AsyncGenerator<TransactionStatus, Error | undefined, undefined> {
    const parts = { path: { signature }, headers: { accept: 'text/event-stream' } };
    const response = await this.#transport.open(OPERATIONS.streamTransaction, parts, signal);
    if (response.body === null) {
      throw new ConnectionError('the stream has no body');
    }
    for await (const event of serverEvents(response.body, options.idleMs ?? DEFAULT_IDLE)) {
      if (event.event === 'status') {
        state.failures = 0;
        const status = readAnswer(event.data) as TransactionStatus;
        yield status;
        if (LAST.has(status.status) || status.commitment === 'finalized') {
          return undefined;
        }
      } else if (event.event === 'end') {
        return endOf(event.data);
      }
    }
    return new ConnectionError('the stream was cut');
  }
}
