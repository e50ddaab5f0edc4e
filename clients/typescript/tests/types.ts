/** Types as a caller has them: this file is checked, and never run. */

import { createClient } from '@solana/kit';

import { type ProblemCode, ProblemError, Sluice, explain, webhooks } from '@sluice/client';
import { sluice } from '@sluice/client/kit';

const client = new Sluice({ url: 'https://sluice.example' });

export async function swaps(): Promise<void> {
  const { quote, context } = await client.quotes.get({ inputMint: 'a', outputMint: 'b', amount: 5n, slippageBps: 50 });
  const amount: bigint = quote.outAmount;
  const bps: number = context.slippageBps;
  // An answer's quote is the next request's.
  const request = { quote, userPublicKey: 'u', priorityFeeLamports: 5_000 };
  const { transaction, costs } = await client.swaps.transaction(request);
  const rent: readonly bigint[] = costs.rent.map(({ lamports }) => lamports);
  const { isAsQuoted } = explain(transaction, { request });
  const { instruction } = await client.swaps.instruction({ quote: { inputMint: 'a', outputMint: 'b' }, userPublicKey: 'u' });
  for await (const next of client.quotes.stream({ inputMint: 'a', outputMint: 'b', amount: '5' })) {
    const slot: bigint = next.context.slot;
    console.log(slot);
  }
  client.quotes.stream({ inputMint: 'a', outputMint: 'b', amount: 5n }, { over: 'websocket', after: 7n });
  // @ts-expect-error: there is no such way
  client.quotes.stream({ inputMint: 'a', outputMint: 'b', amount: 5n }, { over: 'grpc' });
  // @ts-expect-error: an amount is required
  await client.quotes.get({ inputMint: 'a', outputMint: 'b' });
  // @ts-expect-error: there is no such field
  await client.swaps.transaction({ ...request, slippage: 5 });
  console.log(amount, bps, rent, isAsQuoted, instruction.data);
}

export function problems(error: unknown): ProblemCode | undefined {
  if (error instanceof ProblemError) {
    if (error.is('quote_stale')) {
      const code: 'quote_stale' = error.code;
      return code;
    }
    // @ts-expect-error: there is no such code
    error.is('quote_too_old');
    return error.code;
  }
  return undefined;
}

export async function deliveries(body: Uint8Array, headers: Headers): Promise<bigint> {
  const { message } = await webhooks.verify(body, headers, 'whsec_');
  switch (message.type) {
    case 'accountChange':
      return message.data.lamports;
    case 'transaction':
      return message.data.fee;
    case 'reverted':
      return message.data.sequence;
    default:
      return message.slot;
  }
}

export async function lists(): Promise<void> {
  const { webhook } = await client.webhooks.create({ url: 'https://x', events: ['transaction'], filters: { accounts: ['a'] } });
  // An answer's members are the next request's.
  await client.webhooks.change(webhook.id, { heartbeat: webhook.heartbeat }, { version: webhook.status.version });
  for await (const { body } of client.webhooks.events(webhook.id, { after: 5n })) {
    const sequence: bigint = body.sequence;
    console.log(sequence);
  }
  for await (const pool of client.pools.list({ mint: 'm' })) {
    const reserves: readonly (bigint | null)[] = pool.tokens.map(({ reserve }) => reserve);
    console.log(reserves);
  }
}

export async function kit(): Promise<bigint> {
  const all = createClient().use(sluice({ url: 'https://sluice.example' }));
  const { quote } = await all.sluice.quotes.get({ inputMint: 'a', outputMint: 'b', amount: 5n });
  return quote.minimumOut;
}
