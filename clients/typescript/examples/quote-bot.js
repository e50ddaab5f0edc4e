// A bot on a quote stream: swaps as soon as the market pays what it wants, and not before.

import { swapQuoted } from './swap.js';

export async function swapAt({ sluice, chain, wallet, inputMint, outputMint, amount, atLeast, signal, onQuote }) {
  const asked = { inputMint, outputMint, amount, slippageBps: 50 };
  for await (const { quote, context } of sluice.quotes.stream(asked, { signal })) {
    onQuote?.(quote, context.slot);
    if (quote.outAmount >= atLeast) {
      // Nothing below what was waited for is accepted, however far the price slips before the swap is executed.
      const minimumOut = quote.minimumOut > atLeast ? quote.minimumOut : atLeast;
      return swapQuoted({ sluice, chain, wallet, quote: { ...quote, minimumOut }, context });
    }
  }
  return undefined;
}
