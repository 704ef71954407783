import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { auditMigrations } from '../../kernel/db/audit.ts';
import { openInlineDb } from '../../kernel/db/sqlite/inline.ts';
import { operation } from '../../kernel/db/operation.ts';
import { sessionMigrations } from './migrations.ts';
import { addMessages, readTail, sessionOperations } from './store.ts';

test('a conversation from before attachments is read as it was, and takes messages with some', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-sessions-'));
  const earlier = sessionMigrations.filter(({ id }) => id < '014');
  await (await openInlineDb({ dataDir, migrations: [...auditMigrations, ...earlier], operations: [] }))[Symbol.asyncDispose]();
  const old = new DatabaseSync(join(dataDir, 'gatehouse.db'));
  old.exec(`
    INSERT INTO conversation VALUES (1, 'cv_1', 'default', 'default', 'root', 'dm', 'a:b', 1, 1, 1, 1, 0, 1, 1, 0, 5, 5);
    INSERT INTO message VALUES (1, 1, 1, 'tn_1', 'user', 'hello', NULL, 5);
  `);
  old.close();
  const add = operation('test.add', addMessages);
  const db = await openInlineDb({ dataDir, migrations: [...auditMigrations, ...sessionMigrations], operations: [...sessionOperations, add] });
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
  expect(await db.read(readTail, { ref: 'cv_1', limit: 10 })).toMatchObject([
    { content: 'hello', attachmentsJson: null },
    { content: 'look', attachmentsJson },
  ]);
  await db[Symbol.asyncDispose]();
  await rm(dataDir, { recursive: true });
});
