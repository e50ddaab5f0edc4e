// The reference in Chromium: what Swagger UI draws once somebody opens, tries or authorizes something.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { assertSoundInEveryForm, open, press, tabTo } from './browser.js';

// The reference follows no theme: as it is loaded it is judged in both and whole, and what is opened there in this one and alone,
// since each of its some forty operations takes the rules as long as a page of the console.
const opened = (within) => ({ themes: ['light'], within });

async function openReference() {
  const reference = await open('/docs');
  await reference.page.locator('.opblock').first().waitFor();
  return reference;
}

// Opens an operation, by its tag and its name, and gets it ready to be tried.
async function tryOut(page, operation) {
  const block = page.locator(`#operations-${operation}`);
  await block.locator('.opblock-summary-control').click();
  await block.locator('.try-out__btn').click();
  await block.locator('.execute').waitFor();
  await block.locator('.responses-inner').waitFor();
  return block;
}

test('the reference shows every operation of the description', async () => {
  const { page, faults, close } = await openReference();
  const { paths } = await (await page.request.get('/openapi.json')).json();
  const operations = Object.values(paths).flatMap((path) => Object.values(path).map(({ tags, operationId }) => `operations-${tags[0]}-${operationId}`));
  assert.ok(operations.length > 30, `${operations.length} operations`);
  const shown = await page.locator('.opblock').evaluateAll((blocks) => blocks.map(({ id }) => id));
  assert.deepEqual(shown.sort(), operations.sort());
  assert.deepEqual(faults, []);
  await close();
});

test('an operation is reached, opened and tried by keyboard alone, and its answer is shown', async () => {
  const { page, faults, close } = await openReference();
  await tabTo(page, '#operations-pools-listPools .opblock-summary-control');
  await page.keyboard.press('Enter');
  await page.locator('#operations-pools-listPools .try-out__btn').waitFor();
  // It is opened in the address, too, so that somebody else can be led there.
  assert.equal(new URL(page.url()).hash, '#/pools/listPools');
  await tabTo(page, '#operations-pools-listPools .try-out__btn');
  await page.keyboard.press('Space');
  // What stands in the field is the description's example.
  await tabTo(page, '#operations-pools-listPools [data-param-name="mint"] input');
  await page.keyboard.press('Control+A');
  await page.keyboard.type(process.env.SLUICE_MINT_ALFA);
  await tabTo(page, '#operations-pools-listPools .execute');
  await page.keyboard.press('Enter');
  // The pool that the mint trades in trades this one as well.
  await page.locator('.live-responses-table .response pre', { hasText: process.env.SLUICE_MINT_BETA }).first().waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test('a body is sent from the reference, and the answer to it is shown', async () => {
  const { page, faults, close } = await openReference();
  const block = await tryOut(page, 'transactions-explainTransaction');
  await block.locator('.execute').click();
  const answer = block.locator('.live-responses-table .response').first();
  await answer.locator('pre', { hasText: 'guardedSwap' }).first().waitFor();
  assert.match(await answer.locator('.response-col_status').textContent(), /^\s*200/);
  await assertSoundInEveryForm(page, opened('#operations-transactions-explainTransaction'));
  assert.deepEqual(faults, []);
  await close();
});

test('operations of every method are sound while they are tried out', async () => {
  const { page, faults, close } = await openReference();
  for (const operation of ['quote-getQuote', 'keys-createKey', 'webhooks-putIdl', 'webhooks-changeWebhook', 'webhooks-deleteWebhook']) await tryOut(page, operation);
  await assertSoundInEveryForm(page, opened('.opblock.is-open'));
  assert.deepEqual(faults, []);
  await close();
});

test('a schema is sound with all that it holds', async () => {
  const { page, faults, close } = await openReference();
  await press(page, 'section.models button');
  const schema = page.locator('.models article', { hasText: 'NewWebhookBody' }).first();
  await schema.locator('.json-schema-2020-12-expand-deep-button').first().click();
  await schema.locator('.json-schema-2020-12-property').first().waitFor();
  await assertSoundInEveryForm(page, opened('.models'));
  assert.deepEqual(faults, []);
  await close();
});

test('a key is given to the reference and taken back', async () => {
  const { page, faults, close } = await openReference();
  await press(page, '.btn.authorize');
  await page.locator('.modal-ux input').fill('sluice_of_the_tests');
  await assertSoundInEveryForm(page, opened('.modal-ux'));
  await press(page, '.modal-ux .btn.authorize');
  const logout = page.locator('.modal-ux .modal-btn', { hasText: 'Logout' });
  await logout.waitFor();
  await assertSoundInEveryForm(page, opened('.modal-ux'));
  await logout.click();
  await page.locator('.modal-ux input').waitFor();
  await press(page, '.close-modal');
  await page.locator('.modal-ux').waitFor({ state: 'detached' });
  assert.deepEqual(faults, []);
  await close();
});
