import { afterEach, beforeEach, expect, test } from 'vitest';
import { deleteConversation } from './delete-conversation.ts';
import { insertMemory } from '../features/knowledge/memory/entries/store.ts';
import { markReviewed } from '../features/knowledge/memory/lifecycle/review/review-store.ts';
import { keepReceipt } from '../features/conversations/receipts/store.ts';
import { addMessages } from '../features/conversations/sessions/store.ts';
import type { Db } from '../kernel/db/db.ts';
import { operation } from '../kernel/db/operation.ts';
import { openInlineDb } from '../kernel/db/sqlite/inline.ts';
import { resetConversation, resetSession } from './reset-conversation.ts';
import { migrations, operations } from './registry.ts';

const tables = ['conversation', 'message', 'summary', 'contextState', 'memory', 'memorySource', 'memoryReview', 'sessionArchive'] as const;

/** Two conversations with everything that a conversation may have: `cv_1`, which the tests clear, and `cv_2`, which must stay unchanged. */
const furnish = operation('test.furnish', async (tx) => {
  for (const [index, ref] of ['cv_1', 'cv_2'].entries()) {
    await addMessages(tx, {
      ref,
      agentId: 'default',
      principalId: 'token:a',
      sessionKey: `${ref}:b`,
      turnId: `tn_${ref}`,
      steps: 1,
      toolCalls: 0,
      inputTokens: 3,
      outputTokens: 4,
      costNano: 5,
      atMs: 1,
      messages: ['question', 'answer'].map((content, at) => ({
        role: at === 0 ? ('user' as const) : ('assistant' as const),
        content,
        toolJson: null,
        attachmentsJson: null,
        createdAtMs: 1,
      })),
    });
    await tx.build((db) =>
      db.insertInto('summary').values({
        id: `sum_${ref}`,
        conversationId: index + 1,
        kind: 'leaf',
        depth: 0,
        fromSeq: 1,
        toSeq: 2,
        tokenCount: 1,
        content: 'c',
        taint: 'clean',
        model: 'm',
        stopgap: 0,
        createdAtMs: 1,
      }),
    );
    const cutAt = { cutSeq: 2, prefix: '', prefixTokens: 0, behind: 0, updatedAtMs: 1 };
    await tx.build((db) => db.insertInto('contextState').values({ conversationId: index + 1, ...cutAt }));
    await markReviewed(tx, { agentId: 'default', conversationRef: ref, toSeq: 2, atMs: 1 });
    await keepReceipt.run(tx, {
      principalId: 'token:a',
      key: ref,
      digest: 'd',
      conversationRef: ref,
      state: 'ended',
      bootId: '',
      outcomeJson: '{"text":"answer"}',
      createdAtMs: 1,
      expiresAtMs: 9,
    });
    await insertMemory(tx, { ...memory, id: `raw_${ref}`, conversationRef: ref, cites: [] });
  }
  await insertMemory(tx, {
    ...memory,
    id: 'derived',
    conversationRef: null,
    cites: ['cv_1', 'cv_2'].map((ref) => ({ sourceId: `raw_${ref}`, conversationRef: ref })),
  });
});
const memory = {
  ...({
    agentId: 'default',
    principalId: 'token:a',
    content: 'c',
    memoryType: 'semantic',
    trustLevel: 'learned',
    taintLevel: 'clean',
  } as const),
  sourceWho: 'review',
  sourceChannel: null,
  sessionKey: null,
  tags: '[]',
  createdAtMs: 1,
  expiresAtMs: null,
  confidence: null,
  pinned: 0 as const,
};

const look = operation('test.look', async (tx) => {
  const counts: Record<string, number> = {};
  for (const table of tables) counts[table] = (await tx.build((db, sql) => db.selectFrom(table).select(sql`1`.as('one')))).length;
  const [row] = await tx.build((db) =>
    db
      .selectFrom('conversation')
      .select(['title', 'lastSeq', 'messageCount', 'modelSeqFloor', 'resetCount', 'inputTokens', 'outputTokens', 'costNano', 'turnCount'])
      .where('ref', '=', 'cv_1'),
  );
  const receipts = await tx.build<{ outcome: string | null }>((db) =>
    db.selectFrom('receipt').select('outcomeJson as outcome').orderBy('idempotencyKey'),
  );
  return { counts, row, answers: receipts.map(({ outcome }) => outcome !== null) };
});

let db: Db;
let audits = 0;
const audit = () => ({
  ...({ id: `au_${++audits}`, atMs: 1, principalId: 'p', action: 'a', classification: 'destructive', outcome: 'success', traceId: 't' } as const),
});
const furnished = { conversation: 2, message: 4, summary: 2, contextState: 2, memory: 3, memorySource: 2, memoryReview: 2, sessionArchive: 0 };

beforeEach(async () => {
  db = await openInlineDb({ migrations, operations: [...operations, furnish, look] });
  await db.write(furnish, undefined);
  expect((await db.read(look, undefined)).counts).toEqual(furnished);
});
afterEach(() => db[Symbol.asyncDispose]());

test('reset removes what the model sees and nothing else', async () => {
  expect(await db.write(resetSession, { ref: 'cv_1', audit: audit() })).toBe(2);
  const { counts, row, answers } = await db.read(look, undefined);
  expect(counts).toEqual({ ...furnished, summary: 1, contextState: 1 });
  expect(row).toMatchObject({ modelSeqFloor: 2, lastSeq: 2, messageCount: 2, resetCount: 1, title: 'question' });
  expect(answers).toEqual([true, true]);
  expect(await db.write(resetSession, { ref: 'cv_1' })).toBe(0);
  expect(await db.write(resetSession, { ref: 'cv_9' })).toBe(0);
});

test.each([
  ['keep', {}, undefined],
  // The source is gone and the derived one cites what is left.
  ['delete', { memory: 2, memorySource: 1 }, { memoriesDeleted: 1, derivedDeleted: 0, derivedUnlinked: 1 }],
  ['purge', { memory: 1, memorySource: 0 }, { memoriesDeleted: 1, derivedDeleted: 1, derivedUnlinked: 0 }],
] as const)('reset_conversation clears exactly the named layers: memories %s', async (memories, gone, forgotten) => {
  const expected = { messages: 2, summaries: 1, ...(forgotten !== undefined && { forgotten }) };
  expect(await db.write(resetConversation, { ref: 'cv_1', memories, audit: audit() })).toEqual(expected);
  const { counts, row, answers } = await db.read(look, undefined);
  expect(counts).toEqual({ ...furnished, message: 2, summary: 1, contextState: 1, memoryReview: 1, ...gone });
  expect(row).toMatchObject({ lastSeq: 0, messageCount: 0, title: null, inputTokens: 3, outputTokens: 4, costNano: 5, turnCount: 1 });
  expect(answers).toEqual([false, true]);
  const nothing = {
    messages: 0,
    summaries: 0,
    ...(forgotten !== undefined && { forgotten: { memoriesDeleted: 0, derivedDeleted: 0, derivedUnlinked: 0 } }),
  };
  expect(await db.write(resetConversation, { ref: 'cv_1', memories, audit: audit() })).toEqual(nothing);
});

test('delete archives and removes the conversation; its memories stay and can be removed afterwards', async () => {
  await db.write(deleteConversation, { ref: 'cv_1', archiveId: 'ar_1', atMs: 2, audit: audit() });
  const { counts } = await db.read(look, undefined);
  expect(counts).toEqual({ ...furnished, conversation: 1, message: 2, summary: 1, contextState: 1, memoryReview: 1, sessionArchive: 1 });
  expect(await db.write(resetConversation, { ref: 'cv_1', memories: 'delete', audit: audit() })).toEqual({
    messages: 0,
    summaries: 0,
    forgotten: {
      memoriesDeleted: 1,
      derivedDeleted: 0,
      derivedUnlinked: 1,
    },
  });
});
