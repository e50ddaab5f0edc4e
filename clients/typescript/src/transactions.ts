/** Transactions: signed swaps that the service sends, and what becomes of them. */

import { items } from './events.js';
import { OPERATIONS } from './generated/operations.js';
import type { components } from './generated/schema.js';
import { type StreamOptions, type StreamState, reopening } from './reopening.js';
import type { CallOptions, Transport } from './transport.js';

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
    const state: StreamState = { last: undefined, retry: 0, failures: 0 };
    const isLast = ({ status, commitment }: TransactionStatus): boolean => LAST.has(status) || commitment === 'finalized';
    const reading = { target: OPERATIONS.streamTransaction, parts: { path: { signature } }, event: 'status', isLast };
    return reopening(this.#transport, options, state, (signal) =>
      items(this.#transport, reading, options, state, signal),
    );
  }
}
