// A swap: quote, transaction, check of what is about to be signed, signature, confirmation.

import { explain } from '@sluice/client';

export async function swap({ sluice, chain, wallet, inputMint, outputMint, amount, ...more }) {
  const { quote, context } = await sluice.quotes.get({ inputMint, outputMint, amount, slippageBps: 50 });
  return swapQuoted({ sluice, chain, wallet, quote, context, ...more });
}

// The same of a quote that is there already.
export async function swapQuoted({ sluice, chain, wallet, quote, context, ...more }) {
  const request = {
    quote,
    userPublicKey: wallet.address,
    priorityFeeLamports: 20_000,
    expirySlot: context.expirySlot,
    // A pool that has moved meanwhile would make the answer `quote_stale`, with a fresh quote to agree to.
    ...more,
  };
  const answer = await sluice.swaps.transaction(request);
  const { isAsQuoted, faults } = explain(answer.transaction, { request });
  if (!isAsQuoted) {
    throw new Error(`not signed: ${faults.map(({ detail }) => detail).join('; ')}`);
  }
  return { quote, signature: await chain.signAndSend(answer, [wallet]) };
}
