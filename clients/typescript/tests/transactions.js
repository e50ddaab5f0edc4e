// Transactions of every form, as the service's own crate builds them, and the tools to tamper with them.

import { readFileSync } from 'node:fs';

import { parseJson } from '@sluice/client';

const file = readFileSync(new URL('transactions.json', import.meta.url), 'utf8');

export const { lookupTables, transactions } = parseJson(file, new Set(['amountIn', 'minimumOut', 'outAmount']));

const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

const known = new Map();

// The 32 bytes of an address.
export function addressBytes(text) {
  const bytes = known.get(text) ?? decodeAddress(text);
  known.set(text, bytes);
  return bytes;
}

function decodeAddress(text) {
  let number = [...text].reduce((sum, character) => sum * 58n + BigInt(ALPHABET.indexOf(character)), 0n);
  const bytes = new Uint8Array(32);
  for (let at = 31; at >= 0; at -= 1) {
    bytes[at] = Number(number & 0xffn);
    number >>= 8n;
  }
  return bytes;
}

// A length as the chain spells it.
function spelt(length) {
  return length < 0x80 ? [length] : [(length & 0x7f) | 0x80, length >> 7];
}

// The bytes of a legacy transaction with these signers and instructions.
export function encode({ signers, blockhash, instructions }) {
  const rank = new Map(signers.map((signer) => [signer, { isSigner: true, isWritable: true }]));
  for (const { program, accounts } of instructions) {
    for (const { address, isWritable } of [...accounts, { address: program, isWritable: false }]) {
      const known = rank.get(address) ?? { isSigner: false, isWritable: false };
      rank.set(address, { ...known, isWritable: known.isWritable || isWritable });
    }
  }
  const of = (isSigner, isWritable) =>
    [...rank].filter(([, use]) => use.isSigner === isSigner && use.isWritable === isWritable).map(([address]) => address);
  const keys = [...of(true, true), ...of(true, false), ...of(false, true), ...of(false, false)];
  return Uint8Array.from([
    ...spelt(signers.length),
    ...new Uint8Array(64 * signers.length),
    ...[signers.length, of(true, false).length, of(false, false).length],
    ...spelt(keys.length),
    ...keys.flatMap((key) => [...addressBytes(key)]),
    ...addressBytes(blockhash),
    ...spelt(instructions.length),
    ...instructions.flatMap(({ program, accounts, data }) => [
      keys.indexOf(program),
      ...spelt(accounts.length),
      ...accounts.map(({ address }) => keys.indexOf(address)),
      ...spelt(data.length),
      ...data,
    ]),
  ]);
}
