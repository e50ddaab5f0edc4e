/** `@sluice/client`: quotes, transactions, webhooks, and a check of what is about to be signed. */

export { Sluice } from './sluice.js';
export type { CallOptions, ClientOptions, NamedCallOptions, OperationName } from './transport.js';
export type { QuoteQuery, QuoteResponse, QuoteStreamOptions } from './quotes.js';
export type { InstructionResponse, SwapRequest, TransactionResponse } from './swaps.js';
export type { StreamOptions } from './reopening.js';
export type { SendRequest, TransactionStatus } from './transactions.js';
export type { Pool } from './pools.js';
export type { ChangeOptions, StreamLine, Webhook, WebhookEvent } from './webhook-resource.js';
export type * from './message.js';
export { ConnectionError, ProblemError, SluiceError, TimeoutError } from './problem.js';
export type { Problem, ProblemCode } from './problem.js';
export * as webhooks from './verify.js';
export { VerificationError } from './verify.js';
export { explain } from './explain.js';
export type {
  ExplainInput,
  ExplainOptions,
  ExplainedStep,
  ExplainedSwap,
  Explanation,
  Fault,
  FaultCode,
  QuotedSwap,
} from './explain.js';
export { DecodeError, decodeTransaction } from './transaction.js';
export type { AccountUse, DecodedInstruction, DecodedTransaction, LookupTables } from './transaction.js';
export { EXCHANGE, GUARD, GUARD_ERRORS } from './generated/guard.js';
export { parse as parseJson, stringify as stringifyJson } from './json.js';
export type { components, operations, paths } from './generated/schema.js';
