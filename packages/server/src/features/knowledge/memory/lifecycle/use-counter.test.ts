import { createStepClock } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { openInlineDb } from '../../../../kernel/db/sqlite/inline.ts';
import { operation } from '../../../../kernel/db/operation.ts';
import { createEventBus } from '../../../../kernel/event-bus.ts';
import { silentLog } from '../../../../kernel/log.ts';
import { memoryLifeMigrations } from './life-migrations.ts';
import { memoryLifeOperations } from './life-store.ts';
import { memoryMigrations } from '../migrations.ts';
import { createUseCounter } from './use-counter.ts';

const add = operation('test.add', async (tx, { ids }: { readonly ids: readonly string[] }): Promise<void> => {
  for (const id of ids)
    await tx.build((db) =>
      db.insertInto('memory').values({
        id,
        tenantId: 'default',
        agentId: 'default',
        principalId: '*',
        memoryType: 'semantic',
        trustLevel: 'learned',
        taintLevel: 'clean',
        sourceWho: 'default',
        tags: '[]',
        createdAtMs: 1,
        content: id,
      }),
    );
});
const uses = operation('test.uses', async (tx, _: object) =>
  tx.build<{ uses: number; failures: number }>((db, sql) =>
    db.selectFrom('memory').select([sql<number>`sum(use_count)`.as('uses'), sql<number>`sum(failure_count)`.as('failures')]),
  ),
);

async function open() {
  const db = await openInlineDb({
    migrations: [...memoryMigrations.filter(({ database }) => database !== 'telemetry'), ...memoryLifeMigrations],
    operations: [...memoryLifeOperations, add, uses],
  });
  const clock = createStepClock();
  const bus = createEventBus(() => {});
  const heard: unknown[] = [];
  bus.listen(['learning:memory_failure_attributed'], ({ payload }) => heard.push(payload));
  return { db, clock, heard, counter: createUseCounter({ db, bus, clock, log: silentLog }) };
}

test('collects counts and writes them together', async () => {
  const { db, clock, counter, heard } = await open();
  await db.write(add, { ids: ['a', 'b'] });
  counter.used('default', ['a', 'b']);
  counter.used('default', ['a']);
  counter.failed('default', ['a', 'gone']);
  clock.advance(4_999);
  expect(await db.read(uses, {})).toEqual([{ uses: 0, failures: 0 }]);
  clock.advance(1);
  await expect.poll(() => db.read(uses, {})).toEqual([{ uses: 3, failures: 1 }]);
  await expect.poll(() => heard).toEqual([{ agentId: 'default', count: 1, timestamp: clock.now() }]);
  await db[Symbol.asyncDispose]();
});

test('respects its limit, and writes pending counts on disposal', async () => {
  const { db, counter } = await open();
  const ids = Array.from({ length: 2_100 }, (_, n) => `m${n}`);
  await db.write(add, { ids });
  counter.used('default', ids.slice(0, 2_000));
  await expect.poll(() => db.read(uses, {})).toEqual([{ uses: 2_000, failures: 0 }]);
  counter.used('default', ids.slice(2_000));
  await counter[Symbol.asyncDispose]();
  expect(await db.read(uses, {})).toEqual([{ uses: 2_100, failures: 0 }]);
  await db[Symbol.asyncDispose]();
});

test('a count that cannot be written is lost without harm', async () => {
  const { db, counter } = await open();
  await db[Symbol.asyncDispose]();
  counter.used('default', ['a']);
  expect(await counter.flush()).toBeUndefined();
});
