// The package as it is published: what is in it, and that it installs in a clean folder and works there, beside kit alone.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { installed } from '../../packed.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

test('it is packed, installed in a clean folder beside kit, and writes and reads a swap there', (t) => {
  // Kit, the peer, is not installed again.
  const folder = installed(t, root, '--legacy-peer-deps');
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
