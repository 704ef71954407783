import { findPostgres } from '@gatehouse/testkit/postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { auditMigrations } from '../../../../kernel/db/audit.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import { openInlinePostgres } from '../../../../kernel/db/postgres/inline.ts';
import { createTestDatabase } from '../../../../kernel/db/postgres/testing/test-database.ts';
import { openInlineSqlite } from '../../../../kernel/db/sqlite/inline.ts';
import { storeVectors } from '../embeddings/embedding-store.ts';
import { browseOperations, deleteMemories, storeMemory } from '../entries/browse-store.ts';
import { everybody } from '../entries/store.ts';
import { memoryLifeMigrations } from '../lifecycle/life-migrations.ts';
import { memoryMigrations } from '../migrations.ts';
import type { SearchFilter } from './search-filter.ts';
import { memorySearchOperations, searchMemories } from './search-store.ts';
import { parseTerms } from './text-query.ts';

const operations = [...browseOperations, ...memorySearchOperations, storeVectors];
const migrations = [...auditMigrations, ...memoryMigrations, ...memoryLifeMigrations];

const texts = [
  'The ferry leaves the harbour at six.',
  'Ferries are painted white, and the harbour is old.',
  'Coffee is in the kitchen of the harbour master.',
  'Ada prefers tea; her tea is from Ceylon.',
  'The office in İstanbul opens at nine.',
  'The cafe\u0301 is closed, the café next to it is open.',
  'Москва далеко',
  'वह हिन्दी बोलती है',
  'release 4.2.1 of the ferry timetable: see timetable_v4.csv',
  'to be deleted: the ferry harbour tea',
];
const questions = [
  'ferry harbour',
  'ferries',
  'tea of Ada',
  'cafe',
  'café',
  'istanbul',
  'москва',
  'हिन्दी',
  'timetable',
  'timetable_v4',
  '4.2.1',
  'harbour master',
  'none',
];
const audit = { atMs: 1, principalId: 'p', action: 'a', classification: 'mutate' as const, outcome: 'success' as const, traceId: 't' };
const everything: SearchFilter = {
  agentId: 'default',
  principalId: null,
  types: undefined,
  trust: undefined,
  tags: [],
  includeDerivedSources: false,
  atMs: 10,
};

/** A direction for each number. */
const vectorOf = (n: number) => Float32Array.from({ length: 64 }, (_, i) => Math.sin(n * 0.3 + i * (1 + n * 0.01)));

describe.skipIf(findPostgres() === undefined)('memories in SQLite and in PostgreSQL', () => {
  const stack = new AsyncDisposableStack();
  let engines: readonly [Db, Db];

  beforeAll(async () => {
    const database = stack.use(await createTestDatabase(migrations));
    engines = [
      stack.use(await openInlineSqlite({ operations, migrations })),
      stack.use(await openInlinePostgres({ address: database, operations, migrations })),
    ];
    for (const db of engines) {
      for (const [index, content] of texts.entries()) {
        await db.write(storeMemory, {
          audit: undefined,
          memory: {
            id: `mm_${index}`,
            agentId: index === 8 ? 'other' : 'default',
            principalId: [everybody, 'token:a', 'token:b'][index % 3] ?? everybody,
            content,
            memoryType: index % 2 === 0 ? 'semantic' : 'episodic',
            trustLevel: index % 4 === 0 ? 'external' : 'learned',
            taintLevel: 'clean',
            sourceWho: 'agent',
            sourceChannel: null,
            conversationRef: null,
            sessionKey: null,
            tags: JSON.stringify(index % 2 === 0 ? ['harbour', 'a b'] : ['it\'s "own"']),
            createdAtMs: index,
            expiresAtMs: index === 2 ? 5 : null,
            confidence: null,
            pinned: 0,
            cites: [],
          },
        });
      }
      const rows = texts.map((_, index) => ({ seq: index + 1, updatedAtMs: null, vector: vectorOf(index) }));
      await db.write(storeVectors, { fingerprint: 'fake/one', rows });
      await db.write(deleteMemories, { ids: ['mm_9'], reach: { agentIds: null, principalId: null }, audit: { ...audit, id: 'au_1' } });
    }
  });
  afterAll(() => stack.disposeAsync());

  const find = async (db: Db, question: string, filter: Partial<SearchFilter>, vector?: Float32Array) => {
    const { found } = await db.search(searchMemories, {
      filter: { ...everything, ...filter },
      asked: parseTerms(question),
      ...(vector !== undefined && { vector: { fingerprint: 'fake/one', values: vector, calibration: { zero: 0, one: 1 } } }),
      limit: 10,
      minScore: 0,
    });
    return found.map(({ row, score, explain }) => [row.id, score.toFixed(6), explain.textRank, explain.vectorRank]);
  };

  test.each<[string, Partial<SearchFilter>]>([
    ['all of an agent', {}],
    ['of an owner', { principalId: 'token:a' }],
    ['with a tag', { tags: ['a b'] }],
    ['with another tag', { tags: ['it\'s "own"'] }],
    ['of a trust and types', { trust: ['learned'], types: ['episodic', 'semantic'] }],
    ['of no type', { types: [] }],
  ])('are found by the same terms, in the same order: %s', async (_name, filter) => {
    const found = async (db: Db) => {
      const answers: Record<string, unknown> = {};
      for (const question of questions) answers[question] = await find(db, question, filter);
      return answers;
    };
    const onSqlite = await found(engines[0]);
    if (filter.types?.length !== 0) expect(Object.values(onSqlite).flat().length).toBeGreaterThan(0);
    expect(await found(engines[1])).toEqual(onSqlite);
  });

  test('are found by their vectors, with the terms and without', async () => {
    for (const question of ['ferry harbour', 'none']) {
      const onSqlite = await find(engines[0], question, { tags: ['harbour'] }, vectorOf(4));
      expect(onSqlite.length).toBeGreaterThan(2);
      expect(await find(engines[1], question, { tags: ['harbour'] }, vectorOf(4))).toEqual(onSqlite);
    }
  });
});
