/** Webhooks: subscriptions to what happens on the chain, their messages and deliveries. */

import type { components } from './generated/schema.js';
import { lines } from './lines.js';
import type { WebhookMessage } from './message.js';
import { ConnectionError, ProblemError } from './problem.js';
import { OPERATIONS } from './generated/operations.js';
import { type CallOptions, type NamedCallOptions, type OperationName, type Transport, readAnswer } from './transport.js';

type Schemas = components['schemas'];

/** A webhook as the service knows it. */
export type Webhook = Schemas['Webhook'];

/** A message that is kept, with the `webhook-id` that it is delivered under. */
export interface WebhookEvent {
  readonly id: string;
  readonly body: WebhookMessage;
}

/** A message that came down the stream of a temporary webhook. */
export type StreamLine = Schemas['StreamLine'];

/** A change that is refused where the webhook was written since it was read. */
export interface ChangeOptions extends CallOptions {
  /** The `status.version` that the change is based on. */
  readonly version?: bigint;
}

/** So much silence means that the connection is gone, milliseconds: a sign of life comes every 15,000. */
const RELAY_IDLE = 40_000;

/** Reads and writes webhooks. An API key is needed but in keyless mode. */
export class Webhooks {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Creates a webhook. No other answer shows its secret. It is repeated only under an `idempotencyKey`. */
  create(body: Schemas['NewWebhookBody'], options: NamedCallOptions = {}): Promise<Schemas['CreatedWebhook']> {
    const { idempotencyKey, ...call } = options;
    const headers: Record<string, string> = idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey };
    return this.#transport.call('createWebhook', { body, headers }, call);
  }

  /** One webhook. */
  get(id: string, options?: CallOptions): Promise<Webhook> {
    return this.#transport.call('getWebhook', { path: { id } }, options);
  }

  /** All webhooks of the key; pages of `limit` are fetched as the loop goes on. */
  list(query: { readonly limit?: number } = {}, options?: CallOptions): AsyncGenerator<Webhook, void, undefined> {
    type Page = Schemas['WebhookPage'];
    return this.#pages<Page, Webhook>('listWebhooks', {}, query, ({ webhooks }) => webhooks, options);
  }

  /** Replaces a webhook whole. */
  replace(id: string, body: Schemas['ReplaceBody'], options?: ChangeOptions): Promise<Webhook> {
    return this.#change('replaceWebhook', id, body, options);
  }

  /** Changes the members that are named. */
  change(id: string, body: Schemas['ChangeBody'], options?: ChangeOptions): Promise<Webhook> {
    return this.#change('changeWebhook', id, body, options);
  }

  /** Deletes a webhook. */
  async delete(id: string, options?: CallOptions): Promise<void> {
    try {
      await this.#transport.call('deleteWebhook', { path: { id } }, options);
    } catch (error) {
      // An attempt before this one deleted it, and its answer was lost.
      if (!(error instanceof ProblemError && error.is('not_found') && error.attempts > 1)) {
        throw error;
      }
    }
  }

  /** Adds accounts to the filter. */
  addAccounts(id: string, accounts: readonly string[], options?: ChangeOptions): Promise<Schemas['FilterEdit']> {
    return this.#change('addAccounts', id, { accounts }, options);
  }

  /** Removes accounts from the filter. */
  removeAccounts(id: string, accounts: readonly string[], options?: ChangeOptions): Promise<Schemas['FilterEdit']> {
    return this.#change('removeAccounts', id, { accounts }, options);
  }

  /** Adds programs to the filter. */
  addPrograms(id: string, programs: readonly string[], options?: ChangeOptions): Promise<Schemas['FilterEdit']> {
    return this.#change('addPrograms', id, { programs }, options);
  }

  /** Removes programs from the filter. */
  removePrograms(id: string, programs: readonly string[], options?: ChangeOptions): Promise<Schemas['FilterEdit']> {
    return this.#change('removePrograms', id, { programs }, options);
  }

  /** Messages with their attempts, newest first; pages of `limit` are fetched as the loop goes on. */
  deliveries(
    id: string,
    query: { readonly limit?: number; readonly state?: Schemas['DeliveryState']; readonly sequence?: bigint | number } = {},
    options?: CallOptions,
  ): AsyncGenerator<Schemas['Delivery'], void, undefined> {
    type Page = Schemas['DeliveryPage'];
    return this.#pages<Page, Schemas['Delivery']>('listDeliveries', { id }, query, (page) => page.deliveries, options);
  }

  /**
   * Messages in the order of their numbers, whatever became of their delivery, up to the newest one: for a receiver that
   * finds a hole. `after` is the last number that is known.
   */
  async *events(
    id: string,
    query: { readonly after?: bigint | number; readonly limit?: number } = {},
    options?: CallOptions,
  ): AsyncGenerator<WebhookEvent, void, undefined> {
    let after = BigInt(query.after ?? 0);
    for (;;) {
      const page = await this.#transport.call<Schemas['EventPage']>(
        'listEvents',
        { path: { id }, query: { ...query, after } },
        options,
      );
      const events = page.events as unknown as WebhookEvent[];
      yield* events;
      const last = events.at(-1)?.body.sequence;
      if (last === undefined || last >= page.lastSequence) {
        return;
      }
      after = last;
    }
  }

  /** One message, whole, whatever became of its delivery: for what was delivered without its data. */
  message(id: string, messageId: string, options?: CallOptions): Promise<WebhookEvent> {
    return this.#transport.call('getMessage', { path: { id, messageId } }, options);
  }

  /** Sends stored messages again. */
  redeliver(id: string, body: Schemas['RedeliverBody'], options?: CallOptions): Promise<Schemas['Redelivered']> {
    return this.#transport.call('redeliver', { path: { id }, body }, options);
  }

  /** Gives a message up, so that those after it have their turn. */
  skip(id: string, body: Schemas['SkipBody'], options?: CallOptions): Promise<Schemas['SkipAnswer']> {
    return this.#transport.call('skipMessage', { path: { id }, body }, options);
  }

  /** Has the webhook told what becomes of the caller's other webhooks. */
  setOperations(id: string, body: Schemas['OperationsBody'], options?: CallOptions): Promise<Schemas['Operations']> {
    return this.#transport.call('setOperations', { path: { id }, body }, options);
  }

  /** Of which operations the webhook is told. */
  operations(id: string, options?: CallOptions): Promise<Schemas['Operations']> {
    return this.#transport.call('getOperations', { path: { id } }, options);
  }

  /** Has slots told that the webhook did not watch: as a `resumed` message names them, for example. */
  requestBackfill(id: string, body: Schemas['BackfillBody'], options?: CallOptions): Promise<Schemas['Backfill']> {
    return this.#transport.call('requestBackfill', { path: { id }, body }, options);
  }

  /** How far the newest backfill is. */
  backfill(id: string, options?: CallOptions): Promise<Schemas['Backfill']> {
    return this.#transport.call('getBackfill', { path: { id } }, options);
  }

  /** Has the last slots matched, and nothing stored or sent. */
  requestDryRun(id: string, body: Schemas['DryRunBody'], options?: CallOptions): Promise<Schemas['DryRun']> {
    return this.#transport.call('requestDryRun', { path: { id }, body }, options);
  }

  /** How far the newest dry run is, and what it has found. */
  dryRun(id: string, options?: CallOptions): Promise<Schemas['DryRun']> {
    return this.#transport.call('getDryRun', { path: { id } }, options);
  }

  /** Uploads the IDL of a program: it decodes the program's events for the caller's webhooks. */
  putIdl(programId: string, body: Schemas['NewIdl'], options?: CallOptions): Promise<Schemas['Idl']> {
    return this.#transport.call('putIdl', { path: { programId }, body }, options);
  }

  /** The IDL by which a program's events are decoded for the caller's webhooks. */
  idl(programId: string, options?: CallOptions): Promise<Schemas['Idl']> {
    return this.#transport.call('getIdl', { path: { programId } }, options);
  }

  /** Removes the caller's own IDL of a program. */
  async deleteIdl(programId: string, options?: CallOptions): Promise<void> {
    await this.#transport.call('deleteIdl', { path: { programId } }, options);
  }

  /** Makes a new secret; the one before signs beside it for a while. */
  rotateSecret(id: string, body: Schemas['RotateBody'] = {}, options?: CallOptions): Promise<Schemas['Rotated']> {
    return this.#transport.call('rotateSecret', { path: { id }, body }, options);
  }

  /** Sends a sample of each event to the endpoint now. */
  test(id: string, options?: CallOptions): Promise<Schemas['Tested']> {
    return this.#transport.call('testWebhook', { path: { id } }, { timeoutMs: TEST_TIMEOUT, ...options });
  }

  /**
   * The messages of a temporary webhook as they are made, until the loop is left, the signal is aborted or the connection
   * is lost. What is not reported comes again.
   */
  async *stream(id: string, options: { readonly signal?: AbortSignal } = {}): AsyncGenerator<StreamLine, void, undefined> {
    const ended = new AbortController();
    const signal = options.signal === undefined ? ended.signal : AbortSignal.any([ended.signal, options.signal]);
    try {
      const headers = { accept: 'application/x-ndjson' };
      const response = await this.#transport.open(OPERATIONS.openStream, { path: { id }, headers }, signal);
      if (response.body === null) {
        throw new ConnectionError('the stream has no body');
      }
      for await (const line of lines(response.body, RELAY_IDLE)) {
        if (line.trim() !== '') {
          yield readAnswer(line) as StreamLine;
        }
      }
    } finally {
      ended.abort();
    }
  }

  /** Reports what became of a message that came down the stream. */
  async report(id: string, body: Schemas['ReportBody'], options?: CallOptions): Promise<void> {
    await this.#transport.call('reportMessage', { path: { id }, body }, options);
  }

  #change<Answer>(name: OperationName, id: string, body: unknown, options: ChangeOptions = {}): Promise<Answer> {
    const { version, ...call } = options;
    const headers: Record<string, string> = version === undefined ? {} : { 'if-match': `"${version}"` };
    return this.#transport.call(name, { path: { id }, body, headers }, call);
  }

  async *#pages<Page extends { nextCursor: string | null }, Item>(
    name: OperationName,
    path: Record<string, string>,
    query: object,
    items: (page: Page) => readonly Item[],
    options: CallOptions | undefined,
  ): AsyncGenerator<Item, void, undefined> {
    let cursor: string | undefined;
    do {
      const page: Page = await this.#transport.call<Page>(name, { path, query: { ...query, cursor } }, options);
      yield* items(page);
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
  }
}

/** How long a test may take: the endpoint has up to its own deadline for each sample, milliseconds. */
const TEST_TIMEOUT = 60_000;
