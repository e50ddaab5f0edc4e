// Wallets: those that a browser offers by the Wallet Standard, and on a localnet the demo wallet, signed with in the page.

import { call, element } from './page.js';

const CONNECT = 'standard:connect';
const SIGN = 'solana:signTransaction';

// How an Ed25519 private key of 32 bytes begins in PKCS #8.
const PKCS8 = [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

const SIGNATURE_LENGTH = 64;

const hasDemo = () => document.querySelector('meta[name="demo-wallet"]').content !== '';
const chain = () => document.querySelector('meta[name="chain"]').content;

export const fromBase64 = (text) => Uint8Array.from(atob(text), (digit) => digit.charCodeAt(0));
export const toBase64 = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));

// The message of a transaction of the legacy format or version 0: what comes behind the signatures, of which there are fewer
// than 128.
export const messageOf = (bytes) => bytes.subarray(1 + bytes[0] * SIGNATURE_LENGTH);

const offered = new Map();

// What a wallet of the standard is for the page; null where it signs no transactions of Solana.
function adapted(wallet) {
  const features = wallet.features ?? {};
  if (features[CONNECT] === undefined || features[SIGN] === undefined) return null;
  let account = null;
  return {
    name: wallet.name,
    async connect() {
      const { accounts } = await features[CONNECT].connect();
      account = accounts.find(({ chains }) => chains.some((chain) => chain.startsWith('solana:'))) ?? null;
      if (account === null) throw new Error(`${wallet.name} has shown no account of Solana; allow it one there`);
      return account.address;
    },
    // What it signs: version 0 where it can, the legacy format else.
    version: (features[SIGN].supportedTransactionVersions ?? ['legacy']).includes(0) ? 0 : 'legacy',
    async sign(transaction) {
      // A wallet simulates on the chain that it is told, and on one of its own choice else. One that does not know ours still signs.
      const known = account.chains.includes(chain()) ? { chain: chain() } : {};
      const [{ signedTransaction }] = await features[SIGN].signTransaction({ account, transaction, ...known });
      return signedTransaction;
    },
  };
}

// The demo wallet's key is known to everybody; the server hands it out on a localnet alone.
function demo() {
  let key = null;
  return {
    name: 'Demo wallet of this localnet',
    version: 0,
    async connect() {
      const { publicKey, privateKey } = await call('/console/demo-wallet');
      const bytes = privateKey.match(/../g).map((pair) => parseInt(pair, 16));
      key = await crypto.subtle.importKey('pkcs8', new Uint8Array([...PKCS8, ...bytes]), 'Ed25519', false, ['sign']);
      return publicKey;
    },
    async sign(transaction) {
      const signed = transaction.slice();
      const signature = await crypto.subtle.sign('Ed25519', key, messageOf(transaction));
      // It is the only signer, so the first place is its own.
      signed.set(new Uint8Array(signature), 1);
      return signed;
    },
  };
}

// Lists wallets in a select as they appear, and answers how the chosen one is found.
export function offer(select) {
  const add = (id, wallet) => {
    if (wallet === null || offered.has(id)) return;
    offered.set(id, wallet);
    select.append(element('option', { value: id }, wallet.name));
    select.disabled = false;
    none?.remove();
  };
  const none = element('option', { value: '' }, 'no wallet in this browser');
  select.append(none);
  select.disabled = true;
  if (hasDemo()) add('demo', demo());
  const register = (...wallets) => {
    for (const wallet of wallets) add(`standard ${wallet.name}`, adapted(wallet));
    return () => {};
  };
  const api = Object.freeze({ register });
  addEventListener('wallet-standard:register-wallet', ({ detail }) => detail(api));
  dispatchEvent(new CustomEvent('wallet-standard:app-ready', { detail: api }));
  return () => {
    const wallet = offered.get(select.value);
    if (wallet === undefined) throw new Error('There is no wallet here: install one that knows the Wallet Standard, and load the page again');
    return wallet;
  };
}
