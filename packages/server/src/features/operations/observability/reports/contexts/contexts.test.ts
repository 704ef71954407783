import type { TraceStep } from '@gatehouse/contract';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { CallContext } from '../../../../../kernel/call-context.ts';
import type { Db } from '../../../../../kernel/db/db.ts';
import { openInlineDb } from '../../../../../kernel/db/sqlite/inline.ts';
import { traceMigrations } from '../../../traces/migrations.ts';
import { appendBatch, expandBatch } from '../../../traces/store.ts';
import { record, storeRecords } from '../testing/records.ts';
import { contextReportOperations } from './context-store.ts';
import { createContextReports } from './contexts.ts';

let db: Db;
beforeEach(async () => {
  db = await openInlineDb({ operations: [appendBatch, expandBatch, ...contextReportOperations], migrations: traceMigrations });
});
afterEach(() => db[Symbol.asyncDispose]());

const call = (agents?: readonly string[]): CallContext => ({
  identity: { principalId: 'token:root', tokenId: 'root', scopes: ['*'], ...(agents !== undefined && { agents }) },
  traceId: '0'.repeat(32),
  requestId: 'r',
  signal: new AbortController().signal,
  transport: 'process',
});
const context = (id: number, facts: TraceStep['facts']): TraceStep => ({
  id,
  kind: 'context',
  name: 'context',
  at: 5,
  ms: 3,
  ...(facts && { facts }),
});
const model = (id: number, tokens: TraceStep['tokens']): TraceStep => ({ id, kind: 'model', name: 'm', at: 8, ...(tokens && { tokens }) });

test('shows each context with the model call that it was for, newest first', async () => {
  const facts = {
    windowTokens: 1000,
    systemTokens: 100,
    historyTokens: 300,
    messagesIn: 9,
    messagesOut: 4,
    leftOut: 5,
    masked: 1,
    notes: 2,
    verdict: 'fits',
  };
  const steps = [context(0, facts), model(1, { in: 400, out: 9, cached: 300, cacheWritten: 60 }), context(2, { verdict: 'exhausted' })];
  await storeRecords(db, [
    record({ steps }),
    record({ agentId: 'other', steps: [context(0, undefined)] }),
    record({ synthetic: true, steps: [context(0, undefined)] }),
    record({ kind: 'compaction', steps: [context(0, undefined)] }),
  ]);
  const { 'obs.context.pipeline': pipeline } = createContextReports({ db, flush: async () => undefined });
  const ask = async (agents?: readonly string[], limit = 50) => pipeline({ limit, includeSynthetic: false }, call(agents));
  const all = await ask();
  expect(all.map(({ agentId, verdict }) => [agentId, verdict])).toEqual([
    ['other', null],
    ['default', 'exhausted'],
    ['default', 'fits'],
  ]);
  expect(all.at(-1)).toMatchObject({
    timestamp: 1005,
    durationMs: 3,
    windowTokens: 1000,
    tokensLoaded: 400,
    budgetUtilization: 0.4,
    messagesIn: 9,
    messagesOut: 4,
    messagesLeftOut: 5,
    resultsMasked: 1,
    summariesUsed: 2,
    cacheHitTokens: 300,
    cacheWriteTokens: 60,
    cacheMissTokens: 40,
  });
  expect((await ask(['other'])).map(({ agentId }) => agentId)).toEqual(['other']);
  expect(await ask(undefined, 1)).toHaveLength(1);
  await expect(pipeline({ agentId: 'default', limit: 1, includeSynthetic: false }, call(['other']))).rejects.toMatchObject({ code: 'not_found' });
});
