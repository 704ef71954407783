import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Db } from '../../../kernel/db/db.ts';
import { openInlineDb } from '../../../kernel/db/sqlite/inline.ts';
import { operation } from '../../../kernel/db/operation.ts';
import { auditMigrations } from '../../../kernel/db/audit.ts';
import { sessionMigrations } from '../sessions/migrations.ts';
import { addMessages } from '../sessions/store.ts';
import { contextMigrations } from './migrations.ts';
import { addCondensed, addLeaf, contextOperations, dropContext, moveCut, readChunk, readContext, readRoots } from './store.ts';
import { readTree, treeOperations } from './summaries/tree-store.ts';
import { condensedOf, leafOf } from './summaries/summarise.ts';

const add = operation('test.add', addMessages);
const drop = operation('test.drop', dropContext);
const setFloor = operation('test.floor', (tx, floor: number) => tx.build((db) => db.updateTable('conversation').set({ modelSeqFloor: floor })));
const clear = operation('test.clear', async (tx, _: object) => {
  await tx.build((db) => db.deleteFrom('message'));
  await tx.build((db) => db.deleteFrom('conversation'));
});

let db: Db;
const ref = 'cv_1';
let turns = 0;

/** Adds one exchange whose texts have `length` characters each. */
async function exchange(length = 20): Promise<string> {
  turns += 1;
  const turnId = `tn_${turns}`;
  const text = `turn ${turns} `.padEnd(length, 'word ');
  await db.write(add, {
    ref,
    agentId: 'default',
    principalId: 'token:a',
    sessionKey: 'a:b',
    turnId,
    steps: 1,
    toolCalls: 0,
    inputTokens: 1,
    outputTokens: 1,
    costNano: 0,
    messages: (['user', 'assistant'] as const).map((role) => ({ role, content: text, toolJson: null, attachmentsJson: null, createdAtMs: turns })),
    atMs: turns,
  });
  return turnId;
}

beforeEach(async () => {
  turns = 0;
  db = await openInlineDb({
    migrations: [...auditMigrations, ...sessionMigrations, ...contextMigrations],
    operations: [...contextOperations, ...treeOperations, add, drop, setFloor, clear],
  });
});
afterEach(() => db[Symbol.asyncDispose]());

const leaf = (fromSeq: number, toSeq: number) =>
  leafOf({ fromSeq, toSeq, taint: 'clean', content: `notes ${fromSeq}`, model: 'm', stopgap: 0, createdAtMs: 1 });
const cut = (cutSeq: number, covered: number, from = 0) => ({
  ref,
  from: { cutSeq: from, floor: 0, covered },
  cutSeq,
  prefix: `prefix ${cutSeq}`,
  prefixTokens: 3,
  stopgap: null,
  atMs: 1,
});

test('reading backward stops at the byte limit, however long the history is', async () => {
  for (let index = 0; index < 300; index += 1) await exchange(100);
  const seen = await db.read(readContext, { ref, bytes: 2000 });
  expect(seen?.rows.length).toBeLessThan(20);
  expect(seen?.rows.at(-1)?.seq).toBe(600);
  expect((await db.read(readContext, { ref, bytes: 1_000_000 }))?.rows.map((row) => row.seq)).toEqual(
    Array.from({ length: 600 }, (_, index) => index + 1),
  );
  expect(await db.read(readContext, { ref: 'cv_2', bytes: 1000 })).toBeUndefined();
});

test('a chunk holds whole exchanges', async () => {
  for (let index = 0; index < 10; index += 1) await exchange(200);
  const { conversationId } = (await db.read(readContext, { ref, bytes: 1 }))!;
  const limits = { conversationId, transcriptTokens: 1000, insteadTokens: 100 };
  const chunk = await db.read(readChunk, { ...limits, from: 3, to: 20, tokens: 150 });
  expect(chunk).toMatchObject({ fromSeq: 3, toSeq: 6, turnId: 'tn_3', taint: 'clean' });
  expect(chunk?.transcript).toMatch(/^#3 .* user: turn 2 .*#6 .* assistant: turn 3 /s);
  expect((await db.read(readChunk, { ...limits, from: 1, to: 2, tokens: 10_000 }))?.toSeq).toBe(2);
  expect(await db.read(readChunk, { ...limits, from: 21, to: 30, tokens: 1 })).toBeUndefined();
});

test('a leaf is accepted only right after the last one and only if the conversation is unchanged', async () => {
  const first = await exchange();
  const second = await exchange();
  const basis = (toSeq: number, turnId: string, floor = 0) => ({ ref, floor, toSeq, turnId });
  expect(await db.write(addLeaf, { basis: basis(4, second), node: leaf(3, 4) })).toBe(false);
  expect(await db.write(addLeaf, { basis: basis(2, first), node: leaf(1, 2) })).toBe(true);
  expect(await db.write(addLeaf, { basis: basis(2, first), node: leaf(1, 2) })).toBe(false);
  await db.write(setFloor, 2);
  expect(await db.write(addLeaf, { basis: basis(4, second), node: leaf(3, 4) })).toBe(false);
  await db.write(setFloor, 0);
  // The same reference and row id, but another conversation.
  await db.write(clear, {});
  await exchange();
  await exchange();
  expect(await db.write(addLeaf, { basis: basis(4, second), node: leaf(1, 4) })).toBe(false);
  expect(await db.read(readRoots, { conversationId: 1 })).toEqual([]);
});

test('nodes are condensed into one parent, once; dropping the context deletes them all and keeps the messages', async () => {
  const ids = [await exchange(), await exchange(), await exchange(), await exchange()];
  for (const [index, turnId] of ids.entries())
    await db.write(addLeaf, { basis: { ref, floor: 0, toSeq: index * 2 + 2, turnId }, node: leaf(index * 2 + 1, index * 2 + 2) });
  const roots = await db.read(readRoots, { conversationId: 1 });
  const parent = condensedOf(roots, { content: 'all', model: 'm' }, 1);
  const childIds = roots.map((node) => node.id);
  expect(await db.write(addCondensed, { conversationId: 1, node: parent, childIds })).toBe(true);
  expect(await db.write(addCondensed, { conversationId: 1, node: condensedOf(roots, { content: 'again', model: 'm' }, 1), childIds })).toBe(false);
  expect(await db.read(readRoots, { conversationId: 1 })).toMatchObject([{ id: parent.id, depth: 1, fromSeq: 1, toSeq: 8 }]);
  const tree = await db.read(readTree, { ref, agentIds: ['default'], principalId: 'token:a' });
  expect(tree.nodes.filter((node) => node.parentId === parent.id)).toHaveLength(4);
  expect((await db.read(readTree, { ref, agentIds: ['default'], principalId: 'token:b' })).nodes).toEqual([]);
  expect((await db.read(readTree, { ref, agentIds: ['other'], principalId: null })).nodes).toEqual([]);
  expect(await db.write(drop, { conversationId: 1 })).toEqual({ summaries: 5 });
  expect(await db.read(readRoots, { conversationId: 1 })).toEqual([]);
  expect((await db.read(readContext, { ref, bytes: 10_000 }))?.rows).toHaveLength(8);
});

test('the cut moves only from its expected position, and never beyond the last message', async () => {
  const turnId = await exchange();
  await exchange();
  expect(await db.write(moveCut, cut(6, 0))).toBe(false);
  expect(await db.write(moveCut, cut(2, 1))).toBe(false);
  expect(await db.write(moveCut, { ...cut(2, 0), stopgap: { ...leaf(1, 2), stopgap: 1 } })).toBe(true);
  expect(await db.read(readContext, { ref, bytes: 1000 })).toMatchObject({
    cutSeq: 2,
    prefix: 'prefix 2',
    behind: true,
    rows: [{ seq: 3 }, { seq: 4 }],
  });
  expect(await db.write(moveCut, cut(2, 0))).toBe(false);
  // A stopgap is not a summary: a leaf may replace it.
  expect(await db.write(addLeaf, { basis: { ref, floor: 0, toSeq: 2, turnId }, node: leaf(1, 2) })).toBe(true);
  expect(await db.write(moveCut, cut(2, 2, 2))).toBe(true);
  expect(await db.read(readRoots, { conversationId: 1 })).toMatchObject([{ content: 'notes 1', stopgap: 0 }]);
  // A reset moves the floor beyond the cut.
  await db.write(setFloor, 4);
  expect(await db.read(readContext, { ref, bytes: 1000 })).toMatchObject({ cutSeq: 4, rows: [] });
});
