/** Associated token accounts: whether an address is the one of a wallet and a mint (pure). */

import { base58, bytesOfBase58 } from '../base58.js';
import { sha256 } from './sha256.js';

/** The associated token program. */
export const ASSOCIATED_TOKEN = 'ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL';

const MARKER = new TextEncoder().encode('ProgramDerivedAddress');

/**
 * Whether `account` is derived from these for some bump. Only for one of them does the program make an account, and there is
 * no key for any: whoever could use another would have found a second preimage.
 */
export function isAssociated(account: string, wallet: string, tokenProgram: string, mint: string): boolean {
  const [program, ...seeds] = [ASSOCIATED_TOKEN, wallet, tokenProgram, mint].map(bytesOfBase58);
  for (let bump = 255; bump >= 0; bump -= 1) {
    const bytes = [...seeds.flatMap((seed) => [...seed]), bump, ...(program ?? []), ...MARKER];
    if (base58(sha256(Uint8Array.from(bytes))) === account) {
      return true;
    }
  }
  return false;
}
