// The chain as @solana/web3.js 1.x shows it: the wallet, its balances, and sending.

import assert from 'node:assert/strict';

import { Connection, Keypair, PublicKey } from '@solana/web3.js';

import { rpcUrl, rpcWebSocketUrl, untilQuotedFrom, walletBytes } from './localnet.js';

export const connection = new Connection(rpcUrl, {
  commitment: 'confirmed',
  wsEndpoint: rpcWebSocketUrl,
});

export const wallet = Keypair.fromSecretKey(walletBytes);

// Smallest units of a mint in all token accounts of a wallet, whichever token program owns the mint.
export async function balanceOf(mint, owner = wallet.publicKey) {
  const owned = await connection.getParsedTokenAccountsByOwner(owner, {
    mint: new PublicKey(mint),
  });
  return owned.value
    .map(({ account }) => BigInt(account.data.parsed.info.tokenAmount.amount))
    .reduce((sum, amount) => sum + amount, 0n);
}

export function lamports(owner = wallet.publicKey) {
  return connection.getBalance(owner);
}

// Sends what is signed, waits until it is confirmed and quotes know of it, and returns its signature and the fee it paid, lamports.
export async function sendAndConfirm(bytes, { blockhash, lastValidBlockHeight }) {
  const signature = await connection.sendRawTransaction(bytes, {
    // Quotes are made at `processed`; preflight at an older commitment would look at an older pool.
    preflightCommitment: 'processed',
  });
  const { value } = await connection.confirmTransaction({ signature, blockhash, lastValidBlockHeight });
  assert.equal(value.err, null);
  const landed = await connection.getTransaction(signature, {
    commitment: 'confirmed',
    maxSupportedTransactionVersion: 1,
  });
  await untilQuotedFrom(landed.slot);
  return { signature, fee: landed.meta.fee };
}
