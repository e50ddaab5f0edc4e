// A bot on a quote stream: swaps as soon as the market pays what it wants, and not before.

import { swap } from './swap.js';

export async function swapAt({ atLeast, signal, onQuote, ...order }) {
  const { sluice, inputMint, outputMint, amount } = order;
  for await (const { quote, context } of sluice.quotes.stream({ inputMint, outputMint, amount }, { signal })) {
    onQuote?.(quote, context.slot);
    if (quote.outAmount >= atLeast) {
      return swap(order);
    }
  }
  return undefined;
}
