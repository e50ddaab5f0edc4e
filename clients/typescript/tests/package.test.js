// The package as it is published: its size, what is in it, and that it installs and runs alone.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

import { installed } from '../../packed.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

// Bytes that all of it may have, compressed. Nothing is left out or shortened, as a bundler would.
const LIMIT = 20_000;

const modules = () => readdirSync(join(root, 'dist'), { recursive: true }).filter((name) => name.endsWith('.js'));

test('all of it has at most 20 kB compressed', () => {
  const all = Buffer.concat(modules().map((name) => readFileSync(join(root, 'dist', name))));
  const size = gzipSync(all, { level: 9 }).length;
  console.log(`${size} bytes of ${LIMIT}`);
  assert.ok(size <= LIMIT, `${size} bytes`);
});

test('it depends on nothing', () => {
  assert.equal(manifest.dependencies, undefined);
  assert.deepEqual(Object.keys(manifest.peerDependencies), ['@solana/kit']);
  assert.ok(manifest.peerDependenciesMeta['@solana/kit'].optional);
  for (const name of modules()) {
    const text = readFileSync(join(root, 'dist', name), 'utf8');
    for (const [, from] of text.matchAll(/(?:from|import) '([^']+)'/g)) {
      assert.match(from, /^\.\.?\//, `${name} imports ${from}`);
    }
  }
});

test('it is packed, installed in a clean folder, and runs there', (t) => {
  const folder = installed(t, root);
  writeFileSync(
    join(folder, 'use.js'),
    `import { Sluice, explain, webhooks } from '@sluice/client';
     import { sluice } from '@sluice/client/kit';
     const client = sluice({ url: 'http://127.0.0.1' })({ other: 1 });
     console.log(client.other, client.sluice instanceof Sluice, typeof explain, typeof webhooks.verify);`,
  );
  const said = execFileSync(process.execPath, ['use.js'], { cwd: folder, encoding: 'utf8' });
  assert.equal(said, '1 true function function\n');
});
