import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { kinds, proveAckedSurvives } from './r1-acked-survives.ts';

const seed = freshSeed();

test('what was acknowledged survives kill -9, whole and once', async () => {
  const report = await proveAckedSurvives({ rounds: 6, seed, killWithinMs: 300 });
  expect({ lost: report.lost, doubled: report.doubled, torn: report.torn, unexpected: report.unexpected }, `seed ${seed}`).toEqual({
    lost: [],
    doubled: [],
    torn: [],
    unexpected: [],
  });
  for (const kind of kinds) expect(report.acked[kind], `${kind}, seed ${seed}`).toBeGreaterThan(0);
}, 60_000);

test('a build that acknowledges before the commit is caught', async () => {
  const report = await proveAckedSurvives({ rounds: 4, seed, broken: 'ack-before-commit' });
  expect(report.lost.length, `seed ${seed}`).toBeGreaterThan(0);
}, 60_000);
