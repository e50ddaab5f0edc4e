// A sponsored swap: the user owns no SOL, and another wallet pays fees and rents. Both check before they sign.

import { explain } from '@sluice/client';

export async function sponsoredSwap({ sluice, chain, user, sponsor, inputMint, outputMint, amount }) {
  const { quote } = await sluice.quotes.get({ inputMint, outputMint, amount });
  const request = { quote, userPublicKey: user.address, feePayer: sponsor.address, priorityFeeLamports: 0 };
  const answer = await sluice.swaps.transaction(request);
  const { isAsQuoted, faults, fee, signers } = explain(answer.transaction, { request });
  if (!isAsQuoted) {
    throw new Error(`not signed: ${faults.map(({ detail }) => detail).join('; ')}`);
  }
  return { quote, fee, signers, signature: await chain.signAndSend(answer, [sponsor, user]) };
}
