// The package as it is published: its size, what is in it, and that it installs and runs alone.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const root = fileURLToPath(new URL('..', import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

// Bytes that all of it may have, compressed. Nothing is left out or shortened, as a bundler would.
const LIMIT = 20_000;

// npm's script, run by this interpreter where the caller names it: `npm` need not be on PATH.
const npm = (words, folder) => {
  const script = process.env.npm_execpath ?? process.env.SLUICE_NPM;
  const [program, before] = script ? [process.execPath, [script]] : ['npm', []];
  const quiet = ['--offline', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  return execFileSync(program, [...before, ...words, ...quiet], { cwd: folder, encoding: 'utf8' });
};

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
  const folder = mkdtempSync(join(tmpdir(), 'sluice-client-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const [packed] = JSON.parse(npm(['pack', '--json', '--pack-destination', folder], root));
  const paths = packed.files.map(({ path }) => path).sort();
  assert.ok(paths.every((path) => /^(dist\/.*\.(js|d\.ts)|package\.json|README\.md)$/.test(path)), paths.join(' '));
  assert.ok(paths.includes('README.md') && paths.includes('dist/index.d.ts'));
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}');
  npm(['install', join(folder, packed.filename)], folder);
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
