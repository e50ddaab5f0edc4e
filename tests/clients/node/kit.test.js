// A swap with @solana/kit: by the transaction that the API builds, in both versions, and by its instruction.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  AccountRole,
  address,
  appendTransactionMessageInstruction,
  assertIsSendableTransaction,
  createKeyPairSignerFromBytes,
  createSolanaRpc,
  createSolanaRpcSubscriptions,
  createTransactionMessage,
  getCompiledTransactionMessageDecoder,
  getSignatureFromTransaction,
  getTransactionDecoder,
  pipe,
  sendAndConfirmTransactionFactory,
  setTransactionMessageComputeUnitLimit,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransaction,
  signTransactionMessageWithSigners,
} from '@solana/kit';

import { BASE_FEE, guard, mints, post, quote, rpcUrl, rpcWebSocketUrl, walletBytes } from './localnet.js';

// What each swap pays for priority at most, lamports.
const PRIORITY_FEE = 20_000;

const rpc = createSolanaRpc(rpcUrl);
const rpcSubscriptions = createSolanaRpcSubscriptions(rpcWebSocketUrl);
const sendAndConfirm = sendAndConfirmTransactionFactory({ rpc, rpcSubscriptions });
const wallet = await createKeyPairSignerFromBytes(walletBytes);

// Smallest units of a mint in all token accounts of the wallet, whichever token program owns the mint.
async function balanceOf(mint) {
  const owned = await rpc
    .getTokenAccountsByOwner(
      wallet.address,
      { mint: address(mint) },
      { commitment: 'confirmed', encoding: 'jsonParsed' },
    )
    .send();
  return owned.value
    .map(({ account }) => BigInt(account.data.parsed.info.tokenAmount.amount))
    .reduce((sum, amount) => sum + amount, 0n);
}

// What a wallet checks before it signs, from the bytes and not from what stands beside them.
function check(answer, version) {
  const bytes = Buffer.from(answer.transaction, 'base64');
  assert.equal(bytes.length, answer.size);
  const transaction = getTransactionDecoder().decode(bytes);
  assert.deepEqual(Object.entries(transaction.signatures), [[wallet.address, null]]);
  const message = getCompiledTransactionMessageDecoder().decode(transaction.messageBytes);
  assert.equal(message.version, version);
  assert.equal(message.header.numSignerAccounts, 1);
  assert.equal(message.staticAccounts[0], wallet.address);
  assert.equal(message.lifetimeToken, answer.blockhash);
  return transaction;
}

// Sends what is signed, waits until it is confirmed, and returns the fee it paid, lamports.
async function send(signed, { blockhash, lastValidBlockHeight }) {
  const lifetimeConstraint = { blockhash, lastValidBlockHeight: BigInt(lastValidBlockHeight) };
  const transaction = { ...signed, lifetimeConstraint };
  assertIsSendableTransaction(transaction);
  await sendAndConfirm(transaction, {
    commitment: 'confirmed',
    // Quotes are made at `processed`; preflight at an older commitment would look at an older pool.
    preflightCommitment: 'processed',
  });
  const landed = await rpc
    .getTransaction(getSignatureFromTransaction(signed), {
      commitment: 'confirmed',
      encoding: 'json',
      maxSupportedTransactionVersion: 0,
    })
    .send();
  return landed.meta.fee;
}

function checkReceived(quote, gained) {
  assert.equal(gained, BigInt(quote.outAmount));
  assert.ok(gained >= BigInt(quote.minimumOut));
}

for (const version of [0, 'legacy']) {
  test(`a transaction of version ${version} pays SOL for a token`, async () => {
    const wanted = await quote(mints.SOL, mints.USDL, 700_000_000);
    const answer = await post('/v1/swap/transaction', {
      quote: wanted,
      userPublicKey: wallet.address,
      priorityFeeLamports: PRIORITY_FEE,
      asLegacyTransaction: version === 'legacy',
    });
    const transaction = check(answer, version);
    const before = await balanceOf(mints.USDL);
    const signed = await signTransaction([wallet.keyPair], transaction);
    const fee = await send(signed, answer);
    assert.ok(fee <= BigInt(BASE_FEE + PRIORITY_FEE), `${fee} lamports`);
    checkReceived(wanted, (await balanceOf(mints.USDL)) - before);
  });
}

function role({ isSigner, isWritable }) {
  if (isSigner) {
    return isWritable ? AccountRole.WRITABLE_SIGNER : AccountRole.READONLY_SIGNER;
  }
  return isWritable ? AccountRole.WRITABLE : AccountRole.READONLY;
}

test("the bare instruction runs in a transaction of the caller's own", async () => {
  const wanted = await quote(mints.USDL, mints.LEVY, 30_000_000);
  // The token account that receives must exist when the bare instruction runs: this swap makes it.
  const earlier = await post('/v1/swap/transaction', { quote: wanted, userPublicKey: wallet.address });
  await send(await signTransaction([wallet.keyPair], check(earlier, 0)), earlier);

  const wish = { inputMint: mints.USDL, outputMint: mints.LEVY, amountIn: 15_000_000 };
  const answer = await post('/v1/swap/instruction', { quote: wish, userPublicKey: wallet.address });
  assert.equal(answer.instruction.programId, guard);
  const instruction = {
    programAddress: address(answer.instruction.programId),
    accounts: answer.keys.map((key) => ({ address: address(key.pubkey), role: role(key) })),
    data: Uint8Array.from(answer.instruction.data),
  };
  const { value: latest } = await rpc.getLatestBlockhash({ commitment: 'processed' }).send();
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (message) => setTransactionMessageFeePayerSigner(wallet, message),
    (message) => setTransactionMessageLifetimeUsingBlockhash(latest, message),
    (message) => setTransactionMessageComputeUnitLimit(answer.computeUnitLimit, message),
    (message) => appendTransactionMessageInstruction(instruction, message),
  );
  const before = await balanceOf(mints.LEVY);
  await send(await signTransactionMessageWithSigners(message), latest);
  checkReceived(answer.quote, (await balanceOf(mints.LEVY)) - before);
});
