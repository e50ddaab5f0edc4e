// Console in Chromium: every page in both themes, wide and narrow, without a fault of policy or of accessibility.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';

import { explainSample, open, quoteAndBuild } from './browser.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const PAGES = ['/console', '/console/pools', '/console/swap', '/console/explain', '/console/webhooks', '/console/keys', '/console/usage', '/console/sign-in'];
const WIDTHS = [360, 1280];
const SERIOUS = ['serious', 'critical'];

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
        await page.waitForTimeout(300);
        const [wide, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
        assert.ok(wide <= screen, `${wide} px of content on ${screen}`);
        if (PICTURES) await page.screenshot({ path: join(PICTURES, `${path.slice(1).replaceAll('/', '-')}-${scheme}-${width}.png`), fullPage: true });
        await page.evaluate(AXE);
        const { violations } = await page.evaluate(() => globalThis.axe.run());
        const serious = violations.filter(({ impact }) => SERIOUS.includes(impact));
        assert.deepEqual(serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`), []);
        assert.deepEqual(faults, []);
        await close();
      });
    }
  }
}
