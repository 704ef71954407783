import { expect, test } from 'vitest';
import { findCommand } from '../tools/system-packages.mjs';
import { freshSeed } from './lib/random.ts';
import { proveStopCells } from './r32-cells.ts';

const seed = freshSeed();
const bubblewrap = findCommand('bwrap');

/** Work that the audits found running after a stop; the whole matrix is the full form. */
test.skipIf(bubblewrap === undefined)('a stop reaches commands in the background, and turns that answer in one piece', async () => {
  const cells = [
    { stop: 'run.kill', work: 'command' },
    { stop: 'tokens.revoke', work: '/rpc' },
  ] as const;
  const { wrong } = await proveStopCells({ seed, cells });
  expect(wrong, `seed ${seed}`).toEqual([]);
});
