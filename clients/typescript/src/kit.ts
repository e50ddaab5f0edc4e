/** Plugin for `@solana/kit`: `createClient().use(sluice({ url }))` has a client of Sluice as `client.sluice`. */

import { Sluice } from './sluice.js';
import type { ClientOptions } from './transport.js';

/** Adds `sluice` to a client of `@solana/kit`. */
export function sluice(options: ClientOptions) {
  return <Client extends object>(client: Client): Client & { readonly sluice: Sluice } => ({
    ...client,
    sluice: new Sluice(options),
  });
}
