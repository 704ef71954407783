import { expect, test } from 'vitest';
import { proveResetRace } from './e19-reset-race.ts';
import { freshSeed } from './lib/random.ts';

const seed = freshSeed();

test('messages that race an erasure are gone or kept whole, and memories survive a deletion', async () => {
  const report = await proveResetRace({ rounds: 8, messages: 100, seed, until: ({ rounds, kept }) => rounds >= 2 && kept > 0 });
  expect(report.wrong, `seed ${seed}`).toEqual([]);
  expect(report.gone, `seed ${seed}`).toBeGreaterThan(20);
  expect(report.kept, `seed ${seed}`).toBeGreaterThan(0);
});
