// The documents in Chromium, which shows their Markdown, their list and the API's description as text.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { assertSoundInEveryForm, open } from './browser.js';

// The page around a text is the browser's own, in its own colours: no server can give it a title or say its language.
const OF_THE_BROWSER = { themes: ['light'], without: ['document-title', 'html-has-lang'] };

async function assertShown(path) {
  const { page, faults, close } = await open(path);
  const text = await (await page.request.get(path)).text();
  assert.equal(await page.locator('pre').textContent(), text, path);
  await assertSoundInEveryForm(page, OF_THE_BROWSER);
  assert.deepEqual(faults, [], path);
  await close();
  return text;
}

test('every document that is listed is shown as text', async () => {
  const list = await assertShown('/llms.txt');
  const documents = [...list.matchAll(/\]\((\/docs\/\S+\.md)\)/g)].map(([, path]) => path);
  assert.ok(documents.length >= 6, documents.join(' '));
  for (const path of documents) await assertShown(path);
});

test('the description is shown as text', () => assertShown('/openapi.json'));
