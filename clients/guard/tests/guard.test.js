// The generated client reads what the service builds, writes the same bytes, and names the guard's errors.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import {
  address,
  decompileTransactionMessage,
  getBase64Encoder,
  getCompiledTransactionMessageDecoder,
  getTransactionDecoder,
} from '@solana/kit';
import * as guard from '@sluice/swap-guard';

const read = (path) => readFileSync(new URL(path, import.meta.url), 'utf8');
const idl = JSON.parse(read('../../../idls/swap_guard.json'));

// Amounts that a number could not hold become texts.
const recorded = read('../../typescript/tests/transactions.json').replace(/:(\d{16,})/g, ':"$1"');
const { lookupTables, transactions } = JSON.parse(recorded);
const tables = Object.fromEntries(
  Object.entries(lookupTables).map(([table, addresses]) => [address(table), addresses.map((one) => address(one))]),
);

// The IDL's name of an instruction, as the client spells it.
const pascal = (name) => name.replace(/(?:^|_)([a-z])/g, (_, letter) => letter.toUpperCase());

// The guard's instruction in a transaction, if kit's decompiler reads its version.
function guardsInstruction(transaction) {
  const { messageBytes } = getTransactionDecoder().decode(getBase64Encoder().encode(transaction));
  const compiled = getCompiledTransactionMessageDecoder().decode(messageBytes);
  const { instructions } = decompileTransactionMessage(compiled, { addressesByLookupTableAddress: tables });
  return instructions.find(({ programAddress }) => programAddress === guard.SWAP_GUARD_PROGRAM_ADDRESS);
}

test('the client has every instruction and every error of the IDL', () => {
  assert.equal(guard.SWAP_GUARD_PROGRAM_ADDRESS, idl.address);
  for (const { name, discriminator } of idl.instructions) {
    const bytes = guard[`get${pascal(name)}DiscriminatorBytes`]();
    assert.deepEqual([...bytes], discriminator, name);
  }
  const codes = new Map(Object.entries(guard).filter(([name]) => name.startsWith('SWAP_GUARD_ERROR__')));
  assert.deepEqual([...codes.values()].sort(), idl.errors.map(({ code }) => code).sort());
});

test('what the service builds is read, and written again byte for byte', () => {
  const seen = new Set();
  for (const { name, transaction, request } of transactions) {
    const instruction = guardsInstruction(transaction);
    assert.ok(instruction, `${name}: the guard is called`);
    const found = idl.instructions.find(({ discriminator }) =>
      discriminator.every((byte, at) => instruction.data[at] === byte),
    );
    const kind = pascal(found.name);
    seen.add(kind);
    const { data, accounts } = guard[`parse${kind}Instruction`](instruction);
    const again = guard[`get${kind}InstructionDataEncoder`]().encode(data);
    assert.deepEqual([...again], [...instruction.data], name);
    assert.equal(accounts.user.address, request.userPublicKey, name);
    const amounts = Object.values(data).filter((value) => typeof value === 'bigint');
    assert.ok(amounts.includes(BigInt(request.quote.minimumOut)), `${name}: the least that comes out`);
    const pools = Object.entries(accounts).filter(([of]) => /poolstate/i.test(of)).map(([, pool]) => pool.address);
    assert.deepEqual(pools.join(','), request.quote.pool, name);
  }
  assert.ok(seen.size >= 3, `only ${[...seen]} were built`);
});
