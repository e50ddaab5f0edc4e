// Console and reference in Chromium: every page in both themes, wide and narrow, without a fault of policy or of accessibility.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';

import { assertSound, explainSample, open, quoteAndBuild, WIDTHS } from './browser.js';

const PAGES = ['/console', '/console/pools', '/console/swap', '/console/explain', '/console/webhooks', '/console/keys', '/console/usage', '/console/sign-in', '/docs'];

// The folder for a picture of each page in each form; none are taken without one.
const PICTURES = process.env.SLUICE_SCREENSHOTS;

for (const scheme of ['light', 'dark']) {
  for (const width of WIDTHS) {
    for (const path of PAGES) {
      test(`${path} is sound: ${scheme}, ${width} px`, async () => {
        const { page, faults, close } = await open(path, { scheme, width });
        await page.locator('h1').waitFor();
        if (path === '/console/pools') await page.locator('#found tbody button').first().click();
        if (path === '/console/webhooks') await page.locator('#new').click();
        if (path === '/console/swap') await quoteAndBuild(page);
        if (path === '/console/explain') await explainSample(page);
        if (path === '/docs') await page.locator('.opblock').first().waitFor();
        await page.waitForTimeout(300);
        if (PICTURES) await page.screenshot({ path: join(PICTURES, `${path.slice(1).replaceAll('/', '-')}-${scheme}-${width}.png`), fullPage: true });
        await assertSound(page);
        assert.deepEqual(faults, []);
        await close();
      });
    }
  }
}
