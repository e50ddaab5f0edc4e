/** Wire format of transactions: the legacy one and versions 0 and 1, read strictly (pure). */

import { base58 } from './base58.js';
import { bytesOfBase64 } from './base64.js';

/** The addresses in each lookup table that a transaction names, by the table's address. */
export type LookupTables = Readonly<Record<string, readonly string[]>>;

/** An account of an instruction. */
export interface AccountUse {
  readonly address: string;
  readonly isSigner: boolean;
  readonly isWritable: boolean;
}

/** An instruction with its accounts in place. */
export interface DecodedInstruction {
  readonly program: string;
  readonly accounts: readonly AccountUse[];
  readonly data: Uint8Array;
}

/** A transaction, read. */
export interface DecodedTransaction {
  readonly version: 'legacy' | 0 | 1;
  /** The wallets that must sign; the first pays the fees. */
  readonly signers: readonly string[];
  readonly blockhash: string;
  readonly instructions: readonly DecodedInstruction[];
  /** What version 1 pays for priority, lamports, which other versions say by instructions. */
  readonly priorityFee?: bigint;
}

/** The bytes are no transaction that this client reads. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError';
}

/** Bytes that are read from the front. */
export class Cursor {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  take(length: number): Uint8Array {
    if (length > this.left) {
      throw new DecodeError('it ends too early');
    }
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  u8(): number {
    return this.take(1)[0] ?? 0;
  }

  u32(): number {
    return Number(this.#littleEndian(4));
  }

  u64(): bigint {
    return this.#littleEndian(8);
  }

  address(): string {
    return base58(this.take(32));
  }

  /** A length of one to three bytes, in the only spelling that the chain takes. */
  length(): number {
    let value = 0;
    for (let shift = 0; shift < 21; shift += 7) {
      const byte = this.u8();
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) {
        if ((byte === 0 && shift > 0) || value > 0xffff) {
          break;
        }
        return value;
      }
    }
    throw new DecodeError('a length is misspelt');
  }

  list<Item>(read: () => Item): Item[] {
    return Array.from({ length: this.length() }, read);
  }

  end(): void {
    if (this.left > 0) {
      throw new DecodeError(`${this.left} bytes are left over`);
    }
  }

  #littleEndian(length: number): bigint {
    return this.take(length).reduceRight((sum, byte) => sum * 256n + BigInt(byte), 0n);
  }
}

/** The first byte of a transaction of version 1. */
const VERSION_1 = 0x81;

/** Reads a transaction, in base64 or as bytes. Throws a DecodeError. */
export function decodeTransaction(transaction: string | Uint8Array, tables: LookupTables = {}): DecodedTransaction {
  const bytes = typeof transaction === 'string' ? bytesOfBase64(transaction) : transaction;
  if (bytes === undefined) {
    throw new DecodeError('it is not base64');
  }
  const cursor = new Cursor(bytes);
  if (bytes[0] === VERSION_1) {
    return versionOne(cursor);
  }
  const signatures = cursor.list(() => cursor.take(64)).length;
  const decoded = message(cursor, tables);
  cursor.end();
  if (signatures !== decoded.signers.length) {
    throw new DecodeError(`it has ${signatures} signatures for ${decoded.signers.length} signers`);
  }
  return decoded;
}

function message(cursor: Cursor, tables: LookupTables): DecodedTransaction {
  const first = cursor.u8();
  if (first > 0x80) {
    throw new DecodeError(`version ${first & 0x7f} is not known to this client`);
  }
  const version = first === 0x80 ? 0 : 'legacy';
  const required = version === 0 ? cursor.u8() : first;
  const readonlySigned = cursor.u8();
  const readonlyUnsigned = cursor.u8();
  const keys = cursor.list(() => cursor.address());
  const accounts = used(keys, required, readonlySigned, readonlyUnsigned);
  const blockhash = cursor.address();
  const compiled = cursor.list(() => ({
    program: cursor.u8(),
    accounts: [...cursor.take(cursor.length())],
    data: cursor.take(cursor.length()),
  }));
  if (version === 0) {
    accounts.push(...lookedUp(cursor, tables));
  }
  return { version, signers: keys.slice(0, required), blockhash, instructions: placed(compiled, accounts) };
}

/** Bits of version 1's mask: which values stand in the message. */
const MASK = { priorityFee: 0b11, unitLimit: 0b100, loadedBytes: 0b1000, heapBytes: 0b10000, known: 0b11111 };

/** SIMD-0385: one byte counts accounts and instructions, and the signatures stand at the end. */
function versionOne(cursor: Cursor): DecodedTransaction {
  cursor.u8();
  const [required, readonlySigned, readonlyUnsigned] = [cursor.u8(), cursor.u8(), cursor.u8()];
  const mask = cursor.u32();
  const feeBits = mask & MASK.priorityFee;
  if (mask > MASK.known || (feeBits !== 0 && feeBits !== MASK.priorityFee)) {
    throw new DecodeError('its mask names values that are not known');
  }
  const blockhash = cursor.address();
  const count = cursor.u8();
  const keys = Array.from({ length: cursor.u8() }, () => cursor.address());
  const accounts = used(keys, required, readonlySigned, readonlyUnsigned);
  const priorityFee = feeBits === 0 ? 0n : cursor.u64();
  for (const bit of [MASK.unitLimit, MASK.loadedBytes, MASK.heapBytes]) {
    if ((mask & bit) !== 0) {
      cursor.u32();
    }
  }
  const heads = Array.from({ length: count }, () => ({
    program: cursor.u8(),
    accounts: cursor.u8(),
    data: cursor.u8() + 256 * cursor.u8(),
  }));
  const compiled = heads.map((head) => ({
    program: head.program,
    accounts: [...cursor.take(head.accounts)],
    data: cursor.take(head.data),
  }));
  const instructions = placed(compiled, accounts);
  cursor.take(64 * required);
  cursor.end();
  return { version: 1, signers: keys.slice(0, required), blockhash, instructions, priorityFee };
}

/** What the header says of the accounts that stand in the message. */
function used(keys: readonly string[], required: number, readonlySigned: number, readonlyUnsigned: number): AccountUse[] {
  if (required === 0 || readonlySigned >= required || required + readonlyUnsigned > keys.length) {
    throw new DecodeError('its header contradicts its accounts');
  }
  if (new Set(keys).size !== keys.length) {
    throw new DecodeError('it names an account twice');
  }
  return keys.map((address, index) => ({
    address,
    isSigner: index < required,
    isWritable: index < required ? index < required - readonlySigned : index < keys.length - readonlyUnsigned,
  }));
}

/** An instruction that names its accounts by their places. */
interface CompiledInstruction {
  readonly program: number;
  readonly accounts: readonly number[];
  readonly data: Uint8Array;
}

function placed(compiled: readonly CompiledInstruction[], accounts: readonly AccountUse[]): DecodedInstruction[] {
  const at = (index: number): AccountUse => {
    const account = accounts[index];
    if (account === undefined) {
      throw new DecodeError(`an instruction names account ${index} of ${accounts.length}`);
    }
    return account;
  };
  return compiled.map((instruction) => ({
    program: at(instruction.program).address,
    accounts: instruction.accounts.map(at),
    data: instruction.data,
  }));
}

/** The accounts that are named by lookup tables: first all that are written, then all that are read. */
function lookedUp(cursor: Cursor, tables: LookupTables): AccountUse[] {
  const lookups = cursor.list(() => ({
    table: cursor.address(),
    writable: cursor.list(() => cursor.u8()),
    readonly: cursor.list(() => cursor.u8()),
  }));
  const find = (table: string, index: number, isWritable: boolean): AccountUse => {
    const address = tables[table]?.[index];
    if (address === undefined) {
      throw new DecodeError(`address ${index} of lookup table ${table} is not known; give the table in lookupTables`);
    }
    return { address, isSigner: false, isWritable };
  };
  return [
    ...lookups.flatMap(({ table, writable }) => writable.map((index) => find(table, index, true))),
    ...lookups.flatMap(({ table, readonly }) => readonly.map((index) => find(table, index, false))),
  ];
}
