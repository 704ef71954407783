import { expect, test } from 'vitest';
import { findCommand } from '../tools/system-packages.mjs';
import { freshSeed } from './lib/random.ts';
import { proveStops } from './r32-stops.ts';

const seed = freshSeed();
const bubblewrap = findCommand('bwrap');

test.skipIf(bubblewrap === undefined)('a kill or revocation takes effect in time, on everything that was started', async () => {
  const report = await proveStops({ rounds: 1, seed });
  expect(report.wrong, `seed ${seed}`).toEqual([]);
  expect(report.rounds).toBe(4);
  // Two in each of three rounds when it is stopped; one may end between the two checks.
  expect(report.processes).toBeGreaterThan(3);
});
