// The package as it is published: what is in it, and that it installs in a clean folder and works there, beside kit alone.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

// npm's script, run by this interpreter where the caller names it: `npm` need not be on PATH. Kit, the peer, is not installed again.
const npm = (words, folder) => {
  const script = process.env.npm_execpath ?? process.env.SLUICE_NPM;
  const [program, before] = script ? [process.execPath, [script]] : ['npm', []];
  const quiet = ['--offline', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', '--legacy-peer-deps'];
  return execFileSync(program, [...before, ...words, ...quiet], { cwd: folder, encoding: 'utf8' });
};

test('it is packed, installed in a clean folder beside kit, and writes and reads a swap there', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-swap-guard-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const [packed] = JSON.parse(npm(['pack', '--json', '--pack-destination', folder], root));
  const paths = packed.files.map(({ path }) => path).sort();
  assert.ok(paths.every((path) => /^(dist\/.*\.(js|d\.ts)|package\.json|README\.md)$/.test(path)), paths.join(' '));
  assert.ok(paths.includes('README.md') && paths.includes('dist/index.d.ts'));
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}');
  npm(['install', join(folder, packed.filename)], folder);
  mkdirSync(join(folder, 'node_modules/@solana'), { recursive: true });
  symlinkSync(realpathSync(join(root, 'node_modules/@solana/kit')), join(folder, 'node_modules/@solana/kit'));
  writeFileSync(
    join(folder, 'use.js'),
    `import * as guard from '@sluice/swap-guard';
     const amounts = { amountIn: 2n ** 64n - 1n, minimumOut: 7n, expirySlot: 0n };
     const data = guard.getSwapInstructionDataEncoder().encode(amounts);
     const read = guard.getSwapInstructionDataDecoder().decode(data);
     console.log(guard.SWAP_GUARD_PROGRAM_ADDRESS, data.length, Object.values(read).filter((value) => typeof value === 'bigint').join(' '));`,
  );
  const said = execFileSync(process.execPath, ['use.js'], { cwd: folder, encoding: 'utf8' });
  assert.equal(said, 'SGdsaS58Xv2EgQwpXYxYA1jrXFnMuoRY4MEa3v2rx4b 32 18446744073709551615 7 0\n');
});
