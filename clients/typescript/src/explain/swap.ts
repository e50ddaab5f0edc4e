/** The guard's instruction: read by the IDL, and compared with what was quoted (pure). */

import { GUARD, GUARD_INSTRUCTIONS } from '../generated/guard.js';
import { type AccountUse, Cursor, type DecodedInstruction } from '../transaction.js';
import type { Expectation } from './expectation.js';
import type { Faults } from './faults.js';

/** A swap of the guard, as the bytes say it. */
export interface ExplainedSwap {
  /** Position of the instruction. */
  readonly instruction: number;
  /** The guard's own name of it. */
  readonly name: string;
  /** The wallet that signs and pays the input. */
  readonly user: string;
  /** The wallet that is stated to own the output account; undefined where it is the user. */
  readonly receiver: string | undefined;
  readonly isExactOut: boolean;
  /** What goes in, or for an exact output the most that may. */
  readonly amountIn: bigint;
  /** The least that arrives, or for an exact output exactly that. */
  readonly amountOut: bigint;
  /** 0 for none. */
  readonly expirySlot: bigint;
  readonly pools: readonly string[];
  readonly inputMint: string;
  readonly middleMint: string | undefined;
  readonly outputMint: string;
  readonly inputTokenAccount: string;
  readonly middleTokenAccount: string | undefined;
  readonly outputTokenAccount: string;
  /** Every account, by the name that it has in the guard's IDL. */
  readonly accounts: Readonly<Record<string, AccountUse>>;
}

/** Length of a discriminator, bytes. */
const DISCRIMINATOR = 8;

/** Length of the data without and with a receiver, bytes. The guard refuses any other. */
const LENGTHS = { plain: 32, withReceiver: 64 };

/** Reads a swap of the guard; undefined for anything else. */
export function readSwap(instruction: DecodedInstruction, index: number): ExplainedSwap | undefined {
  const { program, accounts, data } = instruction;
  const hex = Array.from(data.subarray(0, DISCRIMINATOR), (byte) => byte.toString(16).padStart(2, '0')).join('');
  const known = GUARD_INSTRUCTIONS[hex];
  if (program !== GUARD || known === undefined) {
    return undefined;
  }
  const [name, argumentNames, accountNames] = known;
  const names = accountNames.split(' ');
  const withReceiver = argumentNames.split(' ').includes('receiver');
  const length = withReceiver ? LENGTHS.withReceiver : LENGTHS.plain;
  if (accounts.length !== names.length || data.length !== length) {
    return undefined;
  }
  const cursor = new Cursor(data.subarray(DISCRIMINATOR));
  const [amountIn, amountOut, expirySlot] = [cursor.u64(), cursor.u64(), cursor.u64()];
  const receiver = withReceiver ? cursor.address() : undefined;
  const byName = Object.fromEntries(names.map((name, at) => [name, accounts[at] as AccountUse]));
  const address = (name: string): string => byName[name]?.address ?? '';
  return {
    instruction: index,
    name,
    user: address('user'),
    receiver,
    isExactOut: name.startsWith('swap_exact_out'),
    amountIn,
    amountOut,
    expirySlot,
    pools: names.filter((name) => name.endsWith('pool_state')).map(address),
    inputMint: address('input_mint'),
    middleMint: byName['middle_mint']?.address,
    outputMint: address('output_mint'),
    inputTokenAccount: address('input_token_account'),
    middleTokenAccount: byName['middle_token_account']?.address,
    outputTokenAccount: address('output_token_account'),
    accounts: byName,
  };
}

/** Adds a fault for everything of a swap that was quoted or asked for otherwise. */
export function compareSwap(swap: ExplainedSwap, expected: Expectation, faults: Faults): void {
  const same = (what: string, found: unknown, wanted: unknown): void => {
    if (found !== wanted) {
      faults.add('notAsQuoted', swap.instruction, `${what} is ${found}, and was agreed as ${wanted}`);
    }
  };
  same('the exchange', swap.accounts['exchange_program']?.address, expected.exchange);
  same('the pool', swap.pools.join(','), expected.pools.join(','));
  same('the input mint', swap.inputMint, expected.inputMint);
  same('the output mint', swap.outputMint, expected.outputMint);
  same('the swap mode', swap.isExactOut ? 'ExactOut' : 'ExactIn', expected.isExactOut ? 'ExactOut' : 'ExactIn');
  same('what goes in', swap.amountIn, expected.amountIn);
  same('what comes out at least', swap.amountOut, expected.amountOut);
  same('the expiry slot', swap.expirySlot, expected.expirySlot);
  same('the token account that pays', swap.inputTokenAccount, expected.source ?? swap.inputTokenAccount);
  same('the token account that receives', swap.outputTokenAccount, expected.destination ?? swap.outputTokenAccount);
  if (swap.amountOut === 0n) {
    faults.add('notAsQuoted', swap.instruction, 'nothing need arrive: a minimum of 0 guards nothing');
  }
  if (swap.user !== expected.user || swap.accounts['user']?.isSigner !== true) {
    faults.add('wrongWallet', swap.instruction, `the swap is of ${swap.user}, not of ${expected.user}`);
  }
  // SOL reaches a receiver when it is unwrapped; up to then the account is the user's.
  const owner = expected.unwrapsOutput ? expected.user : expected.receiver;
  if ((swap.receiver ?? swap.user) !== owner) {
    const found = swap.receiver ?? swap.user;
    faults.add('wrongDestination', swap.instruction, `the output goes to an account of ${found}, not of ${owner}`);
  }
}
