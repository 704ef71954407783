import { onPostgres } from '@gatehouse/testkit/sql';
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

test.skipIf(onPostgres)('a build that acknowledges before the commit is caught', async () => {
  const report = await proveAckedSurvives({ rounds: 1, seed, broken: 'ack-before-commit', killAtAck: true, until: ({ lost }) => lost > 0 });
  expect(report.lost.length, `seed ${seed}`).toBeGreaterThan(0);
});
