import { expect, test } from 'vitest';
import { operation } from '../../../kernel/db/operation.ts';
import { openInlineDb } from '../../../kernel/db/sqlite/inline.ts';
import type { SystemEvent } from './api.ts';
import { heartbeatMigrations } from './migrations.ts';
import { enqueueSystemEvent, heartbeatOperations, loadHeartbeats, maxEventChars, waitingEvents } from './store.ts';

const enqueue = operation('test.enqueue', enqueueSystemEvent);

async function open() {
  const db = await openInlineDb({ migrations: heartbeatMigrations, operations: [...heartbeatOperations, enqueue] });
  let keys = 0;
  return {
    db,
    queue: (text: string, more: Partial<SystemEvent> = {}) =>
      db.write(enqueue, { agentId: 'a', text, source: 'cron', opKey: `op-${(keys += 1)}`, atMs: keys, ...more }),
    texts: async (agentId = 'a') => (await db.read(waitingEvents, { agentId })).map(({ text, repeats }) => `${text} ${repeats}`),
  };
}

test('equal consecutive events are counted as one, the same operation is queued once', async () => {
  const { db, queue, texts } = await open();
  await queue('mail', { opKey: 'first' });
  await queue('mail', { opKey: 'first' });
  await queue('mail');
  await queue('mail', { source: 'webhook' });
  await queue('job');
  await queue('mail', { agentId: 'b', urgent: 'hook' });
  expect(await texts()).toEqual(['mail 2', 'mail 1', 'job 1']);
  expect(await texts('b')).toEqual(['mail 1']);
  expect((await db.read(loadHeartbeats, {})).urgent).toEqual([{ agentId: 'b', reason: 'hook' }]);
  await db[Symbol.asyncDispose]();
});

test('beyond twenty the oldest are dropped, each is truncated, and other agents keep theirs', async () => {
  const { db, queue, texts } = await open();
  await queue('theirs', { agentId: 'b' });
  for (let n = 0; n < 50; n += 1) await queue(`event ${n}`);
  expect(await texts()).toEqual(Array.from({ length: 20 }, (_, n) => `event ${n + 30} 1`));
  await queue(`${'x'.repeat(maxEventChars - 1)}\u{1F600}`);
  const [text = ''] = (await texts()).slice(-1);
  expect(text).toBe(`${'x'.repeat(maxEventChars - 1)}\uFFFD 1`);
  expect(await texts('b')).toEqual(['theirs 1']);
  await db[Symbol.asyncDispose]();
});
