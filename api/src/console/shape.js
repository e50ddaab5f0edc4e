// Whether a transaction has the shape of what Sluice builds, by an explanation of the API: one swap of the guard, and around it
// instructions of the kinds that Sluice adds, in its order, on the accounts of that swap. It imports nothing, and sees no page.

const WRAPPED_SOL = 'So11111111111111111111111111111111111111112';
const SPL_TOKEN = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';

// Length of a token account of SPL Token, bytes, as text like every argument.
const TOKEN_ACCOUNT_BYTES = '165';

// Where an instruction stands in what Sluice builds.
const FIRST = 0;
const BUDGET = 1;
const SET_UP = 2;
const SWAP = 3;
const CLEAN_UP = 4;

const named = (pairs) => Object.fromEntries(pairs.map(({ role, name, pubkey, value }) => [role ?? name, pubkey ?? value]));

// What the swap is about, and what the instructions before did.
class Walk {
  created = new Set();
  raw = new Set();
  unpaid = new Set();
  seen = new Set();
  notes = [];

  constructor(swap, signers) {
    const { user, inputTokenAccount, middleTokenAccount, outputTokenAccount, inputMint, middleMint, outputMint } = named(swap.accounts);
    this.swap = swap;
    this.user = user;
    this.payer = signers[0].pubkey;
    this.input = inputTokenAccount;
    this.output = outputTokenAccount;
    this.inputMint = inputMint;
    this.mints = new Map([[inputTokenAccount, inputMint], [middleTokenAccount, middleMint], [outputTokenAccount, outputMint]]);
    if (this.payer !== user) this.notes.push(`Fees and rent are paid by ${this.payer}.`);
    const { receiver } = named(swap.arguments);
    if (receiver !== undefined) this.notes.push(`What comes out is for ${receiver}.`);
  }

  once(what) {
    const isFirst = !this.seen.has(what);
    this.seen.add(what);
    return isFirst;
  }

  isWrapped(account) {
    return this.mints.get(account) === WRAPPED_SOL;
  }

  fee(amount, of, to) {
    this.notes.push(`A platform takes ${amount} ${of}, for ${to}.`);
    return this.once('fee') ? SET_UP : null;
  }

  // What is paid out after the swap: an account that this transaction created, and never one that may hold more.
  paidOut(account, to, owner) {
    if (owner !== this.user || !this.created.has(account)) return null;
    if (![this.user, this.payer].includes(to)) this.notes.push(`SOL goes to ${to}.`);
    return CLEAN_UP;
  }
}

// What Sluice adds, by program and name: where it stands, or null where it is not as Sluice builds it.
const KINDS = {
  'system advanceNonceAccount': (walk, { nonceAuthority }) => ([walk.user, walk.payer].includes(nonceAuthority) && walk.once('nonce') ? FIRST : null),
  'computeBudget setComputeUnitLimit': (walk) => (walk.once('limit') ? BUDGET : null),
  'computeBudget setComputeUnitPrice': (walk) => (walk.once('price') ? BUDGET : null),
  'computeBudget setLoadedAccountsDataSizeLimit': (walk) => (walk.once('bytes') ? BUDGET : null),
  'associatedToken create': (walk, { payer, tokenAccount, mint }) => {
    walk.created.add(tokenAccount);
    return payer === walk.payer && walk.mints.get(tokenAccount) === mint ? SET_UP : null;
  },
  'associatedToken createIdempotent': (walk, { payer, tokenAccount, mint }) => {
    const isOfSwap = walk.mints.get(tokenAccount) === mint;
    // Beside those of the swap, that of a platform, which gets its fee there.
    const isPlatforms = !walk.mints.has(tokenAccount) && mint === walk.inputMint;
    if (isPlatforms) walk.unpaid.add(tokenAccount);
    return payer === walk.payer && (isOfSwap || isPlatforms) ? SET_UP : null;
  },
  'system createAccountWithSeed': (walk, { payer, account, base = payer }, { owner, space }) => {
    walk.created.add(account);
    walk.raw.add(account);
    const isTokenAccount = owner === SPL_TOKEN && space === TOKEN_ACCOUNT_BYTES && walk.isWrapped(account);
    return payer === walk.payer && base === walk.user && isTokenAccount ? SET_UP : null;
  },
  'token initializeAccount3': (walk, { account, mint }, { owner }) =>
    walk.raw.delete(account) && mint === WRAPPED_SOL && owner === walk.user ? SET_UP : null,
  'system transfer': (walk, { from, to }, { lamports }) => {
    if (from !== walk.user || walk.inputMint !== WRAPPED_SOL) return null;
    if (to === walk.input) return walk.once('wrap') ? SET_UP : null;
    return walk.fee(lamports, 'lamports', to);
  },
  'token syncNative': (walk, { account }) => (account === walk.input ? SET_UP : null),
  'token transferChecked': (walk, { source, mint, destination, owner }, { amount }) => {
    walk.unpaid.delete(destination);
    const isOfInput = source === walk.input && mint === walk.inputMint && owner === walk.user;
    return isOfInput ? walk.fee(amount, `of ${mint}, smallest units`, destination) : null;
  },
  'token unwrapLamports': (walk, { source, destination, owner }, { amount }) =>
    amount === 'all' && walk.isWrapped(source) ? walk.paidOut(source, destination, owner) : null,
  'token closeAccount': (walk, { account, destination, owner }) => walk.paidOut(account, destination, owner),
};

// Token-2022 has these of SPL Token's; SOL is never wrapped by it.
const OF_BOTH = ['transferChecked', 'closeAccount'];

// Where an instruction stands, or null where Sluice adds none like it.
function place(walk, instruction) {
  const { programName, name, accounts, arguments: given } = instruction;
  if (instruction === walk.swap) return SWAP;
  const program = programName === 'token2022' && OF_BOTH.includes(name) ? 'token' : programName;
  const kind = Object.hasOwn(KINDS, `${program} ${name}`) ? KINDS[`${program} ${name}`] : null;
  return kind === null ? null : kind(walk, named(accounts), named(given));
}

function faults(walk, { instructions, signers }) {
  const found = [];
  let last = FIRST;
  instructions.forEach((instruction, index) => {
    const at = place(walk, instruction);
    const what = `instruction ${index + 1}, ${instruction.name ?? 'not known here'} of ${instruction.programName ?? instruction.program},`;
    if (at === null) found.push(`${what} is none that Sluice adds to this swap`);
    else if (at < last) found.push(`${what} stands where Sluice has none like it`);
    last = Math.max(last, at ?? FIRST);
  });
  const strangers = signers.filter(({ pubkey }) => ![walk.user, walk.payer].includes(pubkey));
  found.push(...strangers.map(({ pubkey }) => `${pubkey} must sign, and has no part in the swap`));
  found.push(...[...walk.raw].map((account) => `${account} is created, and never made a token account`));
  found.push(...[...walk.unpaid].map((account) => `${account} is created, has no part in the swap, and nothing is paid into it`));
  return found;
}

// `fits` is null where it cannot be told; `says` has why, and what is to be looked at all the same.
export function shapeOf(explained) {
  const { instructions } = explained;
  const swaps = instructions.filter(({ programName, name }) => programName === 'guard' && name !== null);
  if (swaps.length !== 1) {
    return { fits: false, says: `It has not the shape of what Sluice builds: it has ${swaps.length} swaps of the guard, and Sluice builds one.` };
  }
  const isHidden = ({ name, accounts }) => name !== null && accounts.some(({ pubkey }) => pubkey === null);
  if (instructions.some(isHidden)) {
    return { fits: null, says: 'Whether it has the shape of what Sluice builds cannot be told: it takes accounts from a lookup table that is not known here.' };
  }
  const walk = new Walk(swaps[0], explained.signers);
  const found = faults(walk, explained);
  if (found.length > 0) return { fits: false, says: `It has not the shape of what Sluice builds: ${found.join('; ')}.` };
  const others = instructions.length - 1;
  const around = others === 0 ? '' : `, and ${others} more of the kinds that Sluice adds, in its order and on the accounts of this swap`;
  const says = [`It has the shape of what Sluice builds: one swap of the guard${around}.`, ...walk.notes, 'Whether pool and amounts are those that were asked for, only the body tells.'];
  return { fits: true, says: says.join(' ') };
}
