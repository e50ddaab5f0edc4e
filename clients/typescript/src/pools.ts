/** Pools and mints as of a slot. */

import type { components, operations } from './generated/schema.js';
import type { CallOptions, Transport } from './transport.js';

type Schemas = components['schemas'];

/** A pool with its reserves, price and fees. */
export type Pool = Schemas['Pool'];

/** Reads pools. */
export class Pools {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** All pools, or those of a mint, in the order of their addresses; pages of `limit` are fetched as the loop goes on. */
  async *list(
    query: { readonly mint?: string; readonly limit?: number } = {},
    options?: CallOptions,
  ): AsyncGenerator<Pool, void, undefined> {
    let cursor: string | undefined;
    do {
      const page: Schemas['PoolsResponse'] = await this.page({ ...query, ...(cursor && { cursor }) }, options);
      yield* page.pools;
      cursor = page.cursor ?? undefined;
    } while (cursor !== undefined);
  }

  /** One page of pools, and the slot that it is of. */
  page(
    query: operations['listPools']['parameters']['query'] = {},
    options?: CallOptions,
  ): Promise<Schemas['PoolsResponse']> {
    return this.#transport.call('listPools', { query }, options);
  }

  /** One pool. */
  get(id: string, options?: CallOptions): Promise<Schemas['PoolResponse']> {
    return this.#transport.call('getPool', { path: { id } }, options);
  }

  /** The prices at which transactions landed lately in the accounts of a pool, or of both of two hops. */
  priorityFees(
    query: operations['getPriorityFees']['parameters']['query'],
    options?: CallOptions,
  ): Promise<Schemas['PriorityFeesResponse']> {
    return this.#transport.call('getPriorityFees', { query }, options);
  }

  /** What decides how a mint's token is traded. */
  mint(mint: string, options?: CallOptions): Promise<Schemas['MintResponse']> {
    return this.#transport.call('getMint', { path: { mint } }, options);
  }
}
