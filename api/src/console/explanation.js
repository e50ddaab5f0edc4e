// An explanation of the API as elements: what each instruction does, what it may cost, what became of it.

import { element, facts } from './page.js';

const PROGRAMS = {
  guard: 'the guard',
  exchange: 'the exchange',
  token: 'SPL Token',
  token2022: 'Token-2022',
  associatedToken: 'associated tokens',
  system: 'the system program',
  computeBudget: 'the compute budget',
  memo: 'memo',
};

const key = (address) => element('span', { class: 'key' }, address ?? 'in a lookup table');

const rights = ({ isSigner, isWritable }) => [isSigner ? 'signs' : null, isWritable ? 'may change' : null].filter((right) => right !== null).join(', ');

function accounts(list) {
  const rows = list.map((account) => element('tr', {}, element('td', {}, account.role ?? 'not known'), element('td', {}, key(account.pubkey)), element('td', {}, rights(account))));
  const head = ['Role', 'Account', 'In this transaction'].map((title) => element('th', { scope: 'col' }, title));
  const table = element('table', {}, element('thead', {}, element('tr', {}, ...head)), element('tbody', {}, ...rows));
  return element('div', { class: 'wide', tabindex: '0', role: 'region', 'aria-label': 'Accounts' }, table);
}

function step({ program, programName, name, says, caution, arguments: given, accounts: named, data }) {
  const title = `${PROGRAMS[programName] ?? program}: ${name ?? 'not known here'}`;
  const values = element('dl', {});
  facts(values, [...given.map((argument) => [argument.name, argument.value]), ['program', key(program)], ['data', element('code', {}, data === '' ? 'none' : data)]]);
  return element('li', {},
    element('strong', {}, title),
    element('p', {}, says),
    caution === null ? null : element('p', { class: 'wrong' }, caution),
    element('details', {}, element('summary', {}, `Accounts and data of instruction ${name ?? program}`), named.length === 0 ? null : accounts(named), values));
}

const spend = ({ from, asset, mint, amountString, instruction }) =>
  element('li', {}, `instruction ${instruction + 1}: ${amountString} ${asset === 'lamports' ? 'lamports' : `of ${mint ?? 'a token'}, smallest units,`} from ${from ?? 'an account of a lookup table'}`);

function execution({ slot, blockTime, feeLamportsString, computeUnits, error, logs }) {
  const list = element('dl', {});
  facts(list, [
    ['outcome', error === null ? element('span', { class: 'well' }, 'succeeded') : element('span', { class: 'wrong' }, `failed: ${error.name ?? error.source}: ${error.message}`)],
    ['slot', slot],
    ['time', blockTime === null ? null : new Date(blockTime * 1000).toISOString()],
    ['fee, lamports', feeLamportsString],
    ['compute units', computeUnits],
  ]);
  const lines = element('details', {}, element('summary', {}, 'Logs'), element('pre', { class: 'wide', tabindex: '0' }, logs.join('\n')));
  return [element('h3', {}, 'What became of it'), list, lines];
}

// All of it, in place of what `place` holds.
export function show(place, explained) {
  const { costs } = explained;
  const list = element('dl', {});
  facts(list, [
    ['signature', explained.signature === null ? 'none yet' : key(explained.signature)],
    ['format', `${explained.version === 'legacy' ? 'legacy' : `version ${explained.version}`}, ${explained.size} bytes`],
    [explained.hasNonce ? 'nonce' : 'blockhash', key(explained.blockhash)],
    ['signers, the first pays fees', element('ul', {}, ...explained.signers.map(({ pubkey, hasSigned }) => element('li', {}, key(pubkey), hasSigned ? ' has signed' : ' has not signed')))],
    ['base fee, lamports', costs.baseFeeLamportsString],
    ['priority fee at most, lamports', costs.priorityFeeLamportsString],
    ['compute unit limit', costs.computeUnitLimit ?? 'none stated'],
    ['instructions take at most', costs.spends.length === 0 ? 'nothing that their data say' : element('ul', {}, ...costs.spends.map(spend))],
  ]);
  const verdict = explained.isKnown
    ? element('p', {}, explained.callsGuard ? 'Every instruction is known here, and the guard is called.' : 'Every instruction is known here; the guard is not called.')
    : element('p', { class: 'wrong' }, 'Not every instruction is known here: what those do that are not, nobody has checked.');
  place.replaceChildren(
    verdict,
    list,
    element('h3', {}, 'Instructions'),
    element('ol', { class: 'steps' }, ...explained.instructions.map(step)),
    ...(explained.execution === null ? [] : execution(explained.execution)),
  );
}

// Whether a transaction is what is built for a body, in words.
export const verdict = ({ equal, difference }) =>
  equal ? 'Sluice builds this very transaction for that body.' : `Sluice builds another one for that body: at ${difference.at} it has ${difference.built}, and this one ${difference.found}.`;
