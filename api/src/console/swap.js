// Swap playground: a live quote for an amount on either side, its transaction explained, signed, sent and followed.

import { attempt, byId, call, element, exact, facts, fillTable, say, units, whole } from './page.js';
import { show, verdict } from './explanation.js';
import { followQuotes } from './quotes.js';
import { fromBase64, messageOf, offer, toBase58, toBase64, withSignature } from './wallets.js';

// After how long without a key the amount is asked for, milliseconds: who types asks once.
const PAUSE_MS = 250;

// Statuses after which nothing more is expected.
const LAST = ['finalized', 'expired', 'unknown'];

// Between two looks for what only the node knows, milliseconds, and looks at most: by then its blockhash is too old.
const LOOK_MS = 1000;
const MOST_LOOKS = 120;

const tokens = new Map();
let mode = 'ExactIn';
let stream = null;
let following = null;
let pause = null;
let quoted = null;
let wallet = null;
let owner = null;
let built = null;

// A mint, asked for once.
function token(mint) {
  if (!tokens.has(mint)) {
    const asked = call(`/v1/mints/${encodeURIComponent(mint)}`);
    asked.catch(() => tokens.delete(mint));
    tokens.set(mint, asked);
  }
  return tokens.get(mint);
}

const sides = () => Promise.all(['input-mint', 'output-mint'].map((id) => token(byId(id).value.trim())));
const key = (address) => element('span', { class: 'key' }, address);
const isExactIn = () => mode === 'ExactIn';

function stop(text) {
  stream?.close();
  stream = null;
  withhold(text);
}

// Nothing is built of a quote that may no longer be true.
function withhold(text) {
  quoted = null;
  byId('live').textContent = text;
  byId('build').disabled = true;
}

async function question() {
  const text = byId(isExactIn() ? 'amount-in' : 'amount-out').value;
  // Before there is an amount somebody may be in the middle of a mint, which is asked for whole or not at all.
  if (text.trim() === '') throw new Error('Type an amount on either side.');
  const [input, output] = await sides();
  const fixed = isExactIn() ? input : output;
  const amount = units(text, fixed.decimals);
  if (amount === null || amount === '0') throw new Error(`Amount: a number above 0 with at most ${fixed.decimals} digits after the point`);
  const query = new URLSearchParams({ inputMint: input.mint, outputMint: output.mint, amount, slippageBps: byId('slippage').value, swapMode: mode });
  if (isExactIn() && byId('two-hops').checked) query.set('maxHops', '2');
  return query;
}

function ask() {
  stop('…');
  byId('fixed').textContent = isExactIn() ? 'What you pay is fixed; what you receive follows.' : 'What you receive is fixed; what you pay follows, and may be the maximum.';
  stream = followQuotes(question, {
    quoted: (answer) => present(answer).catch((error) => say(error.message)),
    waits: withhold,
    ended: stop,
  });
}

function askIn(milliseconds) {
  clearTimeout(pause);
  pause = setTimeout(ask, milliseconds);
}

const typed = attempt(async () => {
  stop('…');
  askIn(PAUSE_MS);
});

// Which side is typed on decides which amount is fixed.
const side = (fixed) => (event) => {
  mode = fixed;
  return typed(event);
};

async function present(answer) {
  const { quote, context } = answer;
  const [input, output] = await sides();
  quoted = { quote, context, input, output, mode };
  const [paid, received] = [context.expectedInString ?? context.amounts.amountIn, context.amounts.outAmount];
  const other = byId(isExactIn() ? 'amount-out' : 'amount-in');
  if (other !== document.activeElement) other.value = isExactIn() ? plain(received, output.decimals) : plain(paid, input.decimals);
  byId('live').textContent = `${whole(paid, input.decimals)} pays ${whole(received, output.decimals)}, as of slot ${context.slot}`;
  byId('build').disabled = owner === null;
  facts(byId('quote'), [
    ['route', element('ul', {}, ...quote.pool.split(',').map((pool) => element('li', {}, key(pool))))],
    isExactIn() ? ['received at least', whole(context.amounts.minimumOut, output.decimals)] : ['paid at most', whole(context.amounts.amountIn, input.decimals)],
    ['it moves the price by', `${context.priceImpactBps / 100} %`],
    ['meant until slot', context.expirySlot],
  ]);
  const fees = await Promise.all(context.fees.map(async (fee) => ({ ...fee, decimals: (await token(fee.mint)).decimals })));
  fillTable(byId('fees'), [
    ['Fee', ({ kind }) => kind],
    ['Amount', ({ amountString, decimals }) => whole(amountString, decimals), true],
    ['Mint', ({ mint }) => key(mint)],
    ['Pool', ({ pool }) => (pool === undefined ? '' : key(pool))],
  ], fees, 'no fee');
  fillTable(byId('others'), [
    ['Pool', ({ pool }) => key(pool)],
    [isExactIn() ? 'Would pay' : 'Would take', ({ outAmountString, amountInString }) => whole(isExactIn() ? outAmountString : amountInString, (isExactIn() ? output : input).decimals), true],
    ['Why not', ({ reason }) => reason],
  ], context.alternatives, 'no other pool');
}

// An amount as it is typed: without the spaces that are shown between thousands.
const plain = (amount, decimals) => whole(amount, decimals).replaceAll('\u202f', '');

const connect = attempt(async () => {
  wallet = chosen();
  owner = await wallet.connect();
  byId('account').textContent = `connected: ${owner}`;
  byId('build').disabled = quoted === null;
});

const build = attempt(async () => {
  const asked = quoted;
  const body = { quote: asked.quote, userPublicKey: owner, swapMode: asked.mode, priorityFeeLamports: byId('priority').value, transactionVersion: wallet.version };
  const answer = await call('/v1/swap/transaction', { method: 'POST', body });
  built = { answer, asked, body };
  const { costs } = answer;
  facts(byId('terms'), [
    ['received, at the quote', whole(answer.amounts.outAmount, asked.output.decimals)],
    ['received at least', whole(answer.amounts.minimumOut, asked.output.decimals)],
    ['fees, lamports', `${costs.baseFeeLamportsString} and ${costs.priorityFeeLamportsString} for priority`],
    ['rent', costs.rent.length === 0 ? 'none' : element('ul', {}, ...costs.rent.map((rent) => element('li', {}, `${rent.lamportsString} lamports for `, key(rent.account), rent.comesBack ? ', which come back' : '')))],
    ['the wallet needs', `${whole(costs.requiredLamportsString, 9)} SOL`],
    ['lands up to block height', answer.lastValidBlockHeight],
  ]);
  byId('built').hidden = false;
  byId('sent').hidden = true;
  byId('sign').hidden = false;
  byId('send-changed').hidden = true;
  byId('checked').textContent = '…';
  show(byId('explanation'), await call('/v1/transactions/explain', { method: 'POST', body: { transaction: answer.transaction } }));
  byId('built').focus();
  const request = { ...body, quote: answer.quote };
  const compared = call('/v1/swap/check', { method: 'POST', body: { transaction: answer.transaction, request } });
  byId('checked').textContent = await compared.then(verdict, (error) => `It could not be compared: ${error.message}`);
});

const sign = attempt(async () => {
  const bytes = fromBase64(built.answer.transaction);
  if (wallet.signAndSend !== undefined) {
    await followSent(bytes, await wallet.signAndSend(bytes));
    return;
  }
  const signed = await wallet.sign(bytes);
  built.signed = toBase64(signed);
  const [before, after] = [messageOf(bytes), messageOf(signed)];
  if (before.length === after.length && before.every((byte, index) => byte === after[index])) {
    await send();
    return;
  }
  // Wallets add assertions of their own, and a page must not send what nobody has seen.
  show(byId('explanation'), await call('/v1/transactions/explain', { method: 'POST', body: { transaction: built.signed } }));
  byId('checked').textContent = 'The wallet has changed the transaction: this is what it signed.';
  byId('sign').hidden = true;
  byId('send-changed').hidden = false;
  byId('built').focus();
});

async function send() {
  const swap = built;
  const begun = performance.now();
  const sent = await call('/v1/transactions', { method: 'POST', body: { transaction: swap.signed, lastValidBlockHeight: String(swap.answer.lastValidBlockHeight) } });
  showSent();
  follow(swap, sent.signature, begun);
}

function showSent() {
  following?.close();
  byId('status').textContent = '';
  byId('steps').replaceChildren();
  facts(byId('outcome'), []);
  byId('sent').hidden = false;
  byId('sent').focus();
}

// What a wallet has sent by itself. The API follows what it has been given, and to send the same twice changes nothing.
async function followSent(bytes, signature) {
  const swap = built;
  swap.signed = toBase64(withSignature(bytes, signature));
  try {
    await send();
  } catch (error) {
    // Unless the API refuses for a while, the signature is of something else: the wallet has changed it first, and has shown that alone.
    await lookFor(swap, toBase58(signature), !error.retryable);
  }
}

// Asks the node for a transaction that the API does not follow, until it has landed.
async function lookFor(swap, signature, isChanged) {
  showSent();
  let isClosed = false;
  following = { close: () => { isClosed = true; } };
  const step = (text) => {
    byId('status').textContent = text;
    byId('steps').append(element('li', {}, text));
  };
  step('sent by the wallet');
  outcome(swap, signature, { spentString: null, receivedString: null, error: null });
  for (let look = 0; look < MOST_LOOKS && !isClosed; look += 1) {
    const explained = await call('/v1/transactions/explain', { method: 'POST', body: { signature } }).catch(() => null);
    if (isClosed) return;
    if (explained !== null) {
      const { error, slot } = explained.execution;
      step(`${error === null ? 'confirmed' : 'failed'}, slot ${slot}`);
      outcome(swap, signature, { spentString: null, receivedString: null, error });
      if (swap !== built) return;
      show(byId('explanation'), explained);
      if (isChanged) byId('checked').textContent = 'The wallet has sent this transaction, and not the one that was built.';
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  if (!isClosed) step('not found; the wallet knows whether it has sent it');
}

function follow(swap, signature, begun) {
  let last = '';
  const mine = new EventSource(`/v1/transactions/${signature}/stream`);
  following = mine;
  mine.addEventListener('status', (event) => {
    const status = exact(event.data);
    const named = status.status === 'failed' ? `failed, ${status.commitment}` : status.status;
    byId('status').textContent = named;
    if (named !== last) byId('steps').append(element('li', {}, `${named} after ${Math.round(performance.now() - begun)} ms${status.slot === null ? '' : `, slot ${status.slot}`}`));
    last = named;
    outcome(swap, signature, status);
    if (LAST.includes(status.status) || status.commitment === 'finalized') mine.close();
  });
  mine.addEventListener('end', (event) => {
    mine.close();
    say(exact(event.data).detail);
  });
}

function outcome({ answer, asked }, signature, { spentString, receivedString, error }) {
  const difference = receivedString === null ? null : BigInt(receivedString) - BigInt(answer.amounts.outAmount);
  facts(byId('outcome'), [
    ['signature', element('a', { class: 'key', href: `/console/explain?signature=${signature}` }, signature)],
    ['spent', whole(spentString, asked.input.decimals)],
    ['received', whole(receivedString, asked.output.decimals)],
    ['quoted', whole(answer.amounts.outAmount, asked.output.decimals)],
    ['received against quoted', difference === null ? '–' : difference === 0n ? 'exactly as quoted' : `${difference > 0n ? '+' : '−'}${whole(difference < 0n ? -difference : difference, asked.output.decimals)}`],
    ...(error === null ? [] : [['why it failed', element('span', { class: 'wrong' }, `${error.name ?? error.source}: ${error.message}`)]]),
  ]);
}

const turn = attempt(async () => {
  const [input, output] = [byId('input-mint'), byId('output-mint')];
  [input.value, output.value] = [output.value, input.value];
  await typed();
});

async function start() {
  const { pools } = await call('/v1/pools?limit=100');
  const mints = new Set(pools.flatMap((pool) => pool.tokens.map(({ mint }) => mint)));
  byId('mints').append(...[...mints].map((mint) => element('option', { value: mint })));
  const first = pools.find(({ isTradable }) => isTradable);
  if (first === undefined) return;
  ['input-mint', 'output-mint'].forEach((id, index) => {
    if (byId(id).value === '') byId(id).value = first.tokens[index].mint;
  });
}

const chosen = offer(byId('wallet'));
byId('amount-in').addEventListener('input', side('ExactIn'));
byId('amount-out').addEventListener('input', side('ExactOut'));
for (const id of ['input-mint', 'output-mint', 'slippage', 'two-hops']) byId(id).addEventListener('change', typed);
byId('ask').addEventListener('submit', typed);
byId('turn').addEventListener('click', turn);
byId('connect').addEventListener('click', connect);
byId('build').addEventListener('click', build);
byId('sign').addEventListener('click', sign);
byId('send-changed').addEventListener('click', attempt(send));
attempt(start)();
