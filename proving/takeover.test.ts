import { findPostgres } from '@gatehouse/testkit/postgres';
import { describe, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveTakeoverFrozen } from './takeover-frozen.ts';
import { proveTakeoverKilled } from './takeover-killed.ts';

// They wait for the end of a lease most of the time.
describe.runIf(findPostgres() !== undefined).concurrent('two daemons on one PostgreSQL', () => {
  test('a standby continues what a killed daemon had acknowledged, once', async ({ expect }) => {
    const seed = freshSeed();
    const { wrong, ...report } = await proveTakeoverKilled({ rounds: 1, load: { turns: 10, items: 20, graphs: 2, jobs: 3 }, seed });
    expect(wrong, `seed ${seed}`).toEqual([]);
    expect(report).toMatchObject({ lost: 0, doubled: 0 });
    expect(report.acknowledged).toBeGreaterThan(0);
  });

  test('nothing of a frozen daemon is kept, and its commands write nothing after the take-over', async ({ expect }) => {
    const { wrong, written } = await proveTakeoverFrozen({ frozenMs: 0 });
    expect(wrong).toEqual([]);
    expect(written).toBeGreaterThan(0);
  });
});
