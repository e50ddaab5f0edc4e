// A swap with @solana/kit: by the transaction that the API builds, in every version, and by its instruction.

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
  generateKeyPairSigner,
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

import {
  BASE_FEE,
  guard,
  mints,
  post,
  quote,
  rpcUrl,
  rpcWebSocketUrl,
  untilQuotedFrom,
  walletBytes,
} from './localnet.js';

// What each swap pays for priority at most, lamports.
const PRIORITY_FEE = 20_000;

const rpc = createSolanaRpc(rpcUrl);
const rpcSubscriptions = createSolanaRpcSubscriptions(rpcWebSocketUrl);
const sendAndConfirm = sendAndConfirmTransactionFactory({ rpc, rpcSubscriptions });
const wallet = await createKeyPairSignerFromBytes(walletBytes);

// Smallest units of a mint in all token accounts of a wallet, whichever token program owns the mint.
async function balanceOf(mint, owner = wallet.address) {
  const owned = await rpc
    .getTokenAccountsByOwner(
      owner,
      { mint: address(mint) },
      { commitment: 'confirmed', encoding: 'jsonParsed' },
    )
    .send();
  return owned.value
    .map(({ account }) => BigInt(account.data.parsed.info.tokenAmount.amount))
    .reduce((sum, amount) => sum + amount, 0n);
}

async function lamports(owner = wallet.address) {
  const { value } = await rpc.getBalance(owner, { commitment: 'confirmed' }).send();
  return value;
}

// What a wallet checks before it signs, from the bytes and not from what stands beside them.
function check(answer, version, signers = [wallet.address]) {
  const bytes = Buffer.from(answer.transaction, 'base64');
  assert.equal(bytes.length, answer.size);
  const transaction = getTransactionDecoder().decode(bytes);
  const unsigned = signers.map((signer) => [signer, null]);
  assert.deepEqual(Object.entries(transaction.signatures), unsigned);
  const message = getCompiledTransactionMessageDecoder().decode(transaction.messageBytes);
  assert.equal(message.version, version);
  assert.equal(message.header.numSignerAccounts, signers.length);
  assert.deepEqual(message.staticAccounts.slice(0, signers.length), signers);
  assert.equal(message.lifetimeToken, answer.blockhash);
  return transaction;
}

// Sends what is signed, waits until it is confirmed and quotes know of it, and returns the fee it paid, lamports.
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
      maxSupportedTransactionVersion: 1,
    })
    .send();
  await untilQuotedFrom(Number(landed.slot));
  return landed.meta.fee;
}

function checkReceived(quote, gained) {
  assert.equal(gained, BigInt(quote.outAmount));
  assert.ok(gained >= BigInt(quote.minimumOut));
}

for (const version of [0, 'legacy', 1]) {
  test(`a transaction of version ${version} pays SOL for a token`, async () => {
    const wanted = await quote(mints.SOL, mints.USDL, 700_000_000);
    const answer = await post('/v1/swap/transaction', {
      quote: wanted,
      userPublicKey: wallet.address,
      priorityFeeLamports: PRIORITY_FEE,
      transactionVersion: version,
    });
    const transaction = check(answer, version);
    const before = await balanceOf(mints.USDL);
    const signed = await signTransaction([wallet.keyPair], transaction);
    const fee = await send(signed, answer);
    assert.ok(fee <= BigInt(BASE_FEE + PRIORITY_FEE), `${fee} lamports`);
    checkReceived(wanted, (await balanceOf(mints.USDL)) - before);
  });
}

// Lamports of new accounts that stay with them.
const keptRent = ({ costs }) =>
  costs.rent.filter(({ comesBack }) => !comesBack).reduce((sum, { lamports }) => sum + BigInt(lamports), 0n);

for (const version of [0, 1]) {
  test(`in version ${version} a sponsor pays for a user without SOL, and another wallet receives`, async () => {
    const [user, receiver] = [await generateKeyPairSigner(), await generateKeyPairSigner()];
    const bought = await quote(mints.SOL, mints.USDL, 300_000_000);
    const gift = await post('/v1/swap/transaction', {
      quote: bought,
      userPublicKey: wallet.address,
      receiver: user.address,
      transactionVersion: version,
    });
    await send(await signTransaction([wallet.keyPair], check(gift, version)), gift);
    checkReceived(bought, await balanceOf(mints.USDL, user.address));

    const sold = await quote(mints.USDL, mints.LEVY, bought.outAmount);
    const answer = await post('/v1/swap/transaction', {
      quote: sold,
      userPublicKey: user.address,
      feePayer: wallet.address,
      receiver: receiver.address,
      priorityFeeLamports: PRIORITY_FEE,
      transactionVersion: version,
    });
    const transaction = check(answer, version, [wallet.address, user.address]);
    const [before, levy] = [await lamports(), await balanceOf(mints.LEVY)];
    const fee = await send(await signTransaction([wallet.keyPair, user.keyPair], transaction), answer);
    assert.ok(fee <= BigInt(2 * BASE_FEE + PRIORITY_FEE), `${fee} lamports`);
    assert.equal(before - (await lamports()), fee + keptRent(answer));
    checkReceived(sold, await balanceOf(mints.LEVY, receiver.address));
    assert.equal(await balanceOf(mints.LEVY), levy);
    assert.equal(await balanceOf(mints.USDL, user.address), 0n);
    for (const other of [user, receiver]) {
      assert.equal(await lamports(other.address), 0n);
    }
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
