import { findPostgres, startPostgres, type TestPostgres } from '@gatehouse/testkit/postgres';
import { startTcpProxy, type TcpProxy } from '@gatehouse/testkit/tcp-proxy';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, type ExpectStatic, it } from 'vitest';
import { AppError } from '../../app-error.ts';
import { type Clock, systemClock } from '../../clock.ts';
import { silentLog } from '../../log.ts';
import type { Db } from '../db.ts';
import { addNote, countNotes, listTexts, migrations, operations } from '../sqlite/testing/parts.ts';
import { openInlinePostgres } from './inline.ts';
import { openPostgresDb } from './open-postgres.ts';
import { createTestDatabase, testServer } from './testing/test-database.ts';

interface Rig extends AsyncDisposable {
  readonly db: Db;
  readonly proxy: TcpProxy;
  readonly states: string[];
  /** Names the database, past the proxy. */
  readonly url: string;
}

async function open(clock = systemClock): Promise<Rig> {
  const stack = new AsyncDisposableStack();
  const { url } = stack.use(await createTestDatabase(migrations));
  const proxy = stack.use(await startTcpProxy(Number(new URL(url).port)));
  const proxied = new URL(url);
  proxied.port = String(proxy.port);
  const states: string[] = [];
  const db = stack.use(
    await openInlinePostgres({
      address: { url: proxied.href },
      operations,
      migrations,
      poolSize: 6,
      clock,
      onState: (state) => states.push(state),
    }),
  );
  return { db, proxy, states, url, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** Writes numbered notes from several callers until `until` has resolved; returns what was acknowledged and what failed. */
async function writeWhile(
  db: Db,
  until: (acknowledged: readonly string[]) => Promise<unknown>,
): Promise<{ readonly acknowledged: string[]; readonly failures: unknown[] }> {
  const acknowledged: string[] = [];
  const failures: unknown[] = [];
  let next = 0;
  let isOver = false;
  const over = until(acknowledged).finally(() => (isOver = true));
  await Promise.all([
    over,
    ...Array.from({ length: 8 }, async () => {
      while (!isOver) {
        const text = `n${next++}`;
        await db.write(addNote, { text }).then(
          () => acknowledged.push(text),
          (error: unknown) => failures.push(error),
        );
      }
    }),
  ]);
  return { acknowledged, failures };
}

async function expectEachOnce(expect: ExpectStatic, db: Db, acknowledged: readonly string[]): Promise<void> {
  const stored = await db.read(listTexts, {});
  expect(new Set(stored).size).toBe(stored.length);
  expect(acknowledged.filter((text) => !stored.includes(text))).toEqual([]);
}

/** The limits of connections end in a quarter of their time. */
const quickClock: Clock = {
  ...systemClock,
  monotonic: () => systemClock.monotonic() * 4,
  after: (ms, run) => systemClock.after(ms / 4, run),
};

async function connectTo(url: string): Promise<AsyncDisposable & { readonly client: Client }> {
  const client = new Client({ connectionString: url });
  // A crash of the server ends it.
  client.on('error', () => {});
  await client.connect();
  return { client, [Symbol.asyncDispose]: () => client.end() };
}

// Each waits for time limits of connections most of the time, with its own database or server.
describe.skipIf(findPostgres() === undefined).concurrent('a connection to PostgreSQL', { timeout: 120_000 }, () => {
  it('that is cut again and again loses and doubles nothing', async ({ expect }) => {
    await using rig = await open();
    const { acknowledged, failures } = await writeWhile(rig.db, async (done) => {
      for (let round = 0; round < 20; round++) {
        const before = done.length;
        await expect.poll(() => done.length).toBeGreaterThan(before);
        rig.proxy.cut();
      }
    });
    // A change whose commit was in doubt is looked up, so no caller is left without an answer.
    expect(failures).toEqual([]);
    expect(acknowledged.length).toBeGreaterThan(0);
    await expectEachOnce(expect, rig.db, acknowledged);
  });

  it('that is lost with the answer of a commit finds out that the change was kept', async ({ expect }) => {
    await using rig = await open();
    await rig.db.write(addNote, { text: 'first' });
    const count = async () => {
      const client = new Client({ connectionString: rig.url });
      await client.connect();
      const { rows } = await client.query('SELECT count(*)::int AS count FROM note');
      await client.end();
      return rows[0].count as number;
    };
    for (let round = 0; round < 5; round++) {
      const before = await count();
      void rig.proxy.muteOn('COMMIT');
      const written = rig.db.write(addNote, { text: `round ${round}` });
      await expect.poll(count).toBe(before + 1);
      rig.proxy.cut();
      rig.proxy.resume();
      expect(await written).toEqual({ added: `round ${round}` });
      expect(await count()).toBe(before + 1);
    }
  });

  it('that is half open is given up, and the change is stored once', async ({ expect }) => {
    await using rig = await open(quickClock);
    await rig.db.write(addNote, { text: 'first' });
    expect(await rig.db.read(listTexts, {})).toEqual(['first']);
    rig.proxy.halfOpen();
    expect(await rig.db.write(addNote, { text: 'second' })).toEqual({ added: 'second' });
    // One that was not used since does not keep its next caller waiting, too.
    await expect.poll(() => rig.proxy.unnoticed).toBe(0);
    expect(await rig.db.read(listTexts, {})).toEqual(['first', 'second']);
  });

  it('that stalls makes calls wait and then fail with the time to retry, and works again afterwards', async ({ expect }) => {
    await using rig = await open(quickClock);
    await rig.db.write(addNote, { text: 'first' });
    rig.proxy.stall();
    await expect(rig.db.write(addNote, { text: 'second' })).rejects.toMatchObject({ code: 'unavailable', details: { retryAfterMs: 2_000 } });
    expect((await rig.db.status()).state).toBe('read_only');
    rig.proxy.resume();
    await expect.poll(async () => (await rig.db.status()).state).toBe('ok');
    await rig.db.write(addNote, { text: 'third' });
    await expectEachOnce(expect, rig.db, ['first', 'third']);
  });

  it('that cannot be opened makes calls fail after a bounded wait, and state says so', async ({ expect }) => {
    await using rig = await open(quickClock);
    await rig.db.write(addNote, { text: 'first' });
    rig.proxy.refuse();
    const calls = [rig.db.write(addNote, { text: 'lost' }), rig.db.read(countNotes, {}), rig.db.telemetry(addNote, { text: 'lost' })];
    for (const outcome of await Promise.allSettled(calls))
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'unavailable', details: { retryAfterMs: 2_000 } } });
    expect(rig.states).toEqual(['read_only']);
    rig.proxy.accept();
    // A call that comes while it is away waits for it.
    await rig.db.write(addNote, { text: 'second' });
    expect(rig.states).toEqual(['read_only', 'ok']);
    expect(await rig.db.read(listTexts, {})).toEqual(['first', 'second']);
  });

  describe('to a server that crashes or changes its role', { concurrent: false }, () => {
    let server: TestPostgres;
    beforeAll(async () => {
      // What no commit flushes is lost in a crash, as it can be at any time.
      server = await startPostgres({ settings: { wal_writer_delay: '10s' } });
    });
    afterAll(() => server[Symbol.asyncDispose]());

    it('is opened again, and nothing is lost or doubled', async ({ expect }) => {
      await using db = await openInlinePostgres({ address: { url: server.url() }, operations, migrations });
      const { acknowledged, failures } = await writeWhile(db, async (done) => {
        await expect.poll(() => done.length).toBeGreaterThan(20);
        await server.restart('SIGQUIT');
        const before = done.length;
        await expect.poll(() => done.length).toBeGreaterThan(before + 20);
      });
      // A server that takes longer than calls wait is said to be away; what was acknowledged is stored all the same.
      expect(failures.filter((failure) => !(failure instanceof AppError && failure.code === 'unavailable'))).toEqual([]);
      await expectEachOnce(expect, db, acknowledged);
    });

    it('continues on another one of its address that accepts writes', async ({ expect }) => {
      const other = await testServer();
      const hosts = `127.0.0.1:${server.port},127.0.0.1:${new URL(other).port}`;
      const name = `several_${process.pid}`;
      await using first = await connectTo(server.url());
      await using second = await connectTo(other);
      for (const { client } of [first, second]) await client.query(`CREATE DATABASE ${name}`);
      const refuse = ({ client }: typeof first) => client.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
      const accept = ({ client }: typeof first) => client.query(`ALTER DATABASE ${name} RESET default_transaction_read_only`);
      for (const url of [server.url(name), `postgres://postgres@127.0.0.1:${new URL(other).port}/${name}`])
        await (await openInlinePostgres({ address: { url }, operations, migrations }))[Symbol.asyncDispose]();
      await refuse(first);
      await using db = await openInlinePostgres({ address: { url: `postgres://postgres@${hosts}/${name}` }, operations, migrations });
      await db.write(addNote, { text: 'on the second' });
      expect(await db.read(listTexts, {})).toEqual(['on the second']);
      await refuse(second);
      await accept(first);
      await second.client.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`);
      await db.write(addNote, { text: 'on the first' });
      expect(await db.read(listTexts, {})).toEqual(['on the first']);
      expect((await db.status()).path).toBe(`postgres://${hosts}/${name}`);
    });

    it('waits for writes that a guarded daemon makes on connections that became read-only', async ({ expect }) => {
      await using admin = await connectTo(server.url());
      await using db = await openPostgresDb({
        address: { url: server.url() },
        workerUrl: new URL('./testing/worker.ts', import.meta.url),
        clock: systemClock,
        log: silentLog,
      });
      await admin.client.query(`CREATE TABLE active_node AS SELECT 1::bigint AS id, 'me' AS boot_id, 3::bigint AS fence`);
      db.guard({ bootId: 'me', fence: 3 }, () => {});
      await db.write(addNote, { text: 'before' });
      await admin.client.query('ALTER SYSTEM SET default_transaction_read_only = on');
      await admin.client.query('SELECT pg_reload_conf()');
      await expect
        .poll(async () => (await admin.client.query('SHOW default_transaction_read_only')).rows[0].default_transaction_read_only)
        .toBe('on');
      const written = db.write(addNote, { text: 'meanwhile' });
      await expect.poll(async () => (await db.status()).state).toBe('read_only');
      await admin.client.query('ALTER SYSTEM RESET default_transaction_read_only');
      await admin.client.query('SELECT pg_reload_conf()');
      expect(await written).toEqual({ added: 'meanwhile' });
    });

    it('does not take the commit of another transaction for its own, which gets the same id after the crash', async ({ expect }) => {
      await using first = await connectTo(server.url());
      await first.client.query('CREATE DATABASE reused');
      await using proxy = await startTcpProxy(server.port);
      const url = server.url('reused');
      await using db = await openInlinePostgres({ address: { url: url.replace(String(server.port), String(proxy.port)) }, operations, migrations });
      await db.write(addNote, { text: 'first' });
      // The server may write its log just then, and no other transaction gets an id that is in it.
      for (let round = 0, isReused = false; !isReused; round++) {
        expect(round).toBeLessThan(5);
        await using admin = await connectTo(server.url());
        void proxy.holdOn('COMMIT');
        const lost = db.write(addNote, { text: `lost ${round}` }).catch((error: unknown) => error);
        const held = `SELECT backend_xid::text AS id FROM pg_stat_activity WHERE datname = 'reused' AND state = 'idle in transaction' AND query LIKE 'insert%'`;
        const idOfHeld = async () => (await admin.client.query(held)).rows[0]?.id as string | undefined;
        await expect.poll(idOfHeld).toBeDefined();
        const id = await idOfHeld();
        proxy.resume();
        proxy.refuse();
        await server.restart('SIGQUIT');
        await using other = await connectTo(url);
        for (let number = 0; number < 20; number++)
          isReused = (await other.client.query('SELECT pg_current_xact_id()::text AS id')).rows[0].id === id || isReused;
        proxy.accept();
        const outcome = await lost;
        if (!isReused) continue;
        expect(outcome).toMatchObject({ code: 'unavailable', message: expect.stringContaining('is not known') });
        expect(await db.read(listTexts, {})).not.toContain(`lost ${round}`);
      }
    });
  });

  it('to a server that became read-only stores nothing, still reads, and writes again afterwards', async ({ expect }) => {
    await using rig = await open(quickClock);
    await rig.db.write(addNote, { text: 'first' });
    const admin = new Client({ connectionString: rig.url });
    await admin.connect();
    const { database } = admin as unknown as { readonly database: string };
    await admin.query(`ALTER DATABASE ${database} SET default_transaction_read_only = on`);
    rig.proxy.cut();
    await expect(rig.db.write(addNote, { text: 'refused' })).rejects.toMatchObject({ code: 'unavailable', details: { retryAfterMs: 2_000 } });
    expect((await rig.db.status()).state).toBe('read_only');
    expect(await rig.db.read(listTexts, {})).toEqual(['first']);
    await admin.query('SET default_transaction_read_only = off');
    await admin.query(`ALTER DATABASE ${database} RESET default_transaction_read_only`);
    await admin.end();
    await rig.db.write(addNote, { text: 'second' });
    expect(await rig.db.read(listTexts, {})).toEqual(['first', 'second']);
  });

  it('says that the server has no connection left, and writes on those that it has', async ({ expect }) => {
    await using rig = await open();
    const url = new URL(rig.url);
    const role = `few_${url.pathname.slice(1)}`;
    await using admin = await connectTo(rig.url);
    await admin.client.query(`CREATE ROLE ${role} LOGIN CONNECTION LIMIT 1; GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO ${role}`);
    url.username = role;
    const keyed = { ...addNote, name: 'notes.keyed', orderKey: ({ text }: { readonly text: string }) => text };
    await using db = await openInlinePostgres({
      address: { url: url.href },
      operations: [...operations, keyed],
      migrations,
      poolSize: 6,
      clock: quickClock,
    });
    await db.write(keyed, { text: 'a' });
    const none = { code: 'unavailable', message: expect.stringContaining('no connection left') };
    // Each needs a second one.
    await Promise.all([
      expect(db.write(keyed, { text: 'b' })).rejects.toMatchObject(none),
      expect(db.read(listTexts, {})).rejects.toMatchObject(none),
    ]);
    expect((await db.status()).state).toBe('ok');
    await db.write(keyed, { text: 'a' });
    expect(await rig.db.read(listTexts, {})).toEqual(['a', 'a']);
  });
});
