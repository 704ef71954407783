import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { kinds, proveAckedSurvives } from './r1-acked-survives.ts';

const seed = freshSeed();

test('acknowledged writes survive kill -9, whole and once', async () => {
  const report = await proveAckedSurvives({ rounds: 4, seed, until: ({ acked }) => kinds.every((kind) => acked[kind] > 0) });
  expect({ lost: report.lost, doubled: report.doubled, torn: report.torn, unexpected: report.unexpected }, `seed ${seed}`).toEqual({
    lost: [],
    doubled: [],
    torn: [],
    unexpected: [],
  });
  for (const kind of kinds) expect(report.acked[kind], `${kind}, seed ${seed}`).toBeGreaterThan(0);
});
