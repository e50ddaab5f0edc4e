// Wallets: those that a browser offers by the Wallet Standard, and on a localnet the demo wallet, signed with in the page.

import { call, element } from './page.js';

const CONNECT = 'standard:connect';
const SIGN = 'solana:signTransaction';
const SIGN_AND_SEND = 'solana:signAndSendTransaction';

// How an Ed25519 private key of 32 bytes begins in PKCS #8.
const PKCS8 = [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

const SIGNATURE_LENGTH = 64;

// Digits of base 58, in which signatures are written.
const DIGITS = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

const hasDemo = () => document.querySelector('meta[name="demo-wallet"]').content !== '';
const chain = () => document.querySelector('meta[name="chain"]').content;

export const fromBase64 = (text) => Uint8Array.from(atob(text), (digit) => digit.charCodeAt(0));
export const toBase64 = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));

// The message of a transaction of the legacy format or version 0: what comes behind the signatures, of which there are fewer
// than 128.
export const messageOf = (bytes) => bytes.subarray(1 + bytes[0] * SIGNATURE_LENGTH);

// A transaction with the signature of its first signer, who of a swap is the only one.
export function withSignature(transaction, signature) {
  const signed = transaction.slice();
  signed.set(signature, 1);
  return signed;
}

export function toBase58(bytes) {
  let text = '';
  for (let number = bytes.reduce((all, byte) => all * 256n + BigInt(byte), 0n); number > 0n; number /= 58n) text = DIGITS[Number(number % 58n)] + text;
  const zeros = bytes.findIndex((byte) => byte !== 0);
  return DIGITS[0].repeat(Math.max(0, zeros)) + text;
}

const offered = new Map();

// What a wallet of the standard is for the page; null where it signs no transactions of Solana. One that hands out what it has
// signed is asked for that, so that what it has changed is shown before it is sent; another one sends by itself.
function adapted(wallet) {
  const features = wallet.features ?? {};
  const signing = features[SIGN] ?? features[SIGN_AND_SEND];
  if (features[CONNECT] === undefined || signing === undefined) return null;
  let account = null;
  const sign = async (transaction) => {
    // A wallet simulates on the chain that it is told, and on one of its own choice else. One that does not know ours still signs.
    const known = account.chains.includes(chain()) ? { chain: chain() } : {};
    const [{ signedTransaction }] = await signing.signTransaction({ account, transaction, ...known });
    return signedTransaction;
  };
  const signAndSend = async (transaction) => {
    if (!account.chains.includes(chain())) throw new Error(`${wallet.name} would send it to another chain: it does not know ${chain()}`);
    const [{ signature }] = await signing.signAndSendTransaction({ account, transaction, chain: chain() });
    return signature;
  };
  return {
    name: wallet.name,
    async connect() {
      const { accounts } = await features[CONNECT].connect();
      account = accounts.find(({ chains }) => chains.some((chain) => chain.startsWith('solana:'))) ?? null;
      if (account === null) throw new Error(`${wallet.name} has shown no account of Solana; allow it one there`);
      return account.address;
    },
    // What it signs: version 0 where it can, the legacy format else.
    version: (signing.supportedTransactionVersions ?? ['legacy']).includes(0) ? 0 : 'legacy',
    ...(signing === features[SIGN] ? { sign } : { signAndSend }),
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
      const signature = await crypto.subtle.sign('Ed25519', key, messageOf(transaction));
      return withSignature(transaction, new Uint8Array(signature));
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
