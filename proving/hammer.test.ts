import { findPostgres } from '@gatehouse/testkit/postgres';
import { describe, expect, test } from 'vitest';
import { operations } from '../packages/server/src/transactions/registry.ts';
import { proveHammer } from './hammer.ts';
import { exempt, writingOperations } from './lib/hammer/operations.ts';
import { freshSeed } from './lib/random.ts';

const seed = freshSeed();

describe.skipIf(findPostgres() === undefined)('two processes on one PostgreSQL', () => {
  test('run every write operation against the same rows, and each acknowledged write is there, once', async () => {
    const { wrong, driven } = await proveHammer({ engine: 'postgres', rounds: 1, seed });
    expect(wrong, `seed ${seed}`).toEqual([]);
    const writing = await writingOperations();
    expect(writing.filter((name) => !driven.includes(name)).toSorted()).toEqual(Object.keys(exempt));
  });

  test('run READ COMMITTED only what is named here', () => {
    const marked = operations.filter(({ isolation }) => isolation === 'read committed').map(({ name }) => name);
    expect(marked.toSorted()).toEqual([
      'durable.claim',
      'durable.release',
      'durable.renew',
      'durable.retry',
      'durable.wait',
      'turns.commit',
      'turns.commitDurable',
    ]);
  });
});
