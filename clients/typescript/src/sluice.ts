/** Client of Sluice: every operation of its API, by resource. */

import type { components } from './generated/schema.js';
import { Keys } from './keys.js';
import { Pools } from './pools.js';
import { Quotes } from './quotes.js';
import { Swaps } from './swaps.js';
import { Transactions } from './transactions.js';
import { type CallOptions, type ClientOptions, Transport } from './transport.js';
import { Webhooks } from './webhook-resource.js';

/** A client of one service. It holds no connection, and need not be closed. */
export class Sluice {
  /** What the exchange pays. */
  readonly quotes: Quotes;
  /** Transactions and instructions under the guard. */
  readonly swaps: Swaps;
  /** Signed swaps on their way to the chain. */
  readonly transactions: Transactions;
  /** Pools and mints as of a slot. */
  readonly pools: Pools;
  /** Subscriptions to what happens on the chain. */
  readonly webhooks: Webhooks;
  /** API keys of the installation, for those who run it. */
  readonly keys: Keys;
  readonly #transport: Transport;

  constructor(options: ClientOptions) {
    this.#transport = new Transport(options);
    this.quotes = new Quotes(this.#transport);
    this.swaps = new Swaps(this.#transport);
    this.transactions = new Transactions(this.#transport);
    this.pools = new Pools(this.#transport);
    this.keys = new Keys(this.#transport);
    this.webhooks = new Webhooks(this.#transport);
  }

  /** What the API key has used, and what it may. */
  usage(options?: CallOptions): Promise<components['schemas']['UsageAnswer']> {
    return this.#transport.call('getUsage', {}, options);
  }

  /** Whether the service is up; throws where it is not. */
  async live(options?: CallOptions): Promise<void> {
    await this.#transport.call('live', {}, options);
  }

  /** Whether the market is ready, and where it is not, what is missing. */
  ready(options?: CallOptions): Promise<components['schemas']['Readiness']> {
    return this.#transport.call('ready', {}, options);
  }
}
