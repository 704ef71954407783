import { findPostgres } from '@gatehouse/testkit/postgres';
import { describe, expect, it } from 'vitest';
import type { ModelCallRow, TurnCommit, TurnRow } from '../features/conversations/turns/store.ts';
import { operation, raw } from '../kernel/db/operation.ts';
import { openInlinePostgres } from '../kernel/db/postgres/inline.ts';
import { createTestDatabase } from '../kernel/db/postgres/testing/test-database.ts';
import { commitTurn, openTurn } from './commit-turn.ts';
import { migrations } from './registry.ts';

/** Returns every column, but for the ids that the database chose. */
const readAll = operation('test.readAll', async (tx) => ({
  turns: await tx.build<object>((db, sql) => raw(db, sql`SELECT * FROM turn ORDER BY id`)),
  calls: await tx.build<object>((db, sql) => raw(db, sql`SELECT *, NULL AS id FROM model_call ORDER BY model_call.id`)),
}));
/** Counts the statements that stored the present rows. */
const countStatements = operation(
  'test.countStatements',
  async (tx) =>
    (await tx.build<{ count: number }>((db, sql) => raw(db, sql`SELECT count(DISTINCT (xmin::text, cmin::text)) AS count FROM turn`)))[0]?.count,
);
const addNode = operation('test.addNode', async (tx): Promise<void> => {
  await tx.build((db, sql) => raw(db, sql`INSERT INTO node VALUES ('boot_1', 'home', NULL, '1', 'active', 'live', 0, 0, 0, '')`));
});
const operations = [openTurn, commitTurn, readAll, countStatements, addNode];

const call: ModelCallRow = {
  provider: 'mock',
  model: 'mock/fast',
  operation: 'chat',
  outcome: 'ok',
  inputTokens: 10,
  outputTokens: 20,
  cacheReadTokens: 0,
  cacheWriteTokens: 3,
  estimated: true,
  costNano: null,
  savedNano: 4,
  latencyMs: 12,
  responseId: null,
  atMs: 1_790_000_000_000,
};

function turnOf(number: number, changes: Partial<TurnRow> = {}): TurnCommit {
  const turn: TurnRow = {
    id: `turn_${number}`,
    conversationRef: `v1:${number}`,
    sessionKey: `v1:${number}`,
    agentId: 'default',
    principalId: 'token:a "quoted" \\ \u0000 name, ünï 😀',
    origin: 'v1',
    state: 'completed',
    finishReason: 'stop',
    failureKind: null,
    model: 'mock/fast',
    steps: 1,
    inputTokens: 10,
    outputTokens: 20,
    costNano: 9_007_199_254_740_991,
    reservedNano: null,
    traceId: '0'.repeat(32),
    startedAtMs: 1_790_000_000_000,
    endedAtMs: 1_790_000_000_012,
    bootId: 'boot_1',
    ...changes,
  };
  return { turn, calls: Array.from({ length: number % 3 }, (_, index) => ({ ...call, atMs: number * 10 + index })), conversation: null };
}

async function open() {
  const stack = new AsyncDisposableStack();
  const { url } = stack.use(await createTestDatabase(migrations));
  const db = stack.use(await openInlinePostgres({ address: { url }, operations, migrations }));
  await db.write(addNode, {});
  return { db, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

describe.skipIf(findPostgres() === undefined)('turns that are committed at once', () => {
  it('are stored as if one after another', async () => {
    await using together = await open();
    await using apart = await open();
    const commits = Array.from({ length: 20 }, (_, index) => turnOf(index));
    for (const { db } of [together, apart]) await db.write(openTurn, { turn: { ...turnOf(3).turn, state: 'running', endedAtMs: null } });
    const answers = await Promise.all(commits.map((commit) => together.db.write(commitTurn, commit)));
    for (const commit of commits) await apart.db.write(commitTurn, commit);
    expect(answers).toEqual(commits.map(() => ({ created: false })));
    const stored = await together.db.read(readAll, {});
    expect(stored).toEqual(await apart.db.read(readAll, {}));
    expect(await together.db.read(countStatements, {})).toBe(1);
    expect(await apart.db.read(countStatements, {})).toBe(20);
    expect([stored.turns.length, stored.calls.length]).toEqual([20, 19]);
  });

  it('of a boot that another one claimed are refused, and their calls charged', async () => {
    await using rig = await open();
    const commits = [turnOf(1, { bootId: 'boot_0' }), turnOf(2, { bootId: 'boot_0' })];
    const answers = await Promise.all(commits.map((commit) => rig.db.write(commitTurn, commit)));
    expect(answers).toEqual([
      { created: false, isRefused: true },
      { created: false, isRefused: true },
    ]);
    const stored = await rig.db.read(readAll, {});
    expect([stored.turns.length, stored.calls.length]).toEqual([0, 3]);
  });

  it('run alone when one of them fails', async () => {
    await using rig = await open();
    const twice = turnOf(1, { state: 'failed' });
    const outcomes = await Promise.allSettled(
      [turnOf(0), turnOf(1), turnOf(2, { steps: 0.5 }), twice, turnOf(4, { costNano: Number.NaN })].map((commit) => rig.db.write(commitTurn, commit)),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'rejected']);
    expect(outcomes[3]).toMatchObject({ value: { isRefused: true } });
    const { turns } = await rig.db.read(readAll, {});
    expect(turns).toMatchObject([
      { id: 'turn_0', state: 'completed' },
      { id: 'turn_1', state: 'completed' },
    ]);
  });
});
