/** Messages of webhooks: the bodies that endpoints read, by type. Every integer in one is a bigint. */

/** What every message has beside its `type` and `data`. */
interface Envelope<Type extends string, Data> {
  readonly type: Type;
  /** Time of the block, ISO 8601, UTC. */
  readonly timestamp: string;
  readonly webhookId: string;
  /** Counts the messages of a webhook from 1, without a gap. */
  readonly sequence: bigint;
  readonly slot: bigint;
  readonly commitment: 'processed' | 'confirmed' | 'finalized';
  readonly data: Data;
}

/**
 * An account was written. `owner`, `data`, `dataLength` and `executable` are null only with the origin `transaction`, where what
 * became of the account is not known.
 */
export interface AccountChange {
  readonly pubkey: string;
  readonly owner: string | null;
  readonly lamports: bigint;
  /** Base64. */
  readonly data: string | null;
  readonly dataLength: bigint | null;
  readonly executable: boolean | null;
  /** Signature of the writing transaction. */
  readonly writtenBy: string | null;
  /**
   * `snapshot` where it shows how an account is after a gap, not that it was written; `transaction` where that the account left
   * `lastOwner` follows from the transaction `writtenBy` alone.
   */
  readonly origin?: 'snapshot' | 'transaction';
  /** With the origin `transaction`: the slot of which the account is shown, null where what became of it is not known. */
  readonly stateSlot?: bigint | null;
  /** Only where the account left a program that is watched: that program. */
  readonly lastOwner?: string;
}

/** A transaction was executed. */
export interface ExecutedTransaction {
  readonly signature: string;
  /** Position in the block. */
  readonly index: bigint;
  readonly error: string | null;
  /** Lamports. */
  readonly fee: bigint;
  readonly computeUnits: bigint | null;
  readonly accountKeys: readonly string[];
  /** Invoked at any depth. */
  readonly programs: readonly string[];
  readonly logs: readonly string[] | null;
  readonly logsTruncated?: true;
}

/** A value in the fields of a program event. */
export type FieldValue =
  | bigint
  | number
  | string
  | boolean
  | null
  | readonly FieldValue[]
  | { readonly [name: string]: FieldValue };

/** A program emitted an event. */
export interface ProgramEvent {
  readonly programId: string;
  readonly signature: string;
  /** Position among the events of the transaction. */
  readonly index: bigint;
  /** Hex of the first eight bytes. */
  readonly discriminator: string | null;
  /** Base64, with the discriminator. */
  readonly data: string;
  /** Null, as are the fields, where no IDL is registered. */
  readonly name: string | null;
  readonly fields: { readonly [name: string]: FieldValue } | null;
  /**
   * Of an event of the exchange: the mints among the accounts of the instruction that emitted it. `inputMint` and `outputMint` of
   * a swap; `token0Mint`, `token1Mint` and `lpMint` of a deposit or withdrawal. Absent where that was not found.
   */
  readonly mints?: { readonly [name: string]: string };
}

/** A message that was emitted before is retracted: its slot left the chain. */
export interface Reverted {
  readonly messageId: string;
  readonly sequence: bigint;
  readonly type: string;
  readonly reason: 'dead' | 'abandoned' | 'replaced';
}

/** Slots of which events may be missing, both included. */
export interface Gap {
  readonly firstSlot: bigint;
  readonly lastSlot: bigint;
  readonly reason: string;
  readonly kinds: readonly ('accountChange' | 'transaction' | 'programEvent')[];
  /** Programs that the webhook watches, of which no account follows as it is now, since they have too many. */
  readonly statesOmitted?: readonly string[];
  /** The webhook for which they are missing, where it is another one. */
  readonly webhook?: string;
}

/** Nothing was missed up to a slot. */
export interface Heartbeat {
  readonly lastSlot: bigint | null;
  readonly lastSequence: bigint;
  readonly filter: {
    readonly digest: string;
    readonly accounts: bigint;
    readonly programs: bigint;
    readonly tokenOwners: bigint;
  };
}

/** The stream's server refuses the webhook's filter. */
export interface FilterRefused {
  readonly reason: string;
  readonly digest: string;
  /** The webhook whose filter it is, where it is another one. */
  readonly webhook?: string;
}

/** The webhook was switched off and watches again: these slots, both included, were not watched. */
export interface Resumed {
  readonly firstSlot: bigint;
  readonly lastSlot: bigint;
}

/** Another webhook of the same owner's was switched off by the service. */
export interface EndpointDisabled {
  readonly webhook: string;
  readonly reason: string;
}

/** The endpoint of another webhook of the same owner's fails. */
export interface EndpointFailing {
  readonly webhook: string;
  readonly since: string | null;
}

/** Nothing is left of a quota. */
export interface QuotaUsedUp {
  readonly quota: string;
  readonly used: bigint;
  readonly limit: bigint;
}

/** A message of a webhook. A newer service may send types that are not listed: ignore what you do not know. */
export type WebhookMessage =
  | Envelope<'accountChange', AccountChange>
  | Envelope<'transaction', ExecutedTransaction>
  | Envelope<'programEvent', ProgramEvent>
  | Envelope<'reverted', Reverted>
  | Envelope<'gap', Gap>
  | Envelope<'heartbeat', Heartbeat>
  | Envelope<'filterRefused', FilterRefused>
  | Envelope<'filter.refused', FilterRefused>
  | Envelope<'resumed', Resumed>
  | Envelope<'endpoint.disabled', EndpointDisabled>
  | Envelope<'endpoint.failing', EndpointFailing>
  | Envelope<'quota', QuotaUsedUp>;

/** A message that was delivered without its data, where the webhook asks for that: `webhooks.message` reads it whole. */
export type ThinMessage = Omit<Envelope<WebhookMessage['type'], never>, 'data'> & {
  /** Length of what was left out. */
  readonly dataBytes: bigint;
};
