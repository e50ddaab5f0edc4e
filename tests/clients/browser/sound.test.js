// Console and reference in Chromium: every page wide and narrow, in both themes, without a fault of policy or of accessibility.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';

import { assertSoundInEveryForm, assertSoundInThemes, explainSample, open, quoteAndBuild, swap, WIDTHS } from './browser.js';

const PAGES = ['/console', '/console/pools', '/console/swap', '/console/explain', '/console/webhooks', '/console/keys', '/console/usage', '/console/sign-in', '/docs'];

// The folder for a picture of each page in each form; none are taken without one.
const PICTURES = process.env.SLUICE_SCREENSHOTS;

// Opens a pool and waits for all that is drawn of it.
async function openPool(page) {
  await page.locator('#found tbody button').first().click();
  await page.locator('#live', { hasText: 'as of slot' }).waitFor();
  // A flat line has no height, so it counts as hidden.
  for (const plot of ['#history', '#impact']) await page.locator(`${plot} polyline`).first().waitFor({ state: 'attached' });
}

for (const width of WIDTHS) {
  for (const path of PAGES) {
    test(`${path} is sound in both themes: ${width} px`, async () => {
      const { page, faults, close } = await open(path, { width });
      await page.locator('h1').waitFor();
      if (path === '/console/pools') await openPool(page);
      if (path === '/console/webhooks') await page.locator('#new').click();
      if (path === '/console/swap') await quoteAndBuild(page);
      if (path === '/console/explain') await explainSample(page);
      if (path === '/docs') await page.locator('.opblock').first().waitFor();
      await page.waitForTimeout(300);
      const judged = async (theme) => {
        if (PICTURES) await page.screenshot({ path: join(PICTURES, `${path.slice(1).replaceAll('/', '-')}-${theme}-${width}.png`), fullPage: true });
      };
      await assertSoundInThemes(page, { judged });
      assert.deepEqual(faults, []);
      await close();
    });
  }
}

test('the themes of the console differ in colours alone, by the system and by the switch', async () => {
  const { page, close } = await open('/console');
  const ofThemes = await page.evaluate(() => {
    const rules = [...document.styleSheets].flatMap(({ cssRules }) => [...cssRules]);
    const themed = rules.flatMap((rule) => {
      if (rule instanceof CSSMediaRule && rule.conditionText.includes('prefers-color-scheme')) return [...rule.cssRules];
      return rule instanceof CSSStyleRule && rule.selectorText.includes('data-theme') ? [rule] : [];
    });
    return themed.map(({ selectorText, style }) => [selectorText, Object.fromEntries([...style].map((name) => [name, style.getPropertyValue(name).trim()]))]);
  });
  assert.ok(ofThemes.length >= 2, JSON.stringify(ofThemes));
  for (const [selector, set] of ofThemes) {
    assert.match(selector, /^:root/);
    for (const [name, value] of Object.entries(set)) assert.ok(name === 'color-scheme' || (name.startsWith('--') && /^#[0-9a-f]{6}$/.test(value)), `${selector}: ${name}: ${value}`);
  }
  await close();
});

test('a swap on its way is sound, and so is what became of it', async () => {
  const { page, faults, close } = await open('/console/swap');
  await swap(page);
  assert.ok(await page.locator('#sent').isVisible());
  await assertSoundInEveryForm(page);
  await page.locator('#outcome a').click();
  await page.locator('#explanation h3', { hasText: 'What became of it' }).waitFor();
  await page.locator('#explanation summary', { hasText: 'Logs' }).click();
  await assertSoundInEveryForm(page);
  assert.deepEqual(faults, []);
  await close();
});
