import { findPostgres } from '@gatehouse/testkit/postgres';
import { createStepClock } from '@gatehouse/testkit';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../../kernel/clock.ts';
import { silentLog } from '../../../../kernel/log.ts';
import { Connection } from '../../../../kernel/db/postgres/connection.ts';
import { guardStatement } from '../../../../kernel/db/postgres/guard.ts';
import { createTestDatabase, type TestDatabase } from '../../../../kernel/db/postgres/testing/test-database.ts';
import { nodeMigrations } from '../migrations.ts';
import { createLease, type LeaseOptions, type LeaseSession, type NodeLease } from './lease.ts';

/** The time of leases is that of the database, which no test can step: they are short. */
const times = { leaseMs: 1_500, renewMs: 300, marginMs: 300, retryMs: 50 };

describe.runIf(findPostgres() !== undefined)('the lease on PostgreSQL', () => {
  let database: TestDatabase;
  let client: Client;
  let open: Set<LeaseSession>;
  beforeAll(async () => {
    database = await createTestDatabase(nodeMigrations);
    client = new Client({ connectionString: database.url });
    await client.connect();
  });
  beforeEach(async () => {
    open = new Set();
    await client.query(`UPDATE active_node SET boot_id = '', fence = 0; DELETE FROM node; DELETE FROM installation`);
  });
  afterEach(async () => {
    for (const session of open) await session.close();
  });
  afterAll(async () => {
    await client.end();
    await database[Symbol.asyncDispose]();
  });

  async function connect(): Promise<LeaseSession> {
    const session = await Connection.open({ address: { url: database.url }, purpose: 'lease', clock: systemClock });
    open.add(session);
    return session;
  }

  function node(bootId: string, options: Partial<LeaseOptions> = {}): { readonly lease: NodeLease; readonly events: unknown[] } {
    const events: unknown[] = [];
    const lease = createLease({
      connect,
      self: { bootId, homeId: `home of ${bootId}`, version: '1.0.0' },
      clock: systemClock,
      log: silentLog,
      times,
      onRenewed: () => events.push('renewed'),
      onLost: () => events.push('lost'),
      ...options,
    });
    return { lease, events };
  }

  const seat = async () => (await client.query('SELECT boot_id, fence::int FROM active_node')).rows[0];

  test('one of two that start together gets it, and the other one when that one stops', async () => {
    const [one, two] = [node('one'), node('two')];
    await Promise.all([one.lease.standBy(), two.lease.standBy()]);
    const attempts = await Promise.all([one.lease.tryAcquire(160), two.lease.tryAcquire(160)]);
    expect(attempts.map(({ acquired }) => acquired).toSorted()).toEqual([false, true]);
    const [winner, loser] = attempts[0]?.acquired === true ? [one, two] : [two, one];
    expect(await seat()).toMatchObject({ fence: 1 });
    expect(await loser.lease.tryAcquire(160)).toMatchObject({ acquired: false, holder: { schemaVersion: 160, version: '1.0.0' } });
    await winner.lease.release();
    expect(await loser.lease.tryAcquire(160)).toEqual({ acquired: true, fence: 2 });
    await loser.lease.release();
    expect(await seat()).toEqual({ boot_id: '', fence: 2 });
  });

  test('a holder that renews keeps it; one that is silent loses it, and learns so', async () => {
    const frozen = createStepClock(systemClock.now());
    const [silent, other] = [node('silent', { clock: frozen }), node('other')];
    await silent.lease.standBy();
    await other.lease.standBy();
    expect(await silent.lease.tryAcquire(160)).toEqual({ acquired: true, fence: 1 });
    for (let round = 0; round < 7; round++) {
      frozen.advance(times.renewMs);
      await expect.poll(() => silent.events.length).toBe(round + 2);
      expect(await other.lease.tryAcquire(160)).toMatchObject({ acquired: false });
    }
    // Its clock is stopped, so that it does not renew.
    await expect.poll(() => other.lease.tryAcquire(160), { interval: 100 }).toEqual({ acquired: true, fence: 2 });
    expect(silent.lease.fault()).toBeUndefined();
    frozen.advance(times.renewMs);
    await expect.poll(() => silent.events.at(-1)).toBe('lost');
    expect(silent.lease.fault()).toBe('Another daemon has taken over');
    await silent.lease.release();
    expect(await seat()).toEqual({ boot_id: 'other', fence: 2 });
    await other.lease.release();
  });

  test('a daemon stops by its own clock before its lease ends, and continues when nobody took over', async () => {
    const clock = createStepClock(systemClock.now());
    let isCut = false;
    const { lease, events } = node('cut', { clock, connect: async () => (isCut ? Promise.reject(new Error('cut off')) : connect()) });
    await lease.standBy();
    expect(await lease.tryAcquire(160)).toEqual({ acquired: true, fence: 1 });
    isCut = true;
    for (const session of open) await session.close();
    clock.advance(times.leaseMs - times.marginMs - 1);
    expect(lease.fault()).toBeUndefined();
    clock.advance(1);
    expect(lease.fault()).toMatch('could not be renewed in time');
    isCut = false;
    await expect
      .poll(() => {
        clock.advance(times.retryMs);
        return lease.fault();
      })
      .toBeUndefined();
    expect(events).toEqual(['renewed', 'renewed']);
    await lease.release();
  });

  test('after the database was away nobody is taken for dead before it could have renewed', async () => {
    const clock = createStepClock(systemClock.now());
    const [gone, waiting] = [node('gone', { clock: createStepClock(systemClock.now()) }), node('waiting', { clock })];
    await gone.lease.standBy();
    expect(await gone.lease.tryAcquire(160)).toMatchObject({ acquired: true });
    await waiting.lease.standBy();
    await client.query(`UPDATE node SET lease_until_ms = 1 WHERE boot_id = 'gone'`);
    for (const session of open) await session.close();
    expect(await waiting.lease.tryAcquire(160)).toMatchObject({ acquired: false, holder: { bootId: 'gone' } });
    clock.advance(times.leaseMs - 1);
    expect(await waiting.lease.tryAcquire(160)).toMatchObject({ acquired: false });
    clock.advance(1);
    await expect.poll(() => waiting.lease.tryAcquire(160)).toEqual({ acquired: true, fence: 2 });
    await waiting.lease.release();
  });

  test('a take-over waits for a commit under way, and refuses the next one', async () => {
    const [dead, next] = [node('dead', { clock: createStepClock(systemClock.now()) }), node('next')];
    await dead.lease.standBy();
    await dead.lease.tryAcquire(160);
    await next.lease.standBy();
    const commits = await connect();
    const guard = () => commits.execute(undefined, guardStatement({ bootId: 'dead', fence: 1 }), []);
    await commits.execute(undefined, 'BEGIN ISOLATION LEVEL SERIALIZABLE', []);
    expect((await guard()).rowCount).toBe(1);
    await client.query(`UPDATE node SET lease_until_ms = 1 WHERE boot_id = 'dead'`);
    const order: string[] = [];
    const taken = next.lease.tryAcquire(160).then((attempt) => (order.push('taken'), attempt));
    await expect
      .poll(async () => (await client.query(`SELECT count(*)::int AS waiting FROM pg_locks WHERE NOT granted`)).rows[0].waiting)
      .toBeGreaterThan(0);
    order.push('committed');
    await commits.execute(undefined, 'COMMIT', []);
    expect(await taken).toEqual({ acquired: true, fence: 2 });
    expect(order).toEqual(['committed', 'taken']);
    expect((await guard()).rowCount).toBe(0);
    await next.lease.release();
  });

  test('a standby that was claimed while it was silent registers again', async () => {
    const clock = createStepClock(systemClock.now());
    const { lease } = node('slept', { clock });
    await lease.standBy();
    await client.query(`UPDATE node SET state = 'claimed', claimed_by = 'other'`);
    await expect(lease.tryAcquire(160)).resolves.toMatchObject({ acquired: false });
    clock.advance(times.renewMs);
    await expect.poll(() => lease.tryAcquire(160)).toEqual({ acquired: true, fence: 1 });
    await lease.release();
  });

  test('a program that the schema has outgrown does not take over', async () => {
    const { lease } = node('old');
    await lease.standBy();
    await expect(lease.tryAcquire(159)).rejects.toMatchObject({ reason: 'newer_schema' });
    expect(await seat()).toEqual({ boot_id: '', fence: 0 });
    await lease.release();
  });

  test('a clock that differs from that of the database is reported, and one that is far off takes nothing over', async () => {
    const off = (ms: number) => createStepClock(systemClock.now() + ms);
    for (const [ms, words] of [
      [40_000, /is 40 s ahead of that of the database/],
      [-40_000, /is 4\d s behind that of the database/],
    ] as const) {
      const { lease } = node(`off by ${ms}`, { clock: off(ms) });
      await lease.standBy();
      await expect(lease.tryAcquire(160)).rejects.toMatchObject({ reason: 'clock_off', message: expect.stringMatching(words) });
      await lease.release();
    }
    expect(await seat()).toEqual({ boot_id: '', fence: 0 });
    const warnings: string[] = [];
    const log = { ...silentLog, warn: (_: object, text: string) => void warnings.push(text) };
    const { lease } = node('a little off', { clock: off(10_000), log });
    await lease.standBy();
    expect(await lease.tryAcquire(160)).toMatchObject({ acquired: true });
    expect(warnings).toEqual([expect.stringMatching(/is 10 s ahead of that of the database: synchronize both/)]);
    await lease.release();
  });

  test('the first key is kept, and every later one is compared with it', async () => {
    const { lease } = node('keyed');
    expect(await lease.keepFingerprint('aaaa')).toBe('aaaa');
    expect(await lease.keepFingerprint('aaaa')).toBe('aaaa');
    expect(await lease.keepFingerprint('bbbb')).toBe('aaaa');
    await lease.release();
  });
});
