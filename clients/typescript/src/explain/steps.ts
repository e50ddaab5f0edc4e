/** Steps around the swap: creations, wrapping, closing; any other instruction is a fault (pure). */

import { Cursor, type DecodedInstruction } from '../transaction.js';
import { ASSOCIATED_TOKEN, isAssociated } from './associated.js';
import { type Expectation, WRAPPED_SOL } from './expectation.js';
import type { Faults } from './faults.js';
import type { ExplainedSwap } from './swap.js';

/** An instruction and what it is for, by the names of the API's manifest. */
export interface ExplainedStep {
  readonly name: string;
  readonly program: string;
  readonly accounts: readonly string[];
}

const COMPUTE_BUDGET = 'ComputeBudget111111111111111111111111111111';
const SYSTEM = '11111111111111111111111111111111';
const SPL_TOKEN = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
const RECENT_BLOCKHASHES = 'SysvarRecentB1ockHashes11111111111111111111';
const TOKEN_2022 = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb';

/** Numbers of the instructions that swaps use, by program. */
const BUDGET = { unitLimit: 2, unitPrice: 3, loadedBytes: 4 };
const SYSTEM_CALL = { transfer: 2, createWithSeed: 3, advanceNonce: 4 };
const TOKEN_CALL = { close: 9, transferChecked: 12, sync: 17, initialize3: 18, unwrap: 45 };

/** Length of a token account of SPL Token, bytes. */
const TOKEN_ACCOUNT_BYTES = 165n;

/** The most rent that the chain has ever asked for such an account, lamports. */
const MOST_RENT = 2_039_280n;

/** The longest seed of an address, bytes. */
const LONGEST_SEED = 32n;

/** Micro-lamports in a lamport. */
const MICRO_LAMPORTS = 1_000_000n;

/** Compute units that an instruction is given where no limit is set, and the most that any transaction gets. */
const DEFAULT_UNITS = 200_000n;
const MOST_UNITS = 1_400_000n;

/** Walks over the instructions in their order. */
export class Steps {
  readonly list: ExplainedStep[] = [];
  /** SOL that is wrapped, lamports. */
  wrapped = 0n;
  /** What the platform takes. */
  platformFee = 0n;
  readonly #swap: ExplainedSwap;
  readonly #expected: Expectation;
  readonly #faults: Faults;
  /** Token accounts that this transaction makes, and that cannot have been there before. */
  readonly #created = new Set<string>();
  /** Accounts that are to be initialized, or the transaction is not a swap's. */
  readonly #uninitialized = new Set<string>();
  /** Where the SOL of an account went after the swap. */
  readonly #paidOut = new Map<string, string>();
  #unitLimit: bigint | undefined;
  #unitPrice = 0n;

  constructor(swap: ExplainedSwap, expected: Expectation, faults: Faults) {
    this.#swap = swap;
    this.#expected = expected;
    this.#faults = faults;
  }

  /** Adds the next instruction. */
  add(instruction: DecodedInstruction, index: number): void {
    const { program, accounts } = instruction;
    const name = index === this.#swap.instruction ? swapName(this.#swap) : this.#name(instruction, index);
    if (name === undefined) {
      const text = `instruction ${index} of program ${program} is not one of a swap's own`;
      this.#faults.add('unknownInstruction', index, `${text}: it may do anything with what the signers own`);
    }
    this.list.push({ name: name ?? 'unknown', program, accounts: accounts.map(({ address }) => address) });
  }

  /**
   * What only the whole shows. Returns the fee for priority, lamports; `stated` is the one that the message itself says, in
   * place of instructions.
   */
  end(stated: bigint | undefined): bigint {
    const { unwrapsOutput, wrapsInput, isExactOut, amountIn, receiver, user, priorityFee } = this.#expected;
    const swap = this.#swap;
    if (unwrapsOutput && this.#paidOut.get(swap.outputTokenAccount) !== receiver) {
      this.#faults.add('leavesWrapped', undefined, `the SOL that comes out is not unwrapped for ${receiver}`);
    }
    if (wrapsInput && isExactOut && this.wrapped > 0n && this.#paidOut.get(swap.inputTokenAccount) !== user) {
      this.#faults.add('leavesWrapped', undefined, `the SOL that is not spent is not unwrapped for ${user}`);
    }
    if (this.wrapped > (wrapsInput ? amountIn : 0n)) {
      this.#faults.add('wrapsTooMuch', undefined, `${this.wrapped} lamports are wrapped for a swap of ${amountIn}`);
    }
    if (this.platformFee !== this.#expected.platformFee) {
      const text = `the platform takes ${this.platformFee}, and ${this.#expected.platformFee} was agreed`;
      this.#faults.add('notAsQuoted', undefined, text);
    }
    for (const account of this.#uninitialized) {
      this.#faults.add('unknownInstruction', undefined, `${account} is created and not made a token account`);
    }
    const units = this.#unitLimit ?? min(DEFAULT_UNITS * BigInt(this.list.length), MOST_UNITS);
    const priced = (this.#unitPrice * min(units, MOST_UNITS) + MICRO_LAMPORTS - 1n) / MICRO_LAMPORTS;
    const fee = stated ?? priced;
    if (fee > priorityFee) {
      this.#faults.add('feeTooHigh', undefined, `priority costs ${fee} lamports, more than ${priorityFee}`);
    }
    return fee;
  }

  /** What an instruction is for; undefined where it is not known, or not exactly as a swap's own. */
  #name(instruction: DecodedInstruction, index: number): string | undefined {
    const { program, accounts, data } = instruction;
    const keys = accounts.map(({ address }) => address);
    const cursor = new Cursor(data);
    try {
      switch (program) {
        case COMPUTE_BUDGET:
          return this.#budget(cursor);
        case ASSOCIATED_TOKEN:
          return this.#create(keys, data);
        case SYSTEM:
          return this.#system(keys, cursor, index);
        case SPL_TOKEN:
        case TOKEN_2022:
          return this.#token(program, keys, cursor, index);
        default:
          return undefined;
      }
    } catch {
      return undefined;
    }
  }

  #budget(cursor: Cursor): string | undefined {
    switch (cursor.u8()) {
      case BUDGET.unitLimit:
        this.#unitLimit = BigInt(cursor.u32());
        cursor.end();
        return 'setComputeUnitLimit';
      case BUDGET.unitPrice:
        this.#unitPrice = cursor.u64();
        cursor.end();
        return 'setComputeUnitPrice';
      case BUDGET.loadedBytes:
        cursor.u32();
        cursor.end();
        return 'setLoadedAccountsDataSizeLimit';
      default:
        return undefined;
    }
  }

  /** A token account at its owner's associated address, paid for by the fee payer. */
  #create(keys: readonly string[], data: Uint8Array): string | undefined {
    const [payer, account = '', owner, mint, system, tokenProgram] = keys;
    const { feePayer, user, receiver, feeWallet } = this.#expected;
    const { inputMint, middleMint, outputMint } = this.#swap;
    const isOwn =
      owner === user || (owner === receiver && mint === outputMint) || (owner === feeWallet && mint === inputMint);
    const isOfSwap = mint === inputMint || mint === middleMint || mint === outputMint;
    const isTokenProgram = tokenProgram === SPL_TOKEN || tokenProgram === TOKEN_2022;
    const isKnown = data.length === 0 || (data.length === 1 && (data[0] ?? 2) <= 1);
    if (keys.length !== 6 || payer !== feePayer || system !== SYSTEM || !isTokenProgram || !isOwn || !isOfSwap || !isKnown) {
      return undefined;
    }
    // The other instruction accepts an account that was there before, with what it holds.
    if (data[0] !== 1) {
      this.#created.add(account);
    }
    return 'createTokenAccount';
  }

  #system(keys: readonly string[], cursor: Cursor, index: number): string | undefined {
    const { user, feePayer, nonceAccount, wrapsInput } = this.#expected;
    const { inputTokenAccount } = this.#swap;
    const [from, to = '', base = from] = keys;
    switch (cursor.u32()) {
      case SYSTEM_CALL.transfer: {
        const lamports = cursor.u64();
        cursor.end();
        if (keys.length !== 2 || from !== user || !wrapsInput) {
          return undefined;
        }
        if (to === this.#expected.feeWallet && to !== inputTokenAccount) {
          this.platformFee += lamports;
          return 'payPlatformFee';
        }
        if (to !== inputTokenAccount) {
          return undefined;
        }
        this.wrapped += lamports;
        return 'wrapSol';
      }
      case SYSTEM_CALL.createWithSeed: {
        const seedOf = cursor.address();
        const seedLength = cursor.u64();
        cursor.take(Number(seedLength));
        const [lamports, space, owner] = [cursor.u64(), cursor.u64(), cursor.address()];
        cursor.end();
        const isTemporary = this.#isWrappedSol(to) && !this.#created.has(to) && seedLength <= LONGEST_SEED;
        const isTokenAccount = owner === SPL_TOKEN && space === TOKEN_ACCOUNT_BYTES && lamports <= MOST_RENT;
        if (keys.length > 3 || from !== feePayer || base !== user || seedOf !== user || !isTemporary || !isTokenAccount) {
          return undefined;
        }
        this.#created.add(to);
        this.#uninitialized.add(to);
        return 'createTemporaryAccount';
      }
      case SYSTEM_CALL.advanceNonce: {
        cursor.end();
        // Anywhere else the value would stay what the transaction carries, and it could land twice.
        const isOwn = keys.length === 3 && from === nonceAccount && to === RECENT_BLOCKHASHES;
        return index === 0 && isOwn && (base === user || base === feePayer) ? 'advanceNonce' : undefined;
      }
      default:
        return undefined;
    }
  }

  #token(program: string, keys: readonly string[], cursor: Cursor, index: number): string | undefined {
    const [account = '', second = '', third] = keys;
    const { user } = this.#expected;
    switch (cursor.u8()) {
      case TOKEN_CALL.initialize3: {
        const owner = cursor.address();
        cursor.end();
        const isTemporary = program === SPL_TOKEN && second === WRAPPED_SOL && this.#uninitialized.delete(account);
        return keys.length === 2 && owner === user && isTemporary ? 'initializeTemporaryAccount' : undefined;
      }
      case TOKEN_CALL.transferChecked:
        return this.#platformFeeInTokens(program, keys, cursor);
      case TOKEN_CALL.sync:
        cursor.end();
        return keys.length === 1 && account === this.#swap.inputTokenAccount ? 'syncWrappedSol' : undefined;
      case TOKEN_CALL.unwrap: {
        // An amount of its own would leave a part, which the closing pays to another wallet.
        const isAll = cursor.u8() === 0;
        cursor.end();
        const isOwn = keys.length === 3 && third === user && this.#isWrappedSol(account);
        return isOwn && isAll && this.#payOut(account, second, index) ? 'unwrapSol' : undefined;
      }
      case TOKEN_CALL.close:
        cursor.end();
        return keys.length === 3 && third === user ? this.#close(account, second, index) : undefined;
      default:
        return undefined;
    }
  }

  /** What the platform takes where no SOL is wrapped: tokens for its own associated account. */
  #platformFeeInTokens(program: string, keys: readonly string[], cursor: Cursor): string | undefined {
    const [from, mint = '', to = '', owner] = keys;
    const { feeWallet, user, wrapsInput } = this.#expected;
    const { inputTokenAccount, inputMint } = this.#swap;
    const amount = cursor.u64();
    cursor.u8();
    cursor.end();
    const isOfInput = from === inputTokenAccount && mint === inputMint && owner === user && !wrapsInput;
    if (keys.length !== 4 || !isOfInput || feeWallet === undefined || !isAssociated(to, feeWallet, program, mint)) {
      return undefined;
    }
    this.platformFee += amount;
    return 'payPlatformFee';
  }

  /**
   * The closing of an account, whose rent and SOL go to one wallet: that of the SOL, unless there is none left. An account
   * that was there before is never closed, for it may hold more than the swap's.
   */
  #close(account: string, to: string, index: number): string | undefined {
    const { user, feePayer, isExactOut, receiver } = this.#expected;
    if (index < this.#swap.instruction || !this.#created.has(account)) {
      return undefined;
    }
    const isEmpty =
      this.#paidOut.has(account) ||
      account === this.#swap.middleTokenAccount ||
      // All that goes in is spent.
      (account === this.#swap.inputTokenAccount && !isExactOut);
    if (isEmpty) {
      if (![user, feePayer, receiver].includes(to)) {
        return undefined;
      }
      // The rent alone, as SOL of the user's.
      const isRent = to === user && this.#isWrappedSol(account) && !this.#paidOut.has(account);
      return isRent ? 'unwrapSol' : 'closeTokenAccount';
    }
    return this.#isWrappedSol(account) && this.#payOut(account, to, index) ? 'unwrapSol' : undefined;
  }

  /** Notes that the SOL in an account of the swap went to a wallet, if that is the one that should have it. */
  #payOut(account: string, to: string, index: number): boolean {
    const { user, receiver } = this.#expected;
    const wallet = account === this.#swap.outputTokenAccount ? receiver : user;
    if (index < this.#swap.instruction || !this.#created.has(account)) {
      return false;
    }
    if (to !== wallet) {
      this.#faults.add('wrongDestination', index, `the SOL in ${account} goes to ${to}, not to ${wallet}`);
    }
    this.#paidOut.set(account, to);
    return true;
  }

  /** Whether an account is one of the swap's that holds wrapped SOL. */
  #isWrappedSol(account: string): boolean {
    const { inputTokenAccount, inputMint, middleTokenAccount, middleMint, outputTokenAccount, outputMint } = this.#swap;
    return (
      (account === middleTokenAccount && middleMint === WRAPPED_SOL) ||
      (account === inputTokenAccount && inputMint === WRAPPED_SOL) ||
      (account === outputTokenAccount && outputMint === WRAPPED_SOL)
    );
  }
}

function swapName({ pools }: ExplainedSwap): string {
  return pools.length > 1 ? 'guardedSwapTwoHops' : 'guardedSwap';
}

function min(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}
