// Whether a transaction has the shape of what Sluice builds: every recorded one has, and none that was changed.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, test } from 'node:test';

import { API, open, quoteAndBuild } from './browser.js';

// Every form of transaction that the service builds. Amounts that a number could not hold are not read here.
const { transactions } = JSON.parse(readFileSync(new URL('../../../clients/typescript/tests/transactions.json', import.meta.url), 'utf8'));

const STRANGER = '11111111111111111111111111111112';

let shapeOf;

before(async () => {
  // As the server hands it out. It imports nothing, so that it runs without a page.
  const script = await (await fetch(`${API}/console/assets/shape.js`)).text();
  ({ shapeOf } = await import(`data:text/javascript,${encodeURIComponent(script)}`));
});

async function explained({ transaction }) {
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${API}/v1/transactions/explain`, { method: 'POST', headers, body: JSON.stringify({ transaction }) });
  assert.equal(answer.status, 200);
  return answer.json();
}

// Of the first recorded transaction whose explanation has a place for the change.
async function changed(change) {
  for (const recorded of transactions) {
    const found = await explained(recorded);
    const { fits } = shapeOf(found);
    if (fits === true && change(found) !== false) return shapeOf(found);
  }
  throw new Error('no recorded transaction has a place for the change');
}

const find = ({ instructions }, name) => instructions.find((instruction) => instruction.name === name);

const role = (instruction, wanted) => instruction.accounts.find((account) => account.role === wanted);

// Changes an account of the first instruction of this name, if there is one.
const account = (name, wanted, pubkey = STRANGER) => (found) => {
  const instruction = find(found, name);
  if (instruction === undefined || role(instruction, wanted) === undefined) return false;
  role(instruction, wanted).pubkey = pubkey;
  return true;
};

test('every transaction that the service builds has the shape of one, wherever its accounts are known', async () => {
  let fitting = 0;
  for (const recorded of transactions) {
    const found = await explained(recorded);
    const isHidden = found.instructions.some(({ accounts }) => accounts.some(({ pubkey }) => pubkey === null));
    const { fits, says } = shapeOf(found);
    assert.equal(fits, isHidden ? null : true, `${recorded.name}: ${says}`);
    if (isHidden) continue;
    fitting += 1;
    const { receiver, feePayer, platformFeeBps } = recorded.request;
    assert.equal(says.includes('Fees and rent are paid by'), feePayer !== undefined, says);
    assert.equal(says.includes('A platform takes'), platformFeeBps !== undefined, says);
    if (receiver !== undefined) assert.match(says, new RegExp(receiver), recorded.name);
  }
  assert.ok(fitting > transactions.length / 2, `${fitting} of ${transactions.length} could be judged`);
});

test('what Sluice never adds is named with its place', async () => {
  const added = await changed((found) => {
    const position = found.instructions.length;
    found.instructions.push({ ...found.instructions[0], program: 'a program', programName: null, name: null, accounts: [], arguments: [] });
    found.added = position;
    return true;
  });
  assert.equal(added.fits, false);
  assert.match(added.says, /instruction \d+, not known here of a program, is none that Sluice adds/);
  const approved = await changed((found) => {
    const sync = find(found, 'syncNative');
    if (sync === undefined) return false;
    sync.name = 'approve';
    return true;
  });
  assert.match(approved.says, /instruction \d+, approve of token, is none that Sluice adds/);
});

test('an instruction on other accounts than the swap and its signers have is none of Sluice', async () => {
  const changes = {
    'rent of another': account('createIdempotent', 'payer'),
    'an account of no part': account('create', 'tokenAccount'),
    'an account of another mint': account('create', 'mint'),
    'SOL of another wallet': account('transfer', 'from'),
    'another account counted': account('syncNative', 'account'),
    'an account closed that was there before': account('closeAccount', 'account'),
    'an account of another closed': account('closeAccount', 'owner'),
    'tokens of another account': account('transferChecked', 'source'),
    'rent for an account that gets no fee': account('transferChecked', 'destination'),
    'a nonce of another': account('advanceNonceAccount', 'nonceAuthority'),
    'a temporary account of another wallet': (found) => {
      const made = find(found, 'initializeAccount3');
      if (made === undefined) return false;
      made.arguments.find(({ name }) => name === 'owner').value = STRANGER;
      return true;
    },
    'a part of the SOL': (found) => {
      const unwrap = find(found, 'unwrapLamports');
      if (unwrap === undefined) return false;
      unwrap.arguments[0].value = '5';
      return true;
    },
  };
  for (const [what, change] of Object.entries(changes)) {
    const { fits, says } = await changed(change);
    assert.equal(fits, false, `${what}: ${says}`);
  }
});

test('order, number and signers are those of what Sluice builds', async () => {
  const turned = await changed(({ instructions }) => {
    instructions.push(instructions.splice(instructions.findIndex(({ program }) => program.startsWith('ComputeBudget')), 1)[0]);
  });
  assert.match(turned.says, /stands where Sluice has none like it/);
  const limited = await changed(({ instructions }) => {
    const at = instructions.findIndex(({ name }) => name === 'setComputeUnitLimit');
    if (at < 0) return false;
    instructions.splice(at, 0, instructions[at]);
    return true;
  });
  assert.match(limited.says, /setComputeUnitLimit of computeBudget, is none that Sluice adds/);
  const twice = await changed(({ instructions }) => {
    instructions.push(instructions.find(({ programName }) => programName === 'guard'));
  });
  assert.match(twice.says, /it has 2 swaps of the guard/);
  const without = await changed((found) => {
    found.instructions = found.instructions.filter(({ programName }) => programName !== 'guard');
  });
  assert.match(without.says, /it has 0 swaps of the guard/);
  const signed = await changed(({ signers }) => {
    signers.push({ pubkey: STRANGER, hasSigned: false });
  });
  assert.match(signed.says, /must sign, and has no part in the swap/);
});

test('the page says it of what is pasted, and of what has landed', async () => {
  const { page, faults, close } = await open('/console/explain');
  const recorded = transactions[0];
  await page.locator('#subject').fill(recorded.transaction);
  await page.locator('#ask button').click();
  await page.locator('#shape.well', { hasText: 'It has the shape of what Sluice builds: one swap of the guard' }).waitFor();
  const found = (await explained(recorded)).instructions.length - 1;
  assert.match(await page.locator('#shape').textContent(), new RegExp(`${found} more of the kinds`));
  await page.goto('/console/swap');
  await quoteAndBuild(page);
  await page.locator('#sign').click();
  await page.locator('#steps li', { hasText: 'confirmed' }).waitFor();
  await page.locator('#outcome a').click();
  await page.locator('#shape.well', { hasText: 'It has the shape of what Sluice builds' }).waitFor();
  await page.locator('#request').evaluate((area) => { area.closest('details').open = true; });
  await page.locator('#request').fill('{}');
  await page.locator('#ask button').click();
  await page.locator('#checked', { hasText: 'paste it in base64' }).waitFor();
  assert.deepEqual(faults, []);
  await close();
});
