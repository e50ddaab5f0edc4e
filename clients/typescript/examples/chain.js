// The chain by `@solana/kit`: sends what is signed, and reads balances.

import {
  address,
  assertIsSendableTransaction,
  createSolanaRpc,
  createSolanaRpcSubscriptions,
  getSignatureFromTransaction,
  getTransactionDecoder,
  sendAndConfirmTransactionFactory,
  signTransaction,
} from '@solana/kit';

export class Chain {
  constructor({ rpcUrl, rpcWebSocketUrl }) {
    this.rpc = createSolanaRpc(rpcUrl);
    const rpcSubscriptions = createSolanaRpcSubscriptions(rpcWebSocketUrl);
    this.sendAndConfirm = sendAndConfirmTransactionFactory({ rpc: this.rpc, rpcSubscriptions });
  }

  // Signs the transaction of an answer with the wallets' keys, sends it, and waits until it is confirmed.
  async signAndSend({ transaction, blockhash, lastValidBlockHeight }, wallets) {
    const unsigned = getTransactionDecoder().decode(Buffer.from(transaction, 'base64'));
    const signed = await signTransaction(wallets.map(({ keyPair }) => keyPair), unsigned);
    const sendable = { ...signed, lifetimeConstraint: { blockhash, lastValidBlockHeight } };
    assertIsSendableTransaction(sendable);
    // Quotes are made at `processed`; preflight at an older commitment would look at an older pool.
    await this.sendAndConfirm(sendable, { commitment: 'confirmed', preflightCommitment: 'processed' });
    return getSignatureFromTransaction(signed);
  }

  // Smallest units of a mint that a wallet holds.
  async balance(wallet, mint) {
    const owned = await this.rpc
      .getTokenAccountsByOwner(
        address(wallet),
        { mint: address(mint) },
        { commitment: 'confirmed', encoding: 'jsonParsed' },
      )
      .send();
    return owned.value
      .map(({ account }) => BigInt(account.data.parsed.info.tokenAmount.amount))
      .reduce((sum, amount) => sum + amount, 0n);
  }

  async lamports(wallet) {
    return (await this.rpc.getBalance(address(wallet), { commitment: 'confirmed' }).send()).value;
  }
}
