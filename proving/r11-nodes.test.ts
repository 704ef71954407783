import { findPostgres } from '@gatehouse/testkit/postgres';
import { describe, expect, test } from 'vitest';
import { createTestDatabase } from '../packages/server/src/kernel/db/postgres/testing/test-database.ts';
import { migrations } from '../packages/server/src/transactions/registry.ts';
import { freshSeed } from './lib/random.ts';
import { proveStaleNodes } from './r11-nodes.ts';

const seed = freshSeed();

describe.runIf(findPostgres() !== undefined)('a process that was frozen past its lease', () => {
  test('changes nothing when the other one has taken over', async () => {
    await using database = await createTestDatabase(migrations);
    const { wrong, writes } = await proveStaleNodes({ url: database.url, freezes: { work: 1, node: 1 }, seed });
    expect(wrong, `seed ${seed}`).toEqual([]);
    expect(writes).toBeGreaterThan(100);
  });
});
