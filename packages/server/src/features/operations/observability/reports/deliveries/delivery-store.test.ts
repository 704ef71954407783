import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Db } from '../../../../../kernel/db/db.ts';
import { openInlineDb } from '../../../../../kernel/db/sqlite/inline.ts';
import { traceMigrations } from '../../../traces/migrations.ts';
import { appendBatch, expandBatch } from '../../../traces/store.ts';
import type { EndedRecord } from '../../../traces/api.ts';
import { reportMigrations } from '../migrations.ts';
import { record, storeRecords } from '../testing/records.ts';
import { countLifecycles, type DeliveryFilter, deliveryOperations, dropRecords, listLifecycles, newestRecord } from './delivery-store.ts';

let db: Db;
beforeEach(async () => {
  db = await openInlineDb({ operations: [appendBatch, expandBatch, ...deliveryOperations], migrations: [...traceMigrations, ...reportMigrations] });
});
afterEach(() => db[Symbol.asyncDispose]());

const store = (...records: EndedRecord[]) => storeRecords(db, records);
const everything: DeliveryFilter = { sinceMs: 0, afterSeq: 0, includeSynthetic: false, agentIds: null };
const count = async (over: Partial<DeliveryFilter> = {}) =>
  Object.fromEntries((await db.search(countLifecycles, { ...everything, ...over })).map((row) => [row.status, [row.count, row.latencyMs]]));

test('counts each lifecycle once, by how it ended', async () => {
  await store(
    record(),
    record({ outcome: 'degraded', endedAtMs: 1300 }),
    record({ outcome: 'failed', endReason: 'error', error: { kind: 'server' } }),
    record({ outcome: 'failed', endReason: 'timeout', endedAtMs: 4000 }),
    record({ outcome: 'cancelled', endReason: 'aborted' }),
    record({ outcome: 'skipped' }),
    // Its part after the wait counts.
    record({ outcome: 'waiting' }),
    record({ id: 'tn_w.2', startedAtMs: 5000, endedAtMs: 5001 }),
    // The turn of a webhook is a part of its delivery, and that of a job answers nobody.
    record({ origin: 'webhook' }),
    record({ origin: 'cron' }),
    record({ kind: 'delivery', channelType: 'webhook', channelId: 'hook', outcome: 'ok', endReason: 'success' }),
    record({ kind: 'delivery', channelType: 'webhook', channelId: 'hook', outcome: 'skipped', endReason: 'filtered' }),
    record({ kind: 'delivery', channelType: 'gateway', channelId: 'inbox', outcome: 'failed', endReason: 'timeout' }),
    record({ kind: 'compaction' }),
    record({ synthetic: true }),
  );
  expect(await count()).toEqual({ success: [4, 501], error: [1, 100], timeout: [2, 3100], cancelled: [1, 100], filtered: [2, 200] });
  expect(await count({ includeSynthetic: true })).toMatchObject({ success: [5, 601] });
});

test('can be limited to a window, some agents and what was recorded after a reset', async () => {
  await store(record({ agentId: 'a' }), record({ agentId: 'b', startedAtMs: 2000, endedAtMs: 2100 }));
  expect(await count({ agentIds: ['a'] })).toEqual({ success: [1, 100] });
  expect(await count({ agentIds: [] })).toEqual({});
  expect(await count({ sinceMs: 2000 })).toEqual({ success: [1, 100] });
  const upTo = await db.read(newestRecord, {});
  expect(await count({ afterSeq: upTo })).toEqual({});
  // The clock went back after the reset; and a turn that ended before it began took no time.
  await store(record({ startedAtMs: 10, endedAtMs: 5 }));
  expect(await count({ afterSeq: upTo })).toEqual({ success: [1, 0] });
});

test('lists the newest first, of one channel', async () => {
  await store(record({ id: 'tn_a' }), record({ id: 'tn_b', startedAtMs: 3000, channelId: 'phone' }), record({ id: 'tn_c', startedAtMs: 2000 }));
  const list = async (over: Partial<DeliveryFilter>) => (await db.search(listLifecycles, { ...everything, limit: 2, ...over })).map(({ id }) => id);
  expect(await list({})).toEqual(['tn_b', 'tn_c']);
  expect(await list({ channelId: 'desk', channelType: 'gateway' })).toEqual(['tn_c', 'tn_a']);
  expect(await list({ channelType: 'webhook' })).toEqual([]);
});

test('records are dropped in small steps, and those of deliveries alone', async () => {
  await store(record(), record({ kind: 'delivery', endReason: 'success' }), record({ kind: 'delivery', endReason: 'success' }));
  const upTo = await db.read(newestRecord, {});
  await store(record({ kind: 'delivery', endReason: 'success' }));
  expect(await db.telemetry(dropRecords, { kind: 'delivery', upTo, limit: 1 })).toBe(1);
  expect(await db.telemetry(dropRecords, { kind: 'delivery', upTo, limit: 9 })).toBe(1);
  expect(await count()).toEqual({ success: [2, 200] });
  expect(await db.telemetry(dropRecords, { kind: null, upTo, limit: 9 })).toBe(1);
  expect(await count()).toEqual({ success: [1, 100] });
});
