import { findPostgres } from '@gatehouse/testkit/postgres';
import { describe, test } from 'vitest';
import { createTestDatabase } from '../packages/server/src/kernel/db/postgres/testing/test-database.ts';
import { migrations } from '../packages/server/src/transactions/registry.ts';
import { freshSeed } from './lib/random.ts';
import { acceptedKinds } from './lib/stale-node-work.ts';
import { proveStaleNodes } from './r11-nodes.ts';

const seed = freshSeed();

describe.runIf(findPostgres() !== undefined).concurrent('a process that was frozen past its lease', () => {
  test('changes nothing when the other one has taken over', async ({ expect: is }) => {
    await using database = await createTestDatabase(migrations);
    const { wrong, writes } = await proveStaleNodes({ url: database.url, freezes: { work: 1, node: 1 }, seed });
    is(wrong, `seed ${seed}`).toEqual([]);
    is(writes).toBeGreaterThan(100);
  });

  test('is caught when neither leases nor claims are checked', async ({ expect: is }) => {
    await using database = await createTestDatabase(migrations);
    const broken = ['no-fence', 'no-lease-fence'];
    const { wrong } = await proveStaleNodes({ url: database.url, freezes: { work: 1, node: 1 }, seed, broken });
    const found = wrong.join('\n');
    for (const kind of acceptedKinds) is(found, `seed ${seed}`).toContain(`node 0: the stale ${kind}'s accept was not refused: done`);
    is(found, `seed ${seed}`).toContain('work 0: stale writes about a graph have changed');
  });
});
