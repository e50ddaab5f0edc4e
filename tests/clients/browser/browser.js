// Chromium as the tests use it: pages that note every fault of their own and every request to another host.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join } from 'node:path';
import { after, before } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';

import { chromium } from 'playwright-core';

export const API = process.env.SLUICE_API_URL;

// A telephone, and a desk.
export const WIDTHS = [360, 1280];

export const THEMES = ['light', 'dark'];

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

// How long a page is waited for, milliseconds: on a machine that runs other tests beside, a page takes ten times as long as alone.
const PATIENCE = 120_000;

// The browser on PATH, without windows where it is there.
const folders = process.env.PATH.split(delimiter);
const EXECUTABLE = ['chromium-headless-shell', 'chromium'].flatMap((name) => folders.map((folder) => join(folder, name))).find((file) => existsSync(file));

let browser;

before(async () => {
  assert.ok(API, 'SLUICE_API_URL is not set; `cargo xtask clients` starts a localnet and sets it');
  assert.ok(EXECUTABLE, 'no Chromium on PATH; `cargo xtask clients` installs it');
  // The tests may run as root in a container, where Chromium has no sandbox; it is shown pages of this machine alone.
  browser = await chromium.launch({ executablePath: EXECUTABLE, args: ['--no-sandbox'] });
});

after(() => browser?.close());

// What Chromium says of an answer that the API does not have at the moment: a market may be behind on a busy machine, and the page
// shows that, and asks again.
export const PASSES = 'status of 503';

// A page that notes every fault of its own and every request to another host.
export async function open(path, { scheme = 'light', width = 1280 } = {}) {
  const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 900 }, baseURL: API });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  const faults = [];
  page.on('pageerror', (error) => faults.push(`${error}`));
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().includes(PASSES)) faults.push(message.text());
  });
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (!['data:', 'blob:'].includes(url.protocol) && url.origin !== new URL(API).origin) faults.push(`another host: ${url}`);
  });
  const answer = await page.goto(path);
  assert.equal(answer.status(), 200, path);
  return { page, faults, close: () => context.close() };
}

// A quote in the playground, and its transaction for the demo wallet.
export async function quoteAndBuild(page) {
  await page.locator('#input-mint').fill(process.env.SLUICE_MINT_SOL);
  await page.locator('#output-mint').fill(process.env.SLUICE_MINT_USDL);
  await page.locator('#amount-in').fill('0.5');
  await page.locator('#live', { hasText: 'as of slot' }).waitFor();
  assert.ok(Number(await page.locator('#amount-out').inputValue()) > 0);
  await page.locator('#fees tbody td', { hasText: 'trade' }).first().waitFor();
  await page.locator('#connect').click();
  await page.locator('#account', { hasText: 'connected' }).waitFor();
  await page.locator('#build:enabled').click();
  await page.locator('#explanation li').first().waitFor();
  await page.locator('#checked:not(:text-is("…"))').waitFor();
}

// A transaction of the API's own description, explained.
export async function explainSample(page) {
  const document = await (await fetch(`${API}/openapi.json`)).json();
  const { transaction } = document.paths['/v1/transactions/explain'].post.requestBody.content['application/json'].example;
  await page.locator('#subject').fill(transaction);
  await page.locator('#ask button').click();
  await page.locator('#explanation li').first().waitFor();
}

// A whole swap with the demo wallet, up to its confirmation.
export async function swap(page) {
  await quoteAndBuild(page);
  await page.locator('#sign').press('Enter');
  await page.locator('#steps li', { hasText: 'confirmed' }).waitFor({ timeout: 60_000 });
}

// What the first list of facts of those that match says: each value by its name.
export const readFacts = (page, selector) =>
  page.locator(selector).first().evaluate((list) => Object.fromEntries([...list.querySelectorAll(':scope > dt')].map((name) => [name.textContent, name.nextElementSibling.textContent])));

// The texts of a table's rows, cell by cell.
export const readRows = (page, selector) =>
  page.locator(`${selector} tbody`).evaluate((body) => [...body.rows].map((row) => [...row.cells].map(({ textContent }) => textContent)));

// Whole tokens as they are shown, in smallest units.
export function unitsShown(text, decimals) {
  const [whole, part = ''] = text.replaceAll('\u202f', '').split('.');
  return BigInt(whole + part.padEnd(decimals, '0')).toString();
}

// Looks until `found` answers something. How long is the runner's own limit, which names the test.
export async function until(found) {
  for (;;) {
    const answer = await found();
    if (answer) return answer;
    await pause(100);
  }
}

// Presses the element `selector` as the keyboard does.
export async function press(page, selector, key = 'Enter') {
  await page.locator(selector).focus();
  await page.keyboard.press(key);
}

const SERIOUS = ['serious', 'critical'];

// Nothing of the page is wider than the screen, and axe finds nothing serious by any of its rules, but for those named in `without`:
// of the whole page, or of the elements that match `within`; with `colours`, by the rules of colours alone.
async function assertSound(page, { without = [], within = 'html', colours = false } = {}) {
  const [wide, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= screen, `${wide} px of content on ${screen}`);
  // It is half a megabyte, and stays in the page.
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(AXE);
  // A rule that axe asks by itself only where rules are chosen: more contrast than is asked for.
  const rules = Object.fromEntries([...without, 'color-contrast-enhanced'].map((rule) => [rule, { enabled: false }]));
  // Of what is well axe would name every element, which takes longest on a large page.
  const options = { rules, resultTypes: ['violations'], ...(colours && { runOnly: ['cat.color'] }) };
  const { violations } = await page.evaluate(([part, asked]) => globalThis.axe.run(part, asked), [within, options]);
  const serious = violations.filter(({ impact }) => SERIOUS.includes(impact));
  assert.deepEqual(serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`), []);
}

// The same in both themes, unless the page has one: by every rule in the first, and in the other, which differs in colours alone, by those of
// colours. `judged` is told each theme that the page is sound in.
export async function assertSoundInThemes(page, { themes = THEMES, judged = () => {}, ...options } = {}) {
  for (const [index, colorScheme] of themes.entries()) {
    await page.emulateMedia({ colorScheme });
    await assertSound(page, { ...options, colours: index > 0 });
    await judged(colorScheme);
  }
}

// The same narrow and wide, of a state of the page that is not there to be loaded.
export async function assertSoundInEveryForm(page, options) {
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    await assertSoundInThemes(page, options);
  }
}

// Keys that are pressed at most on the way to an element: a page has fewer.
const MOST_TABS = 200;

// Goes to `selector` by the Tab key alone, each time forward in the page and with a focus that is seen.
export async function tabTo(page, selector) {
  for (let pressed = 0; pressed < MOST_TABS; pressed += 1) {
    const before = await page.evaluateHandle(() => document.activeElement);
    await page.keyboard.press('Tab');
    const { there, forward, seen, at } = await page.evaluate(([from, wanted]) => {
      const now = document.activeElement;
      const { outlineStyle, outlineWidth } = getComputedStyle(now);
      const { top, bottom } = now.getBoundingClientRect();
      return {
        there: now.matches(wanted),
        // What was pressed may be gone, and from the end of the page it goes on at its beginning.
        forward: from === document.body || now === document.body || now.matches('.skip') || !from.isConnected || (from.compareDocumentPosition(now) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0,
        seen: now === document.body || (outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2 && bottom > 0 && top < innerHeight),
        at: now.outerHTML.slice(0, 120),
      };
    }, [before, selector]);
    assert.ok(forward, `the focus goes back to ${at}`);
    assert.ok(seen, `no focus is seen on ${at}`);
    if (there) return;
  }
  assert.fail(`${selector} is not reached by Tab`);
}
