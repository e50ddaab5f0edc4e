// Wallets of the Wallet Standard in a page: they sign with the demo wallet's key, and change, send or know less where a test says so.

import assert from 'node:assert/strict';

export const NAME = 'Test wallet';

// Runs in the page before its scripts, so all that it needs is in here.
function register({ name, publicKey, privateKey, change, chains, feature }) {
  const PKCS8 = [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
  const hex = (text) => text.match(/../g).map((pair) => parseInt(pair, 16));
  const account = { address: publicKey, chains, features: [feature], publicKey: new Uint8Array(32) };
  const changed = {
    none: (bytes) => bytes,
    // Of what a compute unit is paid with: no account, and nine bytes of data that begin with 3.
    price: (bytes) => {
      const at = bytes.findIndex((byte, index) => byte === 0 && bytes[index + 1] === 9 && bytes[index + 2] === 3);
      bytes[at + 3] ^= 1;
      return bytes;
    },
    // The last instruction, so that the guard would not know it.
    instruction: (bytes) => {
      bytes[bytes.length - 2] ^= 1;
      return bytes;
    },
  }[change];
  const sign = async ({ transaction, chain }) => {
    if (chain !== 'solana:localnet') throw new Error(`asked to sign for ${chain}`);
    globalThis.askedOfWallet = (globalThis.askedOfWallet ?? 0) + 1;
    const signed = changed(transaction.slice());
    const key = await crypto.subtle.importKey('pkcs8', new Uint8Array([...PKCS8, ...hex(privateKey)]), 'Ed25519', false, ['sign']);
    const signature = new Uint8Array(await crypto.subtle.sign('Ed25519', key, signed.subarray(1 + signed[0] * 64)));
    signed.set(signature, 1);
    return { signed, signature };
  };
  const features = {
    'solana:signTransaction': { signTransaction: async (asked) => [{ signedTransaction: (await sign(asked)).signed }] },
    'solana:signAndSendTransaction': {
      signAndSendTransaction: async (asked) => {
        const { signed, signature } = await sign(asked);
        await globalThis.sendToNode(btoa(String.fromCharCode(...signed)));
        return [{ signature }];
      },
    },
  };
  const wallet = {
    version: '1.0.0',
    name,
    icon: 'data:image/svg+xml,',
    chains,
    accounts: [],
    features: {
      'standard:connect': { version: '1.0.0', connect: async () => ({ accounts: [account] }) },
      [feature]: { version: '1.0.0', supportedTransactionVersions: ['legacy', 0], ...features[feature] },
    },
  };
  // Both ways: to a page that is there already, and to one that asks later.
  const add = ({ register: take }) => take(wallet);
  addEventListener('wallet-standard:app-ready', ({ detail }) => add(detail));
  dispatchEvent(new CustomEvent('wallet-standard:register-wallet', { detail: add }));
}

// Sends to the node as a wallet's own service does, and answers the signature.
async function sendToNode(transaction) {
  const body = { jsonrpc: '2.0', id: 1, method: 'sendTransaction', params: [transaction, { encoding: 'base64', skipPreflight: true }] };
  const answer = await fetch(process.env.SLUICE_RPC_URL, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  const { result, error } = await answer.json();
  assert.equal(error, undefined, JSON.stringify(error));
  return result;
}

// Puts such a wallet into the page, loads the playground, and chooses the wallet there. Answers the signatures of what it sends itself.
export async function openWithWallet(page, { change = 'none', chains = ['solana:localnet'], feature = 'solana:signTransaction' } = {}) {
  const { publicKey, privateKey } = await (await page.request.get('/console/demo-wallet')).json();
  const sent = [];
  await page.exposeFunction('sendToNode', async (transaction) => {
    sent.push(await sendToNode(transaction));
  });
  await page.addInitScript(register, { name: NAME, publicKey, privateKey, change, chains, feature });
  await page.goto('/console/swap');
  const names = page.locator('#wallet option');
  await names.nth(1).waitFor({ state: 'attached' });
  assert.deepEqual(await names.allTextContents(), ['Demo wallet of this localnet', NAME]);
  await page.locator('#wallet').selectOption({ label: NAME });
  return sent;
}

// How often the page has asked it to sign.
export const timesAsked = (page) => page.evaluate(() => globalThis.askedOfWallet ?? 0);
