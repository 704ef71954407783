import { expect, test } from 'vitest';
import { findPostgres } from '@gatehouse/testkit/postgres';
import { freshSeed } from './lib/random.ts';
import { proveTakeoverKilled } from './takeover-killed.ts';

const seed = freshSeed();

test.runIf(findPostgres() !== undefined)('a standby continues what a killed daemon had acknowledged, once', async () => {
  const { wrong, ...report } = await proveTakeoverKilled({ rounds: 1, load: { turns: 10, items: 20, graphs: 2, jobs: 3 }, seed });
  expect(wrong, `seed ${seed}`).toEqual([]);
  expect(report).toMatchObject({ lost: 0, doubled: 0 });
  expect(report.acknowledged).toBeGreaterThan(0);
});
