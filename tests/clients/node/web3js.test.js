// Swap with @solana/web3.js 1.x: by the transaction of the API, in the versions that it signs, and by its instruction.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  ComputeBudgetProgram,
  Keypair,
  PublicKey,
  Transaction,
  TransactionInstruction,
  TransactionMessage,
  VersionedTransaction,
} from '@solana/web3.js';

import { BASE_FEE, guard, mints, post, quote } from './localnet.js';
import { balanceOf, connection, lamports, sendAndConfirm, wallet } from './web3js.js';

// What each swap pays for priority at most, lamports.
const PRIORITY_FEE = 10_000;

const userPublicKey = wallet.publicKey.toBase58();

// The API's answer for a quote; `more` are fields of the body beside those of every swap here.
function swapTransaction(quote, more = {}) {
  const body = { quote, userPublicKey, priorityFeeLamports: PRIORITY_FEE, ...more };
  return post('/v1/swap/transaction', body);
}

// What a wallet checks before it signs, from the bytes and not from what stands beside them.
function checkVersioned(answer, signers = [userPublicKey]) {
  const bytes = Buffer.from(answer.transaction, 'base64');
  assert.equal(bytes.length, answer.size);
  const transaction = VersionedTransaction.deserialize(bytes);
  const { message } = transaction;
  assert.equal(transaction.version, 0);
  assert.equal(message.header.numRequiredSignatures, signers.length);
  const first = message.staticAccountKeys.slice(0, signers.length);
  assert.deepEqual(first.map(String), signers);
  assert.equal(message.recentBlockhash, answer.blockhash);
  assert.equal(message.addressTableLookups.length, 0);
  assert.ok(transaction.signatures.every((signature) => signature.every((byte) => byte === 0)));
  return transaction;
}

// The wallet gained what was quoted, and thereby what the guard enforced.
function checkReceived(quote, gained) {
  assert.equal(gained, BigInt(quote.outAmount));
  assert.ok(gained >= BigInt(quote.minimumOut));
}

test('a version 0 transaction pays SOL for a token', async () => {
  const wanted = await quote(mints.SOL, mints.USDL, 1_500_000_000);
  const answer = await swapTransaction(wanted);
  assert.deepEqual(answer.quote, wanted);
  const transaction = checkVersioned(answer);
  const [before, lamportsBefore] = [await balanceOf(mints.USDL), await lamports()];
  transaction.sign([wallet]);
  const { fee } = await sendAndConfirm(transaction.serialize(), answer);
  checkReceived(wanted, (await balanceOf(mints.USDL)) - before);
  assert.ok(fee <= BASE_FEE + PRIORITY_FEE, `${fee} lamports`);
  assert.equal(fee, answer.costs.baseFeeLamports + answer.costs.priorityFeeLamports);
  assert.equal(lamportsBefore - (await lamports()), wanted.amountIn + fee);
});

test('a version 0 transaction pays a token for SOL', async () => {
  const wanted = await quote(mints.USDL, mints.SOL, 200_000_000);
  const answer = await swapTransaction(wanted);
  const transaction = checkVersioned(answer);
  const before = await lamports();
  transaction.sign([wallet]);
  const { fee } = await sendAndConfirm(transaction.serialize(), answer);
  checkReceived(wanted, BigInt((await lamports()) - before + fee));
});

// Lamports of new accounts that stay with them.
const keptRent = ({ costs }) =>
  costs.rent.filter(({ comesBack }) => !comesBack).reduce((sum, { lamports }) => sum + lamports, 0);

test('what another wallet receives it swaps at the cost of a sponsor, without any SOL', async () => {
  const user = Keypair.generate();
  const bought = await quote(mints.SOL, mints.USDL, 400_000_000);
  const gift = await swapTransaction(bought, { receiver: user.publicKey.toBase58() });
  const given = checkVersioned(gift);
  const [own, lamportsBefore] = [await balanceOf(mints.USDL), await lamports()];
  given.sign([wallet]);
  const { fee } = await sendAndConfirm(given.serialize(), gift);
  assert.equal(lamportsBefore - (await lamports()), bought.amountIn + fee + keptRent(gift));
  assert.equal(await balanceOf(mints.USDL), own);
  checkReceived(bought, await balanceOf(mints.USDL, user.publicKey));
  assert.equal(await lamports(user.publicKey), 0);

  const sold = await quote(mints.USDL, mints.SOL, bought.outAmount);
  const answer = await swapTransaction(sold, {
    userPublicKey: user.publicKey.toBase58(),
    feePayer: userPublicKey,
  });
  const transaction = checkVersioned(answer, [userPublicKey, user.publicKey.toBase58()]);
  const sponsorBefore = await lamports();
  transaction.sign([wallet, user]);
  const paid = await sendAndConfirm(transaction.serialize(), answer);
  assert.ok(paid.fee <= 2 * BASE_FEE + PRIORITY_FEE, `${paid.fee} lamports`);
  assert.equal(sponsorBefore - (await lamports()), paid.fee + keptRent(answer));
  checkReceived(sold, BigInt(await lamports(user.publicKey)));
  assert.equal(await balanceOf(mints.USDL, user.publicKey), 0n);
});

test('a transaction of version 1 is read, and not signed by this library', async () => {
  const wanted = await quote(mints.SOL, mints.USDL, 100_000_000);
  const answer = await swapTransaction(wanted, { transactionVersion: 1 });
  const transaction = VersionedTransaction.deserialize(Buffer.from(answer.transaction, 'base64'));
  assert.equal(transaction.version, 1);
  assert.equal(transaction.message.staticAccountKeys[0].toBase58(), userPublicKey);
  assert.equal(transaction.message.recentBlockhash, answer.blockhash);
  // Where it signs them one day, they are to be sent here as well.
  assert.throws(() => transaction.sign([wallet]), /version 1 transaction messages is not supported/);
});

test('a legacy transaction buys a Token-2022 token with a transfer fee', async () => {
  const wanted = await quote(mints.USDL, mints.LEVY, 40_000_000);
  const answer = await swapTransaction(wanted, { asLegacyTransaction: true });
  const bytes = Buffer.from(answer.transaction, 'base64');
  assert.equal(bytes.length, answer.size);
  assert.equal(VersionedTransaction.deserialize(bytes).version, 'legacy');

  const transaction = Transaction.from(bytes);
  assert.equal(transaction.feePayer.toBase58(), userPublicKey);
  assert.equal(transaction.recentBlockhash, answer.blockhash);
  assert.deepEqual(
    transaction.signatures.map(({ signature }) => signature),
    [null],
  );
  const message = transaction.serializeMessage();
  const before = await balanceOf(mints.LEVY);
  transaction.sign(wallet);
  // The library puts the message together again when it signs; what was checked is what is sent.
  assert.deepEqual(transaction.serializeMessage(), message);
  await sendAndConfirm(transaction.serialize(), answer);
  checkReceived(wanted, (await balanceOf(mints.LEVY)) - before);
});

// The answer has the library's own names and shapes. What JSON cannot carry is the whole conversion: addresses are
// strings and become `PublicKey` objects, and the integers of `data` become bytes.
function toInstruction({ programId, data }, keys) {
  return new TransactionInstruction({
    programId: new PublicKey(programId),
    keys: keys.map((key) => ({ ...key, pubkey: new PublicKey(key.pubkey) })),
    data: Buffer.from(data),
  });
}

// Puts the swap's instruction into a transaction of the caller's own, version 0 or legacy, and sends it.
async function sendInstruction(instruction, computeUnitLimit, legacy) {
  const { value: latest } = await connection.getLatestBlockhashAndContext('processed');
  const message = new TransactionMessage({
    payerKey: wallet.publicKey,
    recentBlockhash: latest.blockhash,
    instructions: [ComputeBudgetProgram.setComputeUnitLimit({ units: computeUnitLimit }), instruction],
  });
  const compiled = legacy ? message.compileToLegacyMessage() : message.compileToV0Message();
  const transaction = new VersionedTransaction(compiled);
  transaction.sign([wallet]);
  return sendAndConfirm(transaction.serialize(), latest);
}

// The token account that receives must exist when the bare instruction runs: an earlier swap has made it.
async function haveAccountOf(mint) {
  const wanted = await quote(mints.ALFA, mint, 1_000_000_000);
  const answer = await swapTransaction(wanted);
  const transaction = checkVersioned(answer);
  transaction.sign([wallet]);
  await sendAndConfirm(transaction.serialize(), answer);
}

for (const legacy of [false, true]) {
  const version = legacy ? 'legacy' : 'version 0';

  test(`the bare instruction runs in a ${version} transaction of the caller's own`, async () => {
    await haveAccountOf(mints.BETA);
    const wanted = await quote(mints.ALFA, mints.BETA, 25_000_000_000);
    const answer = await post('/v1/swap/instruction', { quote: wanted, userPublicKey });
    assert.deepEqual(answer.quote, wanted);
    assert.equal(answer.instruction.programId, guard);
    // The text and the array are one list.
    assert.deepEqual(JSON.parse(answer.instruction.accounts), answer.keys);

    const before = await balanceOf(mints.BETA);
    const instruction = toInstruction(answer.instruction, answer.keys);
    await sendInstruction(instruction, answer.computeUnitLimit, legacy);
    checkReceived(wanted, (await balanceOf(mints.BETA)) - before);
  });

  test(`the instruction's text of accounts does as well, ${version}`, async () => {
    await haveAccountOf(mints.BETA);
    // Without a pool, the endpoint makes the quote.
    const wish = { inputMint: mints.ALFA, outputMint: mints.BETA, amountIn: 10_000_000_000 };
    const answer = await post('/v1/swap/instruction', { quote: wish, userPublicKey });
    const before = await balanceOf(mints.BETA);
    const keys = JSON.parse(answer.instruction.accounts);
    await sendInstruction(toInstruction(answer.instruction, keys), answer.computeUnitLimit, legacy);
    checkReceived(answer.quote, (await balanceOf(mints.BETA)) - before);
  });
}
