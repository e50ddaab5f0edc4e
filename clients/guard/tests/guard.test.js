// The generated client is what the IDL says, all of it, and reads and writes what the service builds byte for byte.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';

import {
  address,
  createNoopSigner,
  decompileTransactionMessage,
  getAddressDecoder,
  getAddressEncoder,
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

const camel = (name) => pascal(name).replace(/^./, (letter) => letter.toLowerCase());

// An address for each number below 256.
const addressOf = (number) => getAddressDecoder().decode(new Uint8Array(32).fill(number));

// How Borsh writes the types that the IDL names.
const WRITTEN = {
  pubkey: (value) => [...getAddressEncoder().encode(value)],
  u64: (value) => [...Array(8).keys()].map((at) => Number((value >> BigInt(8 * at)) & 255n)),
};

// A value for each field, no two alike, and the bytes of all of them.
function sample(fields) {
  const values = fields.map(({ type }, at) => (type === 'pubkey' ? addressOf(101 + at) : 0x0102030405060708n * BigInt(at + 1)));
  return {
    value: Object.fromEntries(fields.map(({ name }, at) => [camel(name), values[at]])),
    bytes: fields.flatMap(({ type }, at) => WRITTEN[type](values[at])),
  };
}

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

test('the built files are those of the IDL, and no other', () => {
  const expected = [
    'index.js',
    ...['errors', 'instructions', 'programs', 'shared', 'types'].map((folder) => `${folder}/index.js`),
    'errors/swapGuard.js',
    'programs/swapGuard.js',
    ...idl.instructions.map(({ name }) => `instructions/${camel(name)}.js`),
    ...idl.types.map(({ name }) => `types/${camel(name)}.js`),
  ];
  const built = readdirSync(new URL('../dist', import.meta.url), { recursive: true });
  assert.deepEqual(built.filter((name) => name.endsWith('.js')).sort(), expected.sort());
  assert.deepEqual(idl.accounts ?? [], []);
});

test('every instruction has the accounts of the IDL, in its order and with its roles, and its data', () => {
  for (const { name, accounts, args, discriminator } of idl.instructions) {
    const data = sample(args);
    const given = accounts.map((account, at) => {
      const one = addressOf(at + 1);
      return [camel(account.name), account.signer ? createNoopSigner(one) : one];
    });
    const made = guard[`get${pascal(name)}Instruction`]({ ...Object.fromEntries(given), ...data.value });
    assert.equal(made.programAddress, idl.address, name);
    assert.deepEqual([...made.data], [...discriminator, ...data.bytes], name);
    assert.deepEqual(
      made.accounts.map(({ address: one, role }) => [one, role]),
      accounts.map(({ writable, signer }, at) => [addressOf(at + 1), (writable ? 1 : 0) + (signer ? 2 : 0)]),
      name,
    );
    const read = guard[`parse${pascal(name)}Instruction`](made);
    assert.deepEqual(Object.keys(read.accounts), accounts.map((account) => camel(account.name)), name);
    const { discriminator: _, ...values } = read.data;
    assert.deepEqual(values, data.value, name);
  }
});

test('every event is read and written as the IDL lays it out', () => {
  assert.ok(idl.events.length > 0);
  for (const { name } of idl.events) {
    const { type } = idl.types.find((one) => one.name === name);
    const { value, bytes } = sample(type.fields);
    assert.deepEqual([...guard[`get${pascal(name)}Encoder`]().encode(value)], bytes, name);
    assert.deepEqual({ ...guard[`get${pascal(name)}Decoder`]().decode(Uint8Array.from(bytes)) }, value, name);
  }
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
