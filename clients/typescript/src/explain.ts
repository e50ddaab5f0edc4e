/**
 * Explanation of a transaction: what it does, step by step, and whether that is what was quoted and asked for.
 *
 * It is made of the bytes alone, offline. A step that is not known to be one of a swap's own is a fault, whatever it is:
 * nothing that could move the user's money passes unexplained.
 */

import { Expectation, type ExplainInput } from './explain/expectation.js';
import { type Fault, Faults } from './explain/faults.js';
import { type ExplainedSwap, compareSwap, readSwap } from './explain/swap.js';
import { type ExplainedStep, Steps } from './explain/steps.js';
import { DecodeError, type DecodedTransaction, type LookupTables, decodeTransaction } from './transaction.js';

export type { ExplainInput, QuotedSwap } from './explain/expectation.js';
export type { Fault, FaultCode } from './explain/faults.js';
export type { ExplainedStep } from './explain/steps.js';
export type { ExplainedSwap } from './explain/swap.js';

/** What a transaction does. */
export interface Explanation {
  /** Whether it is what was quoted and asked for: sign it only then. The same as having no fault. */
  readonly isAsQuoted: boolean;
  /** What is not as it should be. */
  readonly faults: readonly Fault[];
  /** The swap; undefined where there is not exactly one. */
  readonly swap: ExplainedSwap | undefined;
  /** Every instruction, in its order. */
  readonly steps: readonly ExplainedStep[];
  /** The wallets that must sign; the first pays the fees. */
  readonly signers: readonly string[];
  readonly blockhash: string | undefined;
  /** The base fee and the fee for priority, lamports. */
  readonly fee: bigint;
  /** SOL of the user that is wrapped for the swap, lamports. What is not spent is unwrapped again. */
  readonly wrapped: bigint;
  /** What a platform takes of the input before the swap, as the request agreed, smallest units. */
  readonly platformFee: bigint;
}

/** How the addresses of a transaction are found that it does not hold itself. */
export interface ExplainOptions {
  /** The addresses of each lookup table, by its address. Read them from the chain, not from who built the transaction. */
  readonly lookupTables?: LookupTables;
}

/** What the chain charges for a signature, lamports. */
const SIGNATURE_FEE = 5_000n;

/**
 * Explains an unsigned transaction, in base64 or as bytes, against the body that it was asked for with. Where that held no
 * quote with its pool, `quote` is the one that the user has agreed to. Throws a TypeError where the quote is incomplete.
 */
export function explain(
  transaction: string | Uint8Array,
  input: ExplainInput,
  options: ExplainOptions = {},
): Explanation {
  const expected = new Expectation(input);
  const faults = new Faults();
  let decoded: DecodedTransaction;
  try {
    decoded = decodeTransaction(transaction, options.lookupTables);
  } catch (error) {
    if (!(error instanceof DecodeError)) {
      throw error;
    }
    faults.add('unreadable', undefined, `the transaction is not read: ${error.message}`);
    return finished(faults, { steps: [], signers: [], fee: 0n, wrapped: 0n, platformFee: 0n });
  }
  checkSigners(decoded, expected, faults);
  const swaps = decoded.instructions.flatMap((instruction, index) => readSwap(instruction, index) ?? []);
  const [swap, another] = swaps;
  if (swap === undefined || another !== undefined) {
    faults.add('noSwap', undefined, `it has ${swaps.length} swaps of the guard, and 1 is expected`);
    const { signers, blockhash } = decoded;
    return finished(faults, { steps: [], signers, blockhash, fee: 0n, wrapped: 0n, platformFee: 0n });
  }
  compareSwap(swap, expected, faults);
  const steps = new Steps(swap, expected, faults);
  decoded.instructions.forEach((instruction, index) => steps.add(instruction, index));
  const priorityFee = steps.end(decoded.priorityFee);
  return finished(faults, {
    swap,
    steps: steps.list,
    signers: decoded.signers,
    blockhash: decoded.blockhash,
    fee: SIGNATURE_FEE * BigInt(decoded.signers.length) + priorityFee,
    wrapped: steps.wrapped,
    platformFee: steps.platformFee,
  });
}

function checkSigners({ signers }: DecodedTransaction, expected: Expectation, faults: Faults): void {
  if (signers[0] !== expected.feePayer) {
    faults.add('wrongWallet', undefined, `fees are paid by ${signers[0]}, not by ${expected.feePayer}`);
  }
  const strangers = signers.filter((signer) => signer !== expected.user && signer !== expected.feePayer);
  for (const stranger of strangers) {
    faults.add('wrongWallet', undefined, `${stranger} must sign too, and has no part in the swap`);
  }
}

type Found = Partial<Pick<Explanation, 'swap' | 'blockhash'>> &
  Pick<Explanation, 'steps' | 'signers' | 'fee' | 'wrapped' | 'platformFee'>;

function finished({ list }: Faults, found: Found): Explanation {
  return { isAsQuoted: list.length === 0, faults: list, swap: undefined, blockhash: undefined, ...found };
}
