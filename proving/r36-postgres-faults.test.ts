import { findPostgres } from '@gatehouse/testkit/postgres';
import { describe, expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveFullDatabaseDisk } from './r36-full-disk.ts';
import { provePostgresFaults } from './r36-postgres-faults.ts';
import { mountMissing } from './scarcity.ts';

const seed = freshSeed();

describe.skipIf(findPostgres() === undefined)('a daemon whose PostgreSQL fails', () => {
  test('loses nothing that it acknowledged, does nothing twice, and answers again', async () => {
    const rounds = { cut: 3, stalled: 1, 'half open': 1, restarted: 2, 'read-only': 1 };
    const { wrong, answers } = await provePostgresFaults({ rounds, seed, longestMs: 1_000 });
    expect(wrong, `seed ${seed}`).toEqual([]);
    expect(answers.acknowledged).toBeGreaterThan(0);
  });

  test.runIf(mountMissing() === undefined)('reads on while the disk of PostgreSQL is full, says so, and writes again', async () => {
    const { wrong } = await proveFullDatabaseDisk({ forMs: 500, onlyBound: true });
    expect(wrong).toEqual([]);
  });
});
