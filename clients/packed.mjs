// A package as it is published, for the tests of each: packed by npm, and installed in a clean folder.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// npm's script, run by this interpreter where the caller names it: `npm` need not be on PATH.
const npm = (words, folder) => {
  const script = process.env.npm_execpath ?? process.env.SLUICE_NPM;
  const [program, before] = script ? [process.execPath, [script]] : ['npm', []];
  const quiet = ['--offline', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  return execFileSync(program, [...before, ...words, ...quiet], { cwd: folder, encoding: 'utf8' });
};

// Packs the package whose sources are in `root`, and returns the folder in which it is installed until the test `t` is over. `flags` are
// more words for npm's installation.
export function installed(t, root, ...flags) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-package-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const [packed] = JSON.parse(npm(['pack', '--json', '--pack-destination', folder], root));
  const paths = packed.files.map(({ path }) => path).sort();
  assert.ok(paths.every((path) => /^(dist\/.*\.(js|d\.ts)|package\.json|README\.md)$/.test(path)), paths.join(' '));
  assert.ok(paths.includes('README.md') && paths.includes('dist/index.d.ts'));
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}');
  npm(['install', join(folder, packed.filename), ...flags], folder);
  return folder;
}
