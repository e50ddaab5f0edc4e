// Chromium as the tests use it: pages that note every fault of their own and every request to another host.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { after, before } from 'node:test';

import { chromium } from 'playwright-core';

const API = process.env.SLUICE_API_URL;

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

// A page that notes every fault of its own and every request to another host.
export async function open(path, { scheme = 'light', width = 1280 } = {}) {
  const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 900 }, baseURL: API });
  const page = await context.newPage();
  const faults = [];
  page.on('pageerror', (error) => faults.push(`${error}`));
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text());
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
