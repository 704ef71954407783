import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { auditMigrations } from '../../../kernel/db/audit.ts';
import { openInlineSqlite } from '../../../kernel/db/sqlite/inline.ts';
import { operation, raw } from '../../../kernel/db/operation.ts';
import { sessionMigrations } from './migrations.ts';
import { indexMessages } from './search/index-store.ts';
import { searchMessages } from './search/search-store.ts';
import { addMessages, listConversations, newestTagged, readMessages, readTags, sessionOperations } from './store.ts';
import { parseTextQuery } from './search/terms.ts';

test('conversations of an earlier version can be read, continued, listed and searched', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-sessions-'));
  const earlier = sessionMigrations.filter(({ id }) => id < '014');
  await (await openInlineSqlite({ dataDir, migrations: [...auditMigrations, ...earlier], operations: [] }))[Symbol.asyncDispose]();
  const old = new DatabaseSync(join(dataDir, 'gatehouse.db'));
  old.exec(`
    INSERT INTO conversation VALUES (1, 'cv_1', 'default', 'default', 'root', 'dm', 'a:b', 1, 1, 1, 1, 0, 1, 1, 0, 5, 5);
    INSERT INTO message VALUES (1, 1, 1, 'tn_1', 'user', 'hello' || char(10) || 'walrus', NULL, 5);
    INSERT INTO conversation VALUES (2, 'cv_2', 'default', 'default', 'root', 'dm', 'a:b:c', 0, 0, 1, 1, 0, 1, 1, 0, 4, 4);
  `);
  old.close();
  const add = operation('test.add', addMessages);
  const db = await openInlineSqlite({
    dataDir,
    migrations: [...auditMigrations, ...sessionMigrations],
    operations: [...sessionOperations, indexMessages, searchMessages, add],
  });
  const attachmentsJson = '[{"mediaId":"md_1","contentType":"image/png","size":3}]';
  await db.write(add, {
    ref: 'cv_1',
    agentId: 'default',
    principalId: 'root',
    sessionKey: 'a:b',
    turnId: 'tn_2',
    steps: 1,
    toolCalls: 0,
    inputTokens: 1,
    outputTokens: 1,
    costNano: 0,
    messages: [{ role: 'user', content: 'look', toolJson: null, attachmentsJson, createdAtMs: 6 }],
    atMs: 6,
  });
  expect(await db.read(readMessages, { conversationId: 1, offset: 0, limit: 10 })).toMatchObject([
    { content: 'hello\nwalrus', attachmentsJson: null },
    { content: 'look', attachmentsJson },
  ]);
  const all = { principalId: null, agentIds: null, kind: 'all' as const, source: null, shelf: null, tag: null, sinceMs: null, offset: 0, limit: 10 };
  expect(await db.read(listConversations, all)).toMatchObject({
    total: 2,
    rows: [
      { ref: 'cv_1', kind: 'dm', title: 'hello walrus', messageCount: 2, modelSeqFloor: 0 },
      { ref: 'cv_2', kind: 'group', title: null },
    ],
  });
  const text = parseTextQuery('walrus');
  if (text === undefined) throw new Error('a query without words');
  const search = { ...all, text, role: null, kind: null };
  expect((await db.read(searchMessages, search)).hits).toMatchObject([{ ref: 'cv_1', seq: 1 }]);
  expect(await db.write(indexMessages, { maxRows: 10, maxBytes: 1_000 })).toEqual({ rows: 2, more: false });
  expect((await db.read(searchMessages, search)).hits).toMatchObject([{ ref: 'cv_1', seq: 1 }]);
  await db[Symbol.asyncDispose]();
  await rm(dataDir, { recursive: true });
});

test('the list of tags reads the newest 10,000 conversations that have some, found by an index, for each caller', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-tags-'));
  const plan = operation('test.plan', async (tx, { principalId }: { readonly principalId: string | null }) =>
    tx.build<{ detail: string }>((made, sql) =>
      raw(made, sql<{ detail: string }>`EXPLAIN QUERY PLAN SELECT * FROM ${newestTagged(made, sql, principalId)}`),
    ),
  );
  {
    await using db = await openInlineSqlite({
      dataDir,
      migrations: [...auditMigrations, ...sessionMigrations],
      operations: [...sessionOperations, plan],
    });
    using file = new DatabaseSync(join(dataDir, 'gatehouse.db'));
    const add = (agentId: string, count: number, atMs: number) =>
      file.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
        INSERT INTO conversation (ref, tenant_id, agent_id, principal_id, kind, session_key, last_seq, message_count, turn_count, step_count,
          tool_call_count, input_tokens, output_tokens, cost_nano, created_at_ms, updated_at_ms, tags)
        SELECT 'cv_${agentId}' || i, 'default', '${agentId}', 'ada', 'dm', 'a:' || i, 0, 0, 0, 0, 0, 0, 0, 0, 0, ${atMs} + i, char(10) || '${agentId}' || char(10) FROM n`);
    add('rare', 1, 0);
    add('often', 9_999, 1);
    for (const principalId of ['ada', null]) {
      const indexed = principalId === null ? 'conversation_tagged_by_time' : 'conversation_tagged (principal_id=?)';
      expect((await db.read(plan, { principalId })).map(({ detail }) => detail).join('\n')).toContain(`USING INDEX ${indexed}`);
      expect(await db.read(readTags, { principalId, agentIds: ['rare'] })).toEqual(['\nrare\n']);
    }
    add('newest', 1, 20_000);
    expect(await db.read(readTags, { principalId: 'ada', agentIds: ['rare'] })).toEqual([]);
    expect((await db.read(readTags, { principalId: null, agentIds: null })).length).toBe(10_000);
  }
  await rm(dataDir, { recursive: true });
});
