import { createStepClock } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import { operation } from '../../../kernel/db/operation.ts';
import { openInlineDb } from '../../../kernel/db/sqlite/inline.ts';
import { silentLog } from '../../../kernel/log.ts';
import { ofDeadBoot, ofLiveBoot } from '../../../kernel/owners.ts';
import type { NodesApi } from './api.ts';
import { nodeMigrations } from './migrations.ts';
import { createNodes, leaseMs } from './nodes.ts';
import { nodeOperations } from './store.ts';
import { ageNodes } from './testing/boots.ts';

const rows = operation('test.rows', (tx) =>
  tx.build<{ bootId: string; state: string; claimedBy: string }>((db) =>
    db.selectFrom('node').select(['bootId', 'state', 'claimedBy']).orderBy('bootId'),
  ),
);
const live = operation('test.live', (tx, { bootId }: { readonly bootId: string }) =>
  tx.build<{ bootId: string }>((db, sql) => db.selectFrom('node').select('bootId').where(ofLiveBoot(sql, bootId))),
);
const dead = operation('test.dead', (tx) =>
  tx.build<{ bootId: string }>((db, sql) =>
    db.selectFrom('node as other').select('other.bootId').where(ofDeadBoot(sql, 'other.bootId')).orderBy('other.bootId'),
  ),
);

let db: Db;
let clock: ReturnType<typeof createStepClock>;
beforeEach(async () => {
  // Rows are pruned by their age, and have the time of the database there.
  clock = createStepClock(systemClock.now());
  db = await openInlineDb({ operations: [...nodeOperations, rows, ageNodes, live, dead], migrations: nodeMigrations });
});
afterEach(() => db[Symbol.asyncDispose]());

const start = (bootId: string, homeId = `home of ${bootId}`, over: Db = db) =>
  createNodes({ db: over, clock, log: silentLog, bootId, homeId, isSole: false, version: '1.0.0' });

/** Steps the clock, so that each renewal and check on the way happens. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 500) {
    await db.write(ageNodes, { ms: 500 });
    clock.advance(500);
    await db.read(rows, undefined);
  }
}

/** The machine sleeps. */
async function leap(ms: number): Promise<void> {
  await db.write(ageNodes, { ms });
  clock.leap(ms);
}

/** A database that fails, as for a daemon that is cut off from it. */
function cutOff(): { readonly db: Db; isCut: boolean } {
  const state: { db: Db; isCut: boolean } = {
    isCut: false,
    db: {
      ...db,
      write: (op, input) => (state.isCut ? Promise.reject(new Error('cut off')) : db.write(op, input)),
      read: (op, input) => (state.isCut ? Promise.reject(new Error('cut off')) : db.read(op, input)),
    },
  };
  return state;
}

/** Whether a lease was renewed within the last three seconds. */
const isRenewed = (leftMs: number) => leftMs > leaseMs - 3_000 && leftMs <= leaseMs;

const states = async () => (await db.read(rows, undefined)).map(({ bootId, state, claimedBy }) => [bootId, state, claimedBy]);

test('renews its lease with its address, and records its end', async () => {
  {
    await using one = await start('one');
    expect(await one.api.list()).toMatchObject([{ state: 'live', address: null, self: true }]);
    await one.api.listening('http://127.0.0.1:1');
    await pass(3_000);
    expect(await one.api.list()).toMatchObject([{ address: 'http://127.0.0.1:1', leaseLeftMs: expect.toSatisfy(isRenewed) }]);
    await one.api.drain();
    expect(await states()).toEqual([['one', 'draining', '']]);
    await pass(20_000);
    expect(await states()).toEqual([['one', 'draining', '']]);
  }
  expect(await states()).toEqual([['one', 'ended', '']]);
  await using two = await start('two');
  expect(await states()).toEqual([
    ['one', 'ended', 'two'],
    ['two', 'live', ''],
  ]);
  expect(two.api.fault()).toBeUndefined();
});

test('a boot is claimed once its lease has lapsed, by one of the others, which then recovers what it left', async () => {
  const cut = cutOff();
  await using first = await start('first', 'home of first', cut.db);
  await using second = await start('second');
  await using third = await start('third');
  const recovered: string[] = [];
  const note = (by: string, { api }: { readonly api: NodesApi }) => api.onClaimed(async () => void recovered.push(by));
  note('second', second);
  note('third', third);
  await pass(30_000);
  expect(await states()).toEqual(['first', 'second', 'third'].map((bootId) => [bootId, 'live', '']));
  cut.isCut = true;
  // The last renewal was at most 3 seconds ago.
  await pass(6_500);
  expect(recovered).toEqual([]);
  await pass(9_000);
  expect(recovered).toHaveLength(1);
  const [winner] = recovered;
  expect((await states())[0]).toEqual(['first', 'claimed', winner]);
  expect(await db.read(live, { bootId: 'first' })).toEqual([]);
  expect(await db.read(dead, undefined)).toEqual([{ bootId: 'first' }]);
  expect(first.api.fault()).toBeUndefined();
  // It finds out with its next renewal, and takes nothing over itself.
  cut.isCut = false;
  await pass(3_500);
  expect(first.api.fault()).toContain('Another daemon has taken over');
  await pass(60_000);
  expect(recovered).toHaveLength(1);
  await first[Symbol.asyncDispose]();
  expect((await states())[0]).toEqual(['first', 'claimed', winner]);
});

test('a lapsed lease that nobody claimed is renewed: the machine was asleep', async () => {
  await using one = await start('one');
  await leap(3_600_000);
  await pass(3_000);
  expect(await states()).toEqual([['one', 'live', '']]);
  expect(one.api.fault()).toBeUndefined();
});

test('the lock of a home shows that its earlier boots are dead; those of other homes keep their leases', async () => {
  const cut = cutOff();
  await using other = await start('other');
  await start('killed', 'home', cut.db);
  cut.isCut = true;
  await using next = await start('next', 'home');
  expect(await states()).toEqual([
    ['killed', 'claimed', 'next'],
    ['next', 'live', ''],
    ['other', 'live', ''],
  ]);
  expect([other.api.fault(), next.api.fault()]).toEqual([undefined, undefined]);
});

test('a daemon that has the database in its home claims all earlier boots as it starts, and needs no timers', async () => {
  await start('earlier', 'another home');
  const pending = clock.pending();
  await using sole = await createNodes({ db, clock, log: silentLog, bootId: 'sole', homeId: 'copied home', isSole: true, version: '1.0.0' });
  expect(await states()).toEqual([
    ['earlier', 'claimed', 'sole'],
    ['sole', 'live', ''],
  ]);
  expect([clock.pending(), sole.api.fault()]).toEqual([pending, undefined]);
});

test('a recovery that fails is repeated', async () => {
  const cut = cutOff();
  await start('first', 'home of first', cut.db);
  await using second = await start('second');
  let calls = 0;
  second.api.onClaimed(async () => {
    calls += 1;
    if (calls === 1) throw new Error('the disk is full');
  });
  cut.isCut = true;
  await pass(12_500);
  expect(calls).toBe(1);
  await pass(5_000);
  expect(calls).toBe(2);
  await pass(20_000);
  expect(calls).toBe(2);
});

test('rows of boots that are over are deleted after a month', async () => {
  await (await start('old')).api.drain();
  await (await start('older', 'home of old'))[Symbol.asyncDispose]();
  await leap(31 * 24 * 3_600_000);
  await using next = await start('next', 'home of old');
  expect((await states()).map(([bootId]) => bootId)).toEqual(['next', 'older']);
  expect(next.api.bootId).toBe('next');
});
