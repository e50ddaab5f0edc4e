// The overview finds a webhook in trouble wherever it stands in the list, and says how many it has looked at.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { open } from './browser.js';

// Webhooks in a played page, as many as the overview asks for.
const IN_A_PAGE = 100;

const webhook = (number, failures) => ({
  id: `wh_${number}`,
  active: true,
  filters: { accounts: [], programs: [] },
  status: { disabledReason: null, refused: null, filter: { inForceSlot: 7 }, endpoint: { breaker: 'closed', failures, failingSince: failures > 0 ? '2026-11-27T00:00:00Z' : null } },
});

// Opens the overview of an owner with so many pages of webhooks, of which these fail. Also returns of which deliveries were asked for.
async function overview(pages, failing) {
  const { page, faults, close } = await open('/console/explain');
  await page.route('**/api/webhooks?*', (route) => {
    const query = new URL(route.request().url()).searchParams;
    assert.equal(query.get('limit'), String(IN_A_PAGE));
    const at = Number(query.get('cursor') ?? 0);
    const webhooks = Array.from({ length: IN_A_PAGE }, (_, index) => webhook(at * IN_A_PAGE + index, failing.includes(at * IN_A_PAGE + index) ? 3 : 0));
    return route.fulfill({ json: { webhooks, nextCursor: at + 1 < pages ? String(at + 1) : null } });
  });
  const asked = [];
  await page.route('**/deliveries?*', (route) => {
    asked.push(new URL(route.request().url()).pathname.split('/')[3]);
    return route.fulfill({ json: { deliveries: [{ attempts: [{ started: '2026-11-27T00:00:00Z', error: 'status 503' }] }], nextCursor: null } });
  });
  await page.goto('/console');
  return { page, faults, close, asked };
}

test('a webhook in trouble is found behind any number that are well, and no other is asked why', async () => {
  const { page, faults, close, asked } = await overview(4, [357]);
  await page.locator('#reasons li', { hasText: 'wh_357: its endpoint fails: status 503' }).waitFor();
  assert.deepEqual([...new Set(asked)], ['wh_357']);
  assert.equal(await page.locator('#looked').textContent(), '');
  assert.deepEqual(faults, []);
  await close();
});

test('where too many are in trouble, or there are too many to look at, all that is known is said', async () => {
  const failing = Array.from({ length: 12 }, (_, index) => index);
  const { page, faults, close, asked } = await overview(7, failing);
  await page.locator('#looked', { hasText: 'the oldest 500 were looked at; there are more' }).waitFor();
  await page.locator('#reasons li', { hasText: 'wh_11: its endpoint fails: 3 attempts in a row since 2026-11-27' }).waitFor();
  assert.equal(await page.locator('#reasons li', { hasText: 'its endpoint fails' }).count(), failing.length);
  assert.equal(new Set(asked).size, 10);
  assert.deepEqual(faults, []);
  await close();
});
