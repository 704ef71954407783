import { afterEach, beforeEach, expect, test } from 'vitest';
import { commitTurn, openTurn } from './commit-turn.ts';
import type { ReceiptRow } from './features/receipts/api.ts';
import type { ResponseRow } from './features/responses/api.ts';
import type { TurnRow } from './features/turns/store.ts';
import type { Db } from './kernel/db/db.ts';
import { operation } from './kernel/db/operation.ts';
import { openInlineDb } from './kernel/db/sqlite/inline.ts';
import { migrations } from './storage.ts';

const counts = operation('test.counts', async (tx) => {
  const rows: Record<string, number> = {};
  for (const table of ['turn', 'response', 'receipt', 'message'] as const) {
    const [found] = await tx.build<{ total: number }>((db, sql) => db.selectFrom(table).select(sql<number>`count(*)`.as('total')));
    rows[table] = found?.total ?? 0;
  }
  return rows;
});

let db: Db & AsyncDisposable;
beforeEach(async () => {
  db = await openInlineDb({ operations: [openTurn, commitTurn, counts], migrations });
});
afterEach(() => db[Symbol.asyncDispose]());

const turn: TurnRow = {
  id: 'tn_1',
  conversationRef: 'cv_1',
  sessionKey: 'a:b',
  agentId: 'default',
  principalId: 'root',
  origin: 'api',
  state: 'running',
  finishReason: null,
  failureKind: null,
  model: null,
  steps: 0,
  inputTokens: 0,
  outputTokens: 0,
  costNano: null,
  traceId: '0'.repeat(32),
  startedAtMs: 1,
  endedAtMs: null,
};
const receipt: ReceiptRow = {
  principalId: 'root',
  key: 'k',
  digest: 'd',
  conversationRef: 'cv_1',
  outcomeJson: null,
  createdAtMs: 1,
  expiresAtMs: 9,
};
const response: ResponseRow = {
  id: 'resp_1',
  previousId: null,
  principalId: 'root',
  agentId: 'default',
  bodyJson: '{}',
  systemJson: '[]',
  messagesJson: '[]',
  createdAtMs: 1,
  expiresAtMs: 9,
};
const conversation = {
  ref: 'cv_1',
  agentId: 'default',
  principalId: 'root',
  sessionKey: 'a:b',
  turnId: 'tn_1',
  steps: 1,
  toolCalls: 0,
  inputTokens: 1,
  outputTokens: 1,
  costNano: 0,
  messages: [{ role: 'user' as const, content: 'hi', toolJson: null, attachmentsJson: null, createdAtMs: 1 }],
  atMs: 2,
};

test('what a caller keeps is there with the opening of the turn, and with its end', async () => {
  await db.write(openTurn, { turn, alongside: { receipt } });
  expect(await db.read(counts, undefined)).toEqual({ turn: 1, receipt: 1, response: 0, message: 0 });
  await db.write(commitTurn, { turn, calls: [], conversation, alongside: { receipt: { ...receipt, outcomeJson: '{}' }, response } });
  expect(await db.read(counts, undefined)).toEqual({ turn: 1, receipt: 1, response: 1, message: 1 });
});

test('a turn is lost together with what could not be kept beside it', async () => {
  await db.write(commitTurn, { turn, calls: [], conversation: null, alongside: { response } });
  const again = { turn: { ...turn, id: 'tn_2' }, calls: [], conversation, alongside: { receipt, response } };
  await expect(db.write(commitTurn, again)).rejects.toThrow(/UNIQUE/);
  expect(await db.read(counts, undefined)).toEqual({ turn: 1, receipt: 0, response: 1, message: 0 });
});
