import { createStepClock } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AppError } from '../../../kernel/app-error.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import { operation } from '../../../kernel/db/operation.ts';
import { openInlineDb } from '../../../kernel/db/sqlite/inline.ts';
import { silentLog } from '../../../kernel/log.ts';
import type { WorkHandler, WorkItem, WorkLimits } from './api.ts';
import { createDurable, type Durable } from './durable.ts';
import { nodeMigrations } from '../../operations/nodes/migrations.ts';
import { durableMigrations } from './migrations.ts';
import { acceptWork, durableOperations, findWork, holdsWork, maxWaiting, settleWork, suspendWork } from './store.ts';

const accept = operation('test.accept', acceptWork);
const fill = operation('test.fill', async (tx, { count, ...work }: Parameters<typeof acceptWork>[1] & { readonly count: number }) => {
  for (let n = 0; n < count; n += 1) await acceptWork(tx, { ...work, fits: true, id: `${work.id}_${n}`, key: `${work.key}_${n}` });
});
const find = operation('test.find', findWork);
const holds = operation('test.holds', holdsWork);
const settle = operation('test.settle', settleWork);
const endWork = operation('test.end', settleWork);
const rows = operation('test.rows', async (tx) => (await tx.build((db) => db.selectFrom('workItem').select('id'))).length);

const clock = createStepClock();
let db: Db;
let workers: Durable[];
beforeEach(async () => {
  db = await openInlineDb({
    operations: [...durableOperations, endWork, accept, fill, find, holds, settle, rows],
    migrations: [...durableMigrations, ...nodeMigrations],
  });
  workers = [];
});
afterEach(async () => {
  for (const worker of workers) await worker[Symbol.asyncDispose]();
  await db[Symbol.asyncDispose]();
});

const limits: WorkLimits = { concurrency: 2, maxAttempts: 3 };

async function worker(bootId: string, handler: WorkHandler, over: Partial<WorkLimits> = {}): Promise<Durable> {
  const made = createDurable({ db, clock, log: silentLog, bootId, endWork });
  workers.push(made);
  made.api.handle('mail', handler, { ...limits, ...over });
  await made.api.start();
  return made;
}

const work = (id: string, over: { readonly key?: string; readonly digest?: string; readonly notBeforeMs?: number } = {}) => ({
  id,
  kind: 'mail',
  key: id,
  digest: 'd',
  agentId: null,
  payload: { to: id },
  atMs: clock.now(),
  ...over,
});
const statusOf = async (key: string) => (await db.read(find, { kind: 'mail', key }))?.state;

/** Returns a handler whose calls the test resolves. */
function heldHandler() {
  const items: WorkItem[] = [];
  const signals: AbortSignal[] = [];
  const ends = new Map<string, (outcome: Awaited<ReturnType<WorkHandler>>) => void>();
  const handler: WorkHandler = (item, signal) => {
    items.push(item);
    signals.push(signal);
    return new Promise((resolve) => {
      ends.set(item.id, resolve);
      signal.addEventListener('abort', () => resolve({ state: 'aborted' }));
    });
  };
  return { items, signals, handler, end: (id: string, outcome: Awaited<ReturnType<WorkHandler>> = { state: 'done' }) => ends.get(id)?.(outcome) };
}

test('work started on acceptance is claimed and done; without a free slot it is queued', async () => {
  const { items, handler, end } = heldHandler();
  const { api } = await worker('one', handler, { concurrency: 1 });
  const begin = (id: string) => api.begin(work(id), (claimed) => db.write(accept, claimed));
  expect(await begin('wi_1')).toEqual({ accepted: true });
  expect(items).toMatchObject([{ id: 'wi_1', owner: 'one', fence: 1, attempts: 1, resumed: false, payload: { to: 'wi_1' } }]);
  expect(await statusOf('wi_1')).toBe('running');
  expect(await begin('wi_2')).toEqual({ accepted: true });
  expect(await statusOf('wi_2')).toBe('accepted');
  end('wi_1');
  await expect.poll(() => items.length).toBe(2);
  expect(await statusOf('wi_1')).toBe('done');
  end('wi_2');
  await expect.poll(() => statusOf('wi_2')).toBe('done');
});

test('work started with a rejected acceptance has no claim, and its result no effect', async () => {
  const { items, handler, end } = heldHandler();
  const { api } = await worker('one', handler);
  const refused = api.begin(work('wi_1'), () => Promise.reject(new AppError('denied', 'no')));
  await expect(refused).rejects.toThrow('no');
  expect(await db.write(holds, items[0]!)).toBe(false);
  end('wi_1');
  await expect.poll(() => api.counts().running).toBe(0);
  expect(await db.read(rows, {})).toBe(0);
});

test('a key identifies one work item, whatever is submitted under it again', async () => {
  expect(await db.write(accept, work('wi_1', { key: 'k' }))).toEqual({ accepted: true });
  expect(await db.write(accept, work('wi_2', { key: 'k' }))).toEqual({ accepted: false, id: 'wi_1', sameDigest: true });
  expect(await db.write(accept, work('wi_3', { key: 'k', digest: 'other' }))).toEqual({ accepted: false, id: 'wi_1', sameDigest: false });
});

test('work beyond the queue limit is rejected at intake', async () => {
  await db.write(fill, { ...work('wi'), count: maxWaiting });
  await expect(db.write(accept, work('wi_more'))).rejects.toMatchObject({ code: 'unavailable', details: { retryAfterMs: 5_000 } });
  // A repeat of queued work adds nothing.
  expect(await db.write(accept, work('wi_0', { key: 'wi_7' }))).toMatchObject({ accepted: false, id: 'wi_7' });
});

test('a flood of one kind does not fill the queues of others, and claims free capacity again', async () => {
  await db.write(fill, { ...work('wi'), count: maxWaiting });
  await expect(db.write(accept, work('wi_more'))).rejects.toMatchObject({ code: 'unavailable' });
  await db.write(fill, { ...work('other'), kind: 'post', count: 10 });
  const { items, handler, end } = heldHandler();
  const { api } = await worker('a', handler);
  await expect.poll(() => items.length).toBe(2);
  await db.write(fill, { ...work('after'), count: 2 });
  await expect(db.write(accept, work('wi_more'))).rejects.toMatchObject({ code: 'unavailable' });
  // Returned items count as waiting too, whatever was accepted meanwhile.
  for (const { id } of items.slice(0, 2)) end(id, { retryAfterMs: 60_000, errorKind: 'network' });
  await expect.poll(() => items.length).toBe(4);
  api.wake('mail');
  await expect(db.write(accept, work('wi_more'))).rejects.toMatchObject({ code: 'unavailable' });
});

test('an intake looks for capacity only when the queue may be full', async () => {
  const later = { notBeforeMs: clock.now() + 1_000_000 };
  await db.write(fill, { ...work('a', later), count: maxWaiting - 500 });
  const { api } = await worker('a', async () => ({ state: 'done' }));
  let looked = 0;
  const intake = (id: string) =>
    api.begin(work(id, later), (given) => {
      if (given.fits !== true) looked += 1;
      return db.write(accept, given);
    });
  for (let n = 0; n < 300; n += 1) await intake(`b_${n}`);
  expect(looked).toBeLessThan(5);
  const outcomes = await Promise.allSettled(Array.from({ length: 300 }, (_, n) => intake(`c_${n}`)));
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(200);
  expect(await db.read(rows, undefined)).toBe(maxWaiting);
});

test('a wake for a kind without free slots makes no query', async () => {
  let looks = 0;
  const counting: Db = { ...db, read: (op, input) => ((looks += op.name === 'durable.nextAt' ? 1 : 0), db.read(op, input)) };
  const { items, handler, end } = heldHandler();
  const made = createDurable({ db: counting, clock, log: silentLog, bootId: 'a', endWork });
  workers.push(made);
  made.api.handle('mail', handler, limits);
  made.api.handle('post', handler, limits);
  await made.api.start();
  for (const id of ['wi_1', 'wi_2', 'wi_3']) await db.write(accept, work(id));
  made.api.wake('mail');
  await expect.poll(() => items.length).toBe(2);
  await db.read(rows, undefined);
  const before = looks;
  for (let n = 0; n < 20; n += 1) {
    made.api.wake('mail');
    await db.read(rows, undefined);
  }
  expect(looks - before).toBeLessThanOrEqual(1);
  made.api.wake('post');
  await expect.poll(() => looks - before).toBeGreaterThanOrEqual(1);
  end('wi_1');
  await expect.poll(() => items.length).toBe(3);
});

test('runs due work up to the concurrency of the kind, and stores the result', async () => {
  const { items, handler, end } = heldHandler();
  const { api } = await worker('a', handler);
  for (const id of ['wi_1', 'wi_2', 'wi_3']) await db.write(accept, work(id));
  await db.write(accept, work('wi_later', { notBeforeMs: clock.now() + 10_000 }));
  api.wake('mail');
  await expect.poll(() => items.map(({ id }) => id)).toEqual(['wi_1', 'wi_2']);
  expect(items[0]).toMatchObject({ key: 'wi_1', payload: { to: 'wi_1' }, attempts: 1, resumes: 0, resumed: false, owner: 'a', fence: 1 });
  end('wi_1', { state: 'done', result: { sent: true } });
  await expect.poll(() => items.map(({ id }) => id)).toEqual(['wi_1', 'wi_2', 'wi_3']);
  expect(await db.read(find, { kind: 'mail', key: 'wi_1' })).toMatchObject({ id: 'wi_1', state: 'done', result: { sent: true }, errorKind: null });
  end('wi_2');
  end('wi_3');
  await expect.poll(() => api.counts().running).toBe(0);
  await expect.poll(() => (clock.advance(1_000), items.length)).toBe(4);
});

test('finds work without a wake', async () => {
  const { items, handler } = heldHandler();
  await worker('a', handler);
  await db.write(accept, work('wi_1'));
  await expect.poll(() => (clock.advance(30_000), items.length)).toBe(1);
});

test("retries after the handler's delay and after failures, until the attempts are exhausted", async () => {
  const tries: number[] = [];
  const gaveUp: string[] = [];
  const handler: WorkHandler = async ({ attempts }) => {
    tries.push(attempts);
    if (attempts === 2) throw new AppError('rate_limited', 'too much');
    return { retryAfterMs: 60_000, errorKind: 'provider_degraded' };
  };
  await worker('a', handler, { gaveUp: async (_, errorKind) => void gaveUp.push(errorKind) });
  await db.write(accept, work('wi_1'));
  await expect.poll(() => (clock.advance(30_000), tries.length)).toBe(1);
  await expect.poll(() => statusOf('wi_1')).toBe('accepted');
  const due = clock.now() + 59_000;
  while (clock.now() < due) clock.advance(1_000);
  expect(tries).toEqual([1]);
  await expect.poll(() => (clock.advance(1_000), tries)).toEqual([1, 2]);
  await expect.poll(() => (clock.advance(10_000), tries)).toEqual([1, 2, 3]);
  await expect.poll(() => db.read(find, { kind: 'mail', key: 'wi_1' })).toMatchObject({ state: 'failed', errorKind: 'provider_degraded' });
  expect(gaveUp).toEqual(['provider_degraded']);
});

test('takes over work of another process, which can then write nothing', async () => {
  const first = heldHandler();
  await worker('a', first.handler);
  await db.write(accept, work('wi_1'));
  await expect.poll(() => (clock.advance(30_000), first.items.length)).toBe(1);
  const second = heldHandler();
  const { api } = await worker('b', second.handler);
  await expect.poll(() => second.items).toMatchObject([{ id: 'wi_1', owner: 'b', resumed: true, resumes: 1, attempts: 1 }]);
  const [stale] = first.items;
  const [claim] = second.items;
  if (stale === undefined || claim === undefined) throw new Error('nothing was claimed');
  expect(await db.write(holds, stale)).toBe(false);
  expect(await db.write(settle, { ...stale, state: 'done', atMs: clock.now() })).toBe(false);
  // The first one notices when it renews its lease, and its work is aborted.
  await expect.poll(() => (clock.advance(20_000), first.signals[0]?.aborted)).toBe(true);
  second.end('wi_1');
  await expect.poll(() => statusOf('wi_1')).toBe('done');
  await expect.poll(() => api.counts().running).toBe(0);
});

test('a process stopped past its lease resumes work that nobody has taken over', async () => {
  const { items, handler, end } = heldHandler();
  await worker('a', handler);
  await db.write(accept, work('wi_1'));
  await expect.poll(() => (clock.advance(30_000), items.length)).toBe(1);
  clock.advance(600_000);
  await expect.poll(() => (clock.advance(1_000), db.write(holds, items[0] ?? { id: '', owner: '', fence: 0 }))).toBe(true);
  end('wi_1');
  await expect.poll(() => statusOf('wi_1')).toBe('done');
  expect(items).toHaveLength(1);
});

test('waiting work whose wait ends before its handler has returned is claimed again only then, and at once', async () => {
  const { items, handler, end } = heldHandler();
  const firstEnds = Promise.withResolvers<void>();
  const made = await worker(
    'one',
    async (item, signal) => {
      if (items.length > 0) return handler(item, signal);
      items.push(item);
      const { id, owner, fence } = item;
      const wait = { kind: 'approval', subject: 'ap_1', untilMs: clock.now() + 86_400_000 } as const;
      await db.write(suspendWork, { id, owner, fence, wait, atMs: clock.now() });
      await made.api.resumeWaiting({ kind: 'approval', subject: 'ap_1' });
      await firstEnds.promise;
      return 'settled';
    },
    { concurrency: 3 },
  );
  await db.write(accept, work('wi_1'));
  await db.write(accept, work('wi_2'));
  made.api.wake('mail');
  // Other work of the kind is claimed meanwhile.
  await expect.poll(() => items.map(({ id }) => id)).toEqual(['wi_1', 'wi_2']);
  end('wi_2');
  await expect.poll(() => statusOf('wi_2')).toBe('done');
  expect(items).toHaveLength(2);
  firstEnds.resolve();
  await expect.poll(() => items.length).toBe(3);
  // It keeps its lease.
  for (let n = 0; n < 6; n += 1) {
    await expect.poll(() => made.api.counts().running).toBe(1);
    clock.advance(20_000);
  }
  end('wi_1');
  await expect.poll(() => statusOf('wi_1')).toBe('done');
  expect(items.map(({ id, resumes }) => [id, resumes])).toEqual([
    ['wi_1', 0],
    ['wi_2', 0],
    ['wi_1', 0],
  ]);
});

test('a stop waits for running work, then releases it for the next start', async () => {
  const first = heldHandler();
  const stopping = await worker('a', first.handler);
  for (const id of ['wi_1', 'wi_2']) await db.write(accept, work(id));
  await expect.poll(() => (clock.advance(30_000), first.items.length)).toBe(2);
  const drained = stopping.drain(5_000);
  await db.write(accept, work('wi_3'));
  stopping.api.wake('mail');
  first.end('wi_1');
  await expect.poll(() => statusOf('wi_1')).toBe('done');
  clock.advance(5_000);
  await drained;
  expect(first.items.map(({ id }) => id)).toEqual(['wi_1', 'wi_2']);
  expect(await statusOf('wi_2')).toBe('running');
  const second = heldHandler();
  await worker('b', second.handler);
  await expect
    .poll(() => second.items.map(({ id, resumes, attempts }) => [id, resumes, attempts]).toSorted())
    .toEqual([
      ['wi_2', 0, 1],
      ['wi_3', 0, 1],
    ]);
});

test('gives up work during which nine processes died', async () => {
  const { handler, items } = heldHandler();
  const gaveUp: string[] = [];
  await db.write(accept, work('wi_1'));
  for (let n = 0; n < 9; n += 1) {
    await worker(`boot ${n}`, handler);
    await expect.poll(() => items.length).toBe(n + 1);
  }
  await worker('last', handler, { gaveUp: async ({ id }, errorKind) => void gaveUp.push(`${id} ${errorKind}`) });
  await expect.poll(() => statusOf('wi_1')).toBe('failed');
  expect(gaveUp).toEqual(['wi_1 too_many_resumes']);
  expect(items).toHaveLength(9);
});

test('deletes work that ended a week ago', async () => {
  await worker('a', async () => ({ state: 'done' }));
  await db.write(accept, work('wi_1'));
  await expect.poll(() => (clock.advance(30_000), statusOf('wi_1'))).toBe('done');
  clock.advance(6 * 24 * 3_600_000);
  await expect.poll(() => db.read(rows, undefined)).toBe(1);
  await expect.poll(() => (clock.advance(24 * 3_600_000), db.read(rows, undefined))).toBe(0);
});

test('work accepted before a backward clock step does not wait for the old time', async () => {
  const { items, handler } = heldHandler();
  const { api } = await worker('a', handler, { concurrency: 3 });
  const later = clock.now() + 3_600_000;
  await db.write(accept, work('wi_wait', { notBeforeMs: later }));
  await db.write(accept, { ...work('wi_1'), atMs: later });
  await db.write(accept, { ...work('wi_2', { notBeforeMs: later + 5_000 }), atMs: later });
  api.wake('mail');
  await expect.poll(() => items.map(({ id }) => id)).toEqual(['wi_1', 'wi_2']);
});

test('waiting work keeps its time after a backward clock step, and is checked once, not constantly', async () => {
  const { items, handler, end } = heldHandler();
  const behind: Clock = { ...clock, now: () => clock.now() + (items.length === 0 ? 86_400_000 : 0) };
  await db.write(accept, { ...work('wi_1'), atMs: behind.now() });
  const made = createDurable({ db, clock: behind, log: silentLog, bootId: 'one', endWork });
  workers.push(made);
  made.api.handle('mail', handler, limits);
  await made.api.start();
  for (const count of [1, 2]) {
    await expect.poll(() => items.length).toBe(count);
    end('wi_1', { wait: { kind: 'approval', subject: 'ap_1', untilMs: clock.now() + 86_400_000 } });
    await expect.poll(() => made.api.counts().running).toBe(0);
    clock.advance(60_000);
    if (count === 1) await made.api.resumeWaiting({ kind: 'approval', subject: 'ap_1' });
  }
  for (let n = 0; n < 5; n += 1) {
    clock.advance(60_000);
    await statusOf('wi_1');
  }
  expect(items.length).toBe(2);
});

test('one timer renews leases, even when work ends and starts during a renewal', async () => {
  let live = 0;
  const counting: Clock = {
    ...clock,
    after(ms, run) {
      if (ms !== 20_000) return clock.after(ms, run);
      let isLive = true;
      live += 1;
      const end = () => {
        if (isLive) live -= 1;
        isLive = false;
      };
      const cancel = clock.after(ms, () => (end(), run()));
      return () => (end(), cancel());
    },
  };
  const renewed = Promise.withResolvers<undefined>();
  let renewals = 0;
  const slow: Db = {
    ...db,
    async write(op, input) {
      const output = await db.write(op, input);
      if (op.name === 'durable.renew') await ((renewals += 1), renewed.promise);
      return output;
    },
  };
  const { items, handler, end } = heldHandler();
  const made = createDurable({ db: slow, clock: counting, log: silentLog, bootId: 'a', endWork });
  workers.push(made);
  made.api.handle('mail', handler, limits);
  await made.api.start();
  await db.write(accept, work('wi_1'));
  made.api.wake('mail');
  await expect.poll(() => items.length).toBe(1);
  clock.advance(20_000);
  await expect.poll(() => renewals).toBe(1);
  end('wi_1');
  await expect.poll(() => made.api.counts().running).toBe(0);
  await db.write(accept, work('wi_2'));
  made.api.wake('mail');
  await expect.poll(() => items.length).toBe(2);
  renewed.resolve(undefined);
  await new Promise((resolve) => setImmediate(resolve));
  expect(live).toBe(1);
});
