// Makes the client's source from the guard's IDL by Codama, into src/generated, which is not committed.

import { existsSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { rootNodeFromAnchor } from '@codama/nodes-from-anchor';
import { renderVisitor } from '@codama/renderers-js';
import { createFromRoot } from 'codama';

const IDL = new URL('../../../idls/swap_guard.json', import.meta.url);
const OUTPUT = fileURLToPath(new URL('../src/generated', import.meta.url));

// What an earlier IDL made would be published beside the rest: the compiler removes nothing.
const BUILT = fileURLToPath(new URL('../dist', import.meta.url));
for (const folder of [OUTPUT, BUILT]) rmSync(folder, { recursive: true, force: true });

const idl = JSON.parse(readFileSync(IDL, 'utf8'));
await createFromRoot(rootNodeFromAnchor(idl)).accept(renderVisitor(OUTPUT, { formatCode: false }));

// Codama writes for bundlers. Node finds a module by the whole name of its file.
for (const name of readdirSync(OUTPUT, { recursive: true })) {
  const file = join(OUTPUT, name);
  if (statSync(file).isFile()) {
    writeFileSync(file, readFileSync(file, 'utf8').replace(/from '(\.[^']*)'/g, (_, from) => `from '${whole(file, from)}'`));
  }
}

function whole(file, from) {
  return existsSync(join(dirname(file), from, 'index.ts')) ? `${from}/index.js` : `${from}.js`;
}
