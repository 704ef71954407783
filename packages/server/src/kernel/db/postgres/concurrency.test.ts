import { findPostgres } from '@gatehouse/testkit/postgres';
import { Client } from 'pg';
import { describe, expect, it } from 'vitest';
import { type Migration, operation, query, raw } from '../operation.ts';
import { openInlinePostgres } from './inline.ts';
import { createTestDatabase } from './testing/test-database.ts';

const read = query<{ name: string }, { value: number }>(({ db, sql, p }) => raw(db, sql`SELECT value FROM counter WHERE name = ${p('name')}`));
const write = query<{ name: string; value: number }>(({ db, sql, p }) =>
  raw(db, sql`UPDATE counter SET value = ${p('value')} WHERE name = ${p('name')}`),
);
const create = query<{ name: string; value: number | string }>(({ db, sql, p }) =>
  raw(db, sql`INSERT INTO counter (name, value) VALUES (${p('name')}, ${p('value', 'integer')})`),
);
const total = query<object, { sum: number; average: number; isBig: number; bytes: Uint8Array }>(({ db, sql }) =>
  raw(db, sql`SELECT sum(value) AS sum, avg(value) AS average, sum(value) > 1 AS "isBig", 'a'::bytea AS bytes FROM counter`),
);

/** Reads, decides and writes: right only when nothing runs between. */
const increment = operation('test.increment', async (tx, { name }: { name: string }): Promise<number> => {
  const value = ((await tx.get(read, { name }))?.value ?? 0) + 1;
  await tx.run(write, { name, value });
  return value;
});
/** Moves one from a counter to another: two of them in opposite order wait for each other. */
const move = operation('test.move', async (tx, { from, to }: { from: string; to: string }): Promise<void> => {
  for (const [name, change] of [
    [from, -1],
    [to, 1],
  ] as const)
    await tx.run(write, { name, value: ((await tx.get(read, { name }))?.value ?? 0) + change });
});
const createCounter = operation('test.createCounter', async (tx, input: { name: string; value: number }): Promise<void> => {
  await tx.run(create, input);
});
const readCounter = operation('test.readCounter', async (tx, input: { name: string }) => (await tx.get(read, input))?.value);
const readTotal = operation('test.readTotal', async (tx) => tx.get(total, {}));
/** Swallows an error of the server, which has ended the transaction. */
const swallow = operation('test.swallow', async (tx, { name }: { name: string }): Promise<void> => {
  await tx.run(create, { name, value: 1 }).catch(() => {});
});
const forget = operation('test.forget', async (tx, { name }: { name: string }): Promise<void> => {
  void tx.run(create, { name, value: 1 }).catch(() => {});
});
const storeNothing = operation('test.storeNothing', async (tx, { value }: { value: number }): Promise<void> => {
  await tx.run(create, { name: 'number', value });
});
const settings = operation('test.settings', async (tx) => {
  const rows = await tx.build<{ commit: string; isolation: string }>((db, sql) =>
    raw(db, sql`SELECT current_setting('synchronous_commit') AS commit, current_setting('transaction_isolation') AS isolation`),
  );
  return rows[0];
});
const marked = operation('test.marked', settings.run, { isolation: 'read committed' });

const operations = [increment, move, createCounter, readCounter, readTotal, swallow, forget, storeNothing, settings, marked];
const migrations: readonly Migration[] = [{ id: '001-counter', up: ['CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL)'] }];

async function open(count = 1) {
  const stack = new AsyncDisposableStack();
  const { url } = stack.use(await createTestDatabase(migrations));
  const dbs = await Promise.all(Array.from({ length: count }, () => openInlinePostgres({ address: { url }, operations, migrations })));
  for (const db of dbs) stack.use(db);
  const [db] = dbs;
  if (db === undefined) throw new Error('no database');
  return { db, dbs, url, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

describe.skipIf(findPostgres() === undefined)('writes on PostgreSQL', () => {
  it('of two processes that read, decide and write the same rows lose nothing', { timeout: 60_000 }, async () => {
    await using rig = await open(2);
    for (const name of ['a', 'b']) await rig.db.write(createCounter, { name, value: 1_000 });
    const calls = rig.dbs.flatMap((db, at) =>
      Array.from({ length: 60 }, async () => {
        await db.write(increment, { name: 'a' });
        await db.write(move, at === 0 ? { from: 'a', to: 'b' } : { from: 'b', to: 'a' });
      }),
    );
    await Promise.all(calls);
    const values = await Promise.all(['a', 'b'].map((name) => rig.db.read(readCounter, { name })));
    expect(values).toEqual([1_120, 1_000]);
  });

  it('keep the units before and after one whose statement fails', async () => {
    await using rig = await open();
    const { db } = rig;
    const names = ['a', 'a', 'b'];
    const outcomes = await Promise.allSettled(names.map((name) => db.write(createCounter, { name, value: 1 })));
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(outcomes[1]).toMatchObject({ reason: { message: expect.stringContaining('duplicate key') } });
    expect(await db.read(readTotal, {})).toMatchObject({ sum: 2 });
  });

  it('fail as a whole when an operation swallows or forgets a statement that failed', async () => {
    await using rig = await open();
    const { db } = rig;
    await db.write(createCounter, { name: 'a', value: 1 });
    const outcomes = await Promise.allSettled([
      db.write(swallow, { name: 'a' }),
      db.write(createCounter, { name: 'b', value: 1 }),
      db.write(forget, { name: 'a' }),
      db.write(createCounter, { name: 'c', value: 1 }),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected', 'fulfilled']);
    expect(await db.read(readTotal, {})).toMatchObject({ sum: 3 });
  });

  it('return numbers, bytes, and 0 or 1 for a condition; numbers beyond 2^53 and NaN are errors', async () => {
    await using rig = await open();
    const { db } = rig;
    await db.write(createCounter, { name: 'a', value: Number.MAX_SAFE_INTEGER });
    await db.write(createCounter, { name: 'b', value: -1 });
    expect(await db.read(readTotal, {})).toEqual({
      sum: Number.MAX_SAFE_INTEGER - 1,
      average: (Number.MAX_SAFE_INTEGER - 1) / 2,
      isBig: 1,
      bytes: new Uint8Array([97]),
    });
    await db.write(createCounter, { name: 'c', value: 5 });
    await expect(db.read(readTotal, {})).rejects.toThrow('beyond 2^53');
    await expect(db.write(storeNothing, { value: Number.NaN })).rejects.toThrow('is not a number');
  });

  it('are serializable and synced unless an operation is marked, whatever the server says', async () => {
    await using rig = await open();
    const admin = new Client({ connectionString: rig.url });
    await admin.connect();
    await admin.query(`ALTER DATABASE ${String(admin.database)} SET synchronous_commit = off`);
    await admin.end();
    await using db = await openInlinePostgres({ address: { url: rig.url }, operations, migrations });
    expect(await db.write(settings, {})).toEqual({ commit: 'on', isolation: 'serializable' });
    expect(await db.write(marked, {})).toEqual({ commit: 'on', isolation: 'read committed' });
    expect(await db.telemetry(settings, {})).toMatchObject({ commit: 'off' });
    expect(await db.read(settings, {})).toMatchObject({ isolation: 'repeatable read' });
  });
});
