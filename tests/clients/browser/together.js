// All tests of this folder in one process, by one browser: starting both for each file takes a second of a processor and more.

import { describe } from 'node:test';
import { readdirSync } from 'node:fs';

// Before the files, so that the browser is started and closed once, and not by the first of them.
import './browser.js';

// How long one file may take, milliseconds: one that hangs is named before all of them are given up. The longest one needs a minute and a
// half where nothing else runs.
const TIMEOUT = 750_000;

const files = readdirSync(new URL('.', import.meta.url)).filter((name) => name.endsWith('.test.js')).sort();

for (const file of files) describe(file, { timeout: TIMEOUT }, async () => { await import(`./${file}`); });
