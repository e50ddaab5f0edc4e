/** Expectation: what a transaction should do, by its quote and by the body that it was asked for with (pure). */

import { EXCHANGE } from '../generated/guard.js';
import type { SwapRequest } from '../swaps.js';

/** The amounts and addresses of a quote. */
export interface QuotedSwap {
  readonly amountIn: bigint | number | string;
  readonly minimumOut: bigint | number | string;
  readonly outAmount: bigint | number | string;
  readonly inputMint: string;
  readonly outputMint: string;
  readonly pool: string;
}

/** What was asked for. */
export interface ExplainInput {
  /** The body of `POST /v1/swap/transaction`. */
  readonly request: SwapRequest;
  /** The quote that the user has agreed to. Default the one in the body. */
  readonly quote?: QuotedSwap;
  /** Address of the exchange's program, on a cluster where it is not mainnet's. Never take it from the service. */
  readonly exchange?: string;
}

/** Wrapped SOL. */
export const WRAPPED_SOL = 'So11111111111111111111111111111111111111112';

/** Basis points in the whole. */
const BASIS_POINTS = 10_000n;

/** What a transaction should do. */
export class Expectation {
  /** Program of the exchange. */
  readonly exchange: string;
  readonly user: string;
  readonly feePayer: string;
  /** The wallet that gets the output. */
  readonly receiver: string;
  readonly inputMint: string;
  readonly outputMint: string;
  /** One pool, or both of two hops. */
  readonly pools: readonly string[];
  readonly isExactOut: boolean;
  /** What goes into the swap, or for an exact output the most that may: all that the user pays, less the platform's fee. */
  readonly amountIn: bigint;
  /** What the platform takes before, of the same token. */
  readonly platformFee: bigint;
  /** The platform's wallet. */
  readonly feeWallet: string | undefined;
  /** The least that arrives, or for an exact output exactly that. */
  readonly amountOut: bigint;
  /** 0 where the swap has none of its own. */
  readonly expirySlot: bigint;
  /** The most that priority may cost, lamports. */
  readonly priorityFee: bigint;
  readonly wraps: boolean;
  /** The nonce account in place of a recent blockhash. */
  readonly nonceAccount: string | undefined;
  readonly source: string | undefined;
  readonly destination: string | undefined;

  constructor({ request, quote = quoteOf(request), exchange = EXCHANGE }: ExplainInput) {
    this.exchange = exchange;
    this.user = request.userPublicKey;
    this.feePayer = request.feePayer ?? this.user;
    this.receiver = request.receiver ?? this.user;
    this.inputMint = quote.inputMint;
    this.outputMint = quote.outputMint;
    this.pools = quote.pool.split(',');
    this.isExactOut = request.swapMode === 'ExactOut';
    const paid = BigInt(quote.amountIn);
    this.platformFee = (paid * BigInt(request.platformFeeBps ?? 0)) / BASIS_POINTS;
    this.feeWallet = request.feeWallet ?? undefined;
    this.amountIn = paid - this.platformFee;
    this.amountOut = BigInt(this.isExactOut ? quote.outAmount : quote.minimumOut);
    this.expirySlot = BigInt(request.expirySlot ?? 0);
    this.priorityFee = BigInt(request.priorityFeeLamports ?? 0);
    this.wraps = request.wrapAndUnwrapSol ?? true;
    this.nonceAccount = request.nonceAccount ?? undefined;
    this.source = request.sourceTokenAccount ?? undefined;
    this.destination = request.destinationTokenAccount ?? undefined;
  }

  /** Whether SOL goes in that was native before. */
  get wrapsInput(): boolean {
    return this.wraps && this.inputMint === WRAPPED_SOL && this.source === undefined;
  }

  /** Whether SOL comes out that is native after. */
  get unwrapsOutput(): boolean {
    return this.wraps && this.outputMint === WRAPPED_SOL && this.destination === undefined;
  }
}

function quoteOf({ quote }: SwapRequest): QuotedSwap {
  const { amountIn, minimumOut, outAmount, pool, inputMint, outputMint } = quote;
  if (amountIn == null || minimumOut == null || outAmount == null || pool == null) {
    throw new TypeError('the body holds no whole quote; give the one that the user has agreed to as `quote`');
  }
  return { amountIn, minimumOut, outAmount, pool, inputMint, outputMint };
}
