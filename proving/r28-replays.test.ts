import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveReplays } from './r28-replays.ts';

const seed = freshSeed();

test('a repeated webhook starts no second turn unnoticed, and no forged one is accepted', async () => {
  const { executed, unalarmed, accepted, ...report } = await proveReplays({ honest: 30, forgeries: 400, seed });
  expect({ executed, unalarmed, accepted }, `seed ${seed}`).toEqual({ executed: [], unalarmed: [], accepted: [] });
  expect(report.replays, `seed ${seed}`).toBeGreaterThan(400);
});
