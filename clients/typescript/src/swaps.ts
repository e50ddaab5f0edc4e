/** Swaps: transactions that are ready to sign, and bare instructions. */

import type { components } from './generated/schema.js';
import type { CallOptions, NamedCallOptions, Transport } from './transport.js';

type Schemas = components['schemas'];

/** What a swap is asked for with. */
export type SwapRequest = Schemas['SwapRequest'];

/** A transaction to sign, and what it does and costs. */
export type TransactionResponse = Schemas['TransactionResponse'];

/** An instruction, and what its transaction must provide. */
export type InstructionResponse = Schemas['InstructionResponse'];

/** Builds swaps. Nothing is sent to the chain: `Transactions` does that. */
export class Swaps {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** A transaction that is ready to sign. `explain` checks it before. */
  transaction(body: SwapRequest, options: NamedCallOptions = {}): Promise<TransactionResponse> {
    const { idempotencyKey, ...call } = options;
    const headers: Record<string, string> = idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey };
    return this.#transport.call('buildTransaction', { body, headers }, call);
  }

  /**
   * Whether a transaction is the one that the service builds for a body, or where it differs first: for who signs or pays for
   * what another one asked for. `explain` says the same of money without asking the service.
   */
  check(body: Schemas['CheckRequest'], options?: CallOptions): Promise<Schemas['CheckResponse']> {
    return this.#transport.call('checkTransaction', { body }, options);
  }

  /** The bare instruction, for a transaction of the caller's own. */
  instruction(body: SwapRequest, options?: CallOptions): Promise<InstructionResponse> {
    return this.#transport.call('buildInstruction', { body }, options);
  }
}
