// Explanation of transactions: those that the service builds are as quoted, and no tampered one is.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';

import { getCompiledTransactionMessageDecoder, getTransactionDecoder } from '@solana/kit';
import { EXCHANGE, GUARD, decodeTransaction, explain } from '@sluice/client';

// Inside the package, where no caller reaches it.
import { sha256 } from '../dist/explain/sha256.js';
import { encode, lookupTables, transactions } from './transactions.js';

const ATTACKER = 'AttackerAttackerAttackerAttackerAttackerAtt';
const SYSTEM = '11111111111111111111111111111111';
const SPL_TOKEN = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
const options = { lookupTables };

const u64 = (value) => [...new Uint8Array(new BigUint64Array([value]).buffer)];
const signs = (address) => ({ address, isSigner: true, isWritable: true });
const writes = (address) => ({ address, isSigner: false, isWritable: true });

const decodings = new Map();

function read(transaction) {
  const decoded = decodings.get(transaction) ?? decodeTransaction(transaction, lookupTables);
  decodings.set(transaction, decoded);
  return decoded;
}

// Whether what `change` makes of a transaction's instructions is still called as quoted.
function passes({ transaction, request }, change) {
  const decoded = read(transaction);
  const instructions = decoded.instructions.map(({ program, accounts, data }) => ({
    program,
    accounts: [...accounts],
    data: [...data],
  }));
  const bytes = encode({ ...decoded, instructions: change(instructions) ?? instructions });
  return explain(bytes, { request }, options).isAsQuoted;
}

test('every transaction that the service builds is as quoted', () => {
  assert.equal(transactions.length, 64);
  for (const { name, transaction, request, names, wrapped, priorityFee, platformFee } of transactions) {
    const found = explain(transaction, { request }, options);
    assert.deepEqual(found.faults, [], name);
    assert.ok(found.isAsQuoted);
    assert.deepEqual(found.steps.map((step) => step.name), names, name);
    assert.equal(found.wrapped, BigInt(wrapped), name);
    assert.equal(found.fee, BigInt(priorityFee) + 5_000n * BigInt(found.signers.length), name);
    assert.equal(found.platformFee, BigInt(platformFee), name);
    assert.equal(found.swap.amountIn + found.platformFee, request.quote.amountIn, name);
    assert.ok(passes({ transaction, request }, () => undefined), `${name}, encoded again`);
  }
});

test('on another cluster the exchange is the one that the caller names', () => {
  const elsewhere = 'DRaycpLY18LhpbydsBWbVJtxpNv9oXPgjRSfpF2bWpYb';
  const [{ transaction, request }] = transactions;
  const faults = (exchange) => explain(transaction, { request, exchange }, options).faults;
  assert.deepEqual(faults(EXCHANGE), []);
  assert.deepEqual(faults(undefined), []);
  assert.deepEqual(faults(elsewhere).map(({ code }) => code), ['notAsQuoted']);
});

// The instructions of a message of @solana/kit, which has other names for those of version 1.
function compiledInstructions({ instructions = [], instructionHeaders = [], instructionPayloads = [] }) {
  const earlier = instructions.map(({ programAddressIndex, accountIndices = [], data = [] }) => ({
    program: programAddressIndex,
    accounts: accountIndices,
    data,
  }));
  const later = instructionHeaders.map(({ programAccountIndex }, index) => ({
    program: programAccountIndex,
    accounts: instructionPayloads[index].instructionAccountIndices,
    data: instructionPayloads[index].instructionData,
  }));
  return [...earlier, ...later];
}

test('transactions are decoded as @solana/kit decodes them', () => {
  const versions = new Set();
  for (const { name, transaction } of transactions) {
    const ours = decodeTransaction(transaction, lookupTables);
    versions.add(ours.version);
    const { messageBytes, signatures } = getTransactionDecoder().decode(Buffer.from(transaction, 'base64'));
    const theirs = getCompiledTransactionMessageDecoder().decode(messageBytes);
    assert.equal(ours.version, theirs.version, name);
    assert.deepEqual(ours.signers, Object.keys(signatures), name);
    assert.equal(ours.blockhash, theirs.lifetimeToken, name);
    const looked = (theirs.addressTableLookups ?? []).flatMap((table) => [
      ...table.writableIndexes.map((index) => lookupTables[table.lookupTableAddress][index]),
      ...table.readonlyIndexes.map((index) => lookupTables[table.lookupTableAddress][index]),
    ]);
    const keys = [...theirs.staticAccounts, ...looked];
    const instructions = compiledInstructions(theirs).map(({ program, accounts, data }) => ({
      program: keys[program],
      accounts: accounts.map((index) => keys[index]),
      data: [...data],
    }));
    const flat = ours.instructions.map(({ program, accounts, data }) => ({
      program,
      accounts: accounts.map(({ address }) => address),
      data: [...data],
    }));
    assert.deepEqual(flat, instructions, name);
  }
  assert.deepEqual([...versions].sort(), [0, 1, 'legacy']);
});

test('the fee that version 1 states is compared too', () => {
  const entries = transactions.filter(({ names }) => !names.includes('setComputeUnitPrice'));
  assert.equal(entries.length, 8);
  for (const { transaction, request } of entries) {
    const lower = { ...request, priorityFeeLamports: request.priorityFeeLamports - 1 };
    const { faults } = explain(transaction, { request: lower }, options);
    assert.deepEqual(faults.map(({ code }) => code), ['feeTooHigh']);
  }
});

test('every other amount, pool, mint, wallet or destination than was agreed is a fault', () => {
  const other = {
    userPublicKey: ATTACKER,
    feePayer: ATTACKER,
    receiver: ATTACKER,
    swapMode: (request) => (request.swapMode ? undefined : 'ExactOut'),
    expirySlot: '999',
    priorityFeeLamports: 1,
    platformFeeBps: 51,
    feeWallet: (request) => (request.feeWallet ? ATTACKER : undefined),
  };
  const otherQuote = { amountIn: 5n, pool: ATTACKER, inputMint: ATTACKER, outputMint: ATTACKER };
  for (const { name, transaction, request } of transactions) {
    const fails = (what, changed) => {
      const { isAsQuoted, faults } = explain(transaction, { request: changed }, options);
      assert.ok(!isAsQuoted && faults.length > 0, `${name}: ${what}`);
    };
    for (const [field, value] of Object.entries(other)) {
      const changed = typeof value === 'function' ? value(request) : value;
      if (changed !== request[field]) {
        fails(field, { ...request, [field]: changed });
      }
    }
    for (const [field, value] of Object.entries(otherQuote)) {
      fails(field, { ...request, quote: { ...request.quote, [field]: value } });
    }
    const bound = request.swapMode ? 'outAmount' : 'minimumOut';
    fails(bound, { ...request, quote: { ...request.quote, [bound]: request.quote[bound] + 1n } });
  }
});

test('an instruction that a swap does not need is a fault, wherever it stands', () => {
  for (const entry of transactions) {
    const user = entry.request.userPublicKey;
    const swap = explain(entry.transaction, entry, options).swap;
    const token = (data, ...accounts) => ({ program: SPL_TOKEN, accounts, data });
    const system = (data, ...accounts) => ({ program: SYSTEM, accounts, data });
    const input = writes(swap.inputTokenAccount);
    const output = writes(swap.outputTokenAccount);
    const strangers = {
      'transfer of SOL': system([2, 0, 0, 0, ...u64(1n)], signs(user), writes(ATTACKER)),
      'wrapping more': system([2, 0, 0, 0, ...u64(1n << 63n)], signs(user), input),
      assignment: system([1, 0, 0, 0, ...new Uint8Array(32)], signs(user)),
      'transfer of tokens': token([3, ...u64(1n)], output, writes(ATTACKER), signs(user)),
      'checked transfer': token([12, ...u64(1n), 6], output, writes(swap.outputMint), writes(ATTACKER), signs(user)),
      approval: token([4, ...u64(1n)], output, writes(ATTACKER), signs(user)),
      'change of owner': token([6, 2, 1, ...new Uint8Array(32)], output, signs(user)),
      'closing to another': token([9], output, writes(ATTACKER), signs(user)),
      'closing of another account': token([9], writes(ATTACKER), writes(user), signs(user)),
      'unwrapping to another': token([45, 0], output, writes(ATTACKER), signs(user)),
      burning: token([8, ...u64(1n)], output, writes(swap.outputMint), signs(user)),
      batch: token([255, 3, 9, ...[3, ...u64(1n)]], output, writes(ATTACKER), signs(user)),
      'another program': { program: ATTACKER, accounts: [signs(user)], data: [] },
    };
    for (const [what, stranger] of Object.entries(strangers)) {
      const last = entry.names.length;
      for (const at of [0, swap.instruction, swap.instruction + 1, last]) {
        const passed = passes(entry, (instructions) => instructions.toSpliced(at, 0, stranger));
        assert.ok(!passed, `${entry.name}: ${what} at ${at}`);
      }
    }
    assert.ok(!passes(entry, (instructions) => [...instructions, instructions[swap.instruction]]), 'two swaps');
    assert.ok(!passes(entry, (instructions) => instructions.toSpliced(swap.instruction, 1)), 'no swap');
  }
});

// Accounts of the guard's instruction that the exchange derives or finds in the pool, and refuses otherwise.
const PINNED = /authority|amm_config|vault|token_program|observation_state|middle_mint|token_account/;

test('an account in the place of another is a fault, but where a program refuses it', () => {
  let tried = 0;
  for (const entry of transactions) {
    const { swap } = explain(entry.transaction, entry, options);
    const { instructions } = decodeTransaction(entry.transaction, lookupTables);
    instructions.forEach(({ program, accounts }, index) => {
      accounts.forEach(({ address }, position) => {
        const passed = passes(entry, (changed) => {
          changed[index].accounts[position] = writes(ATTACKER);
        });
        tried += 1;
        const role = program === GUARD ? Object.keys(swap.accounts)[position] : `${entry.names[index]} ${position}`;
        // An associated account is derived from the owner and the mint, which are checked.
        const isRefused = program === GUARD ? PINNED.test(role) : role === 'createTokenAccount 1';
        assert.ok(!passed || isRefused, `${entry.name}: ${role} was ${address}`);
      });
    });
  }
  assert.ok(tried > 1_000, `${tried} accounts`);
});

test('every changed byte of the swap is a fault', () => {
  for (const entry of transactions) {
    const { swap } = explain(entry.transaction, entry, options);
    for (let byte = 0; byte < (swap.receiver === undefined ? 32 : 64); byte += 1) {
      const passed = passes(entry, (instructions) => {
        instructions[swap.instruction].data[byte] ^= 1 << byte % 8;
      });
      assert.ok(!passed, `${entry.name}: byte ${byte}`);
    }
  }
});

// The first account of an instruction.
function entryAccount({ transaction }, index) {
  return decodeTransaction(transaction, lookupTables).instructions[index].accounts[0]?.address;
}

test('the platform gets what was agreed, at its own address, once', () => {
  const paying = transactions.filter(({ names }) => names.includes('payPlatformFee'));
  assert.equal(paying.length, 16);
  for (const entry of paying) {
    const index = entry.names.indexOf('payPlatformFee');
    const amountAt = (data) => (data[0] === 12 ? 1 : 4);
    assert.ok(!passes(entry, (instructions) => instructions.toSpliced(index, 1)), 'not paid');
    assert.ok(!passes(entry, (instructions) => instructions.toSpliced(index, 0, instructions[index])), 'paid twice');
    for (const by of [1, 255]) {
      const passed = passes(entry, (instructions) => {
        const { data } = instructions[index];
        data[amountAt(data)] = (data[amountAt(data)] + by) % 256;
      });
      assert.ok(!passed, `${entry.name}: another amount`);
    }
  }
});

test('hashes are those of the platform', () => {
  for (let length = 0; length < 200; length += 1) {
    const bytes = Uint8Array.from({ length }, (_, at) => (at * 31 + length) % 256);
    assert.deepEqual(Buffer.from(sha256(bytes)), createHash('sha256').update(bytes).digest());
  }
});

test('what comes back comes back after the swap, whole, and from accounts of this transaction alone', () => {
  let moved = 0;
  for (const entry of transactions) {
    const { swap } = explain(entry.transaction, entry, options);
    entry.names.forEach((name, index) => {
      if (name === 'unwrapSol' || name === 'closeTokenAccount') {
        moved += 1;
        const early = (instructions) => {
          const [step] = instructions.splice(index, 1);
          instructions.splice(swap.instruction, 0, step);
        };
        assert.ok(!passes(entry, early), `${entry.name}: ${name} before the swap`);
      }
      // Of an exact input nothing is left but the rent, which may stay.
      const account = entryAccount(entry, index);
      const holdsMoney = account === swap.outputTokenAccount || (account === swap.inputTokenAccount && swap.isExactOut);
      if (name === 'unwrapSol' && holdsMoney) {
        const without = (instructions) => instructions.toSpliced(index, 1);
        assert.ok(!passes(entry, without), `${entry.name}: not unwrapped`);
        const inPart = (instructions) => {
          if (instructions[index].data[0] === 45) {
            instructions[index].data = [45, 1, ...u64(1n)];
          } else {
            instructions[index].data = [9, 0];
          }
        };
        assert.ok(!passes(entry, inPart), `${entry.name}: unwrapped in part`);
      }
      // Idempotent creation accepts an account that was there, with what it holds.
      const isClosed = ['unwrapSol', 'closeTokenAccount'].some((end) => entry.names.includes(end));
      if (name === 'createTokenAccount' && isClosed) {
        const idempotent = (instructions) => {
          const wasExclusive = instructions[index].data[0] === 0;
          instructions[index].data = [wasExclusive ? 1 : 2];
        };
        assert.ok(!passes(entry, idempotent), `${entry.name}: may have been there before`);
      }
    });
  }
  assert.ok(moved > 50, `${moved} steps`);
});

test('a priority fee beyond what was asked for is a fault, whatever makes it', () => {
  for (const entry of transactions.filter(({ names }) => names.includes('setComputeUnitPrice'))) {
    const price = entry.names.indexOf('setComputeUnitPrice');
    const limit = entry.names.indexOf('setComputeUnitLimit');
    assert.ok(!passes(entry, (instructions) => {
      instructions[price].data = [3, ...u64(1_000_000n)];
    }));
    assert.ok(!passes(entry, (instructions) => {
      instructions[limit].data = [2, 0, 0, 0, 255];
    }));
    // Without a limit, the chain charges for its default.
    assert.ok(!passes(entry, (instructions) => instructions.toSpliced(limit, 1)));
  }
});

test('bytes that are no transaction are a fault and never an error', () => {
  const { transaction, request } = transactions[0];
  const bytes = Buffer.from(transaction, 'base64');
  const codes = (found) => found.faults.map(({ code }) => code);
  for (let length = 0; length < bytes.length; length += 1) {
    assert.deepEqual(codes(explain(bytes.subarray(0, length), { request })), ['unreadable']);
  }
  assert.deepEqual(codes(explain(Buffer.concat([bytes, Buffer.of(0)]), { request })), ['unreadable']);
  assert.deepEqual(codes(explain('no base64!', { request })), ['unreadable']);
  // Any byte that is not of the blockhash, which is no part of what was agreed, or of the signatures.
  for (let at = 0; at < bytes.length; at += 1) {
    const damaged = Buffer.from(bytes);
    damaged[at] ^= 0x55;
    assert.equal(typeof explain(damaged, { request }).isAsQuoted, 'boolean');
  }
});

test('a transaction that names a table is read with the table only', () => {
  const entry = transactions.find(({ transaction, request }) => !explain(transaction, { request }).isAsQuoted);
  const { faults } = explain(entry.transaction, entry);
  assert.match(faults[0].detail, /give the table in lookupTables/);
  const [table] = Object.keys(lookupTables);
  const swapped = { [table]: lookupTables[table].map(() => ATTACKER) };
  assert.ok(!explain(entry.transaction, entry, { lookupTables: swapped }).isAsQuoted);
});

test('a body without a whole quote needs the quote beside it', () => {
  const { transaction, request } = transactions[0];
  const { pool, ...wish } = request.quote;
  assert.throws(() => explain(transaction, { request: { ...request, quote: wish } }), TypeError);
  const found = explain(transaction, { request: { ...request, quote: wish }, quote: request.quote }, options);
  assert.ok(pool && found.isAsQuoted);
});
