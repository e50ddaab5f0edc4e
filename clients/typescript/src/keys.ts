/** API keys of the installation: who has one with the scope `keys:write` lists, makes and revokes them. */

import type { components } from './generated/schema.js';
import type { CallOptions, Transport } from './transport.js';

type Schemas = components['schemas'];

/** Lists, makes and revokes API keys. */
export class Keys {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Every key, revoked ones included, without their secrets. */
  list(options?: CallOptions): Promise<Schemas['ApiKeyList']> {
    return this.#transport.call('listKeys', {}, options);
  }

  /** Makes a key that may do no more than the caller's own. No other answer shows its secret. */
  create(body: Schemas['NewApiKey'], options?: CallOptions): Promise<Schemas['CreatedApiKey']> {
    return this.#transport.call('createKey', { body }, options);
  }

  /** Revokes a key, at once and for good. Its webhooks are switched off. */
  async revoke(id: string, options?: CallOptions): Promise<void> {
    await this.#transport.call('revokeKey', { path: { id } }, options);
  }
}
