import { once } from 'node:events';
import { type AddressInfo, createConnection, createServer } from 'node:net';
import { createSecureContext, TLSSocket } from 'node:tls';
import { createStepClock, makeAuthority, makeCertificate } from '@gatehouse/testkit';
import { findPostgres } from '@gatehouse/testkit/postgres';
import { Client } from 'pg';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../clock.ts';
import { silentLog } from '../../log.ts';
import * as parts from '../sqlite/testing/parts.ts';
import { openPostgresDb, type OpenPostgresOptions } from './open-postgres.ts';
import { createTestDatabase } from './testing/test-database.ts';
import { warningsOf } from './server-settings.ts';

const workerUrl = new URL('./testing/worker.ts', import.meta.url);

async function open(options: Partial<OpenPostgresOptions> = {}) {
  const stack = new AsyncDisposableStack();
  const address = stack.use(await createTestDatabase(parts.migrations));
  const reopen = async () => stack.use(await openPostgresDb({ address, workerUrl, clock: systemClock, log: silentLog, ...options }));
  return { db: await reopen(), reopen, address, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

describe.skipIf(findPostgres() === undefined)('threads of PostgreSQL', () => {
  it('refuse calls beyond the bound of the queue and serve the accepted ones', async () => {
    await using rig = await open({ maxPending: 10 });
    const outcomes = await Promise.allSettled(Array.from({ length: 15 }, (_, index) => rig.db.write(parts.addNote, { text: `${index}` })));
    expect(outcomes.filter((outcome) => outcome.status === 'fulfilled')).toHaveLength(10);
    expect(outcomes[14]).toMatchObject({ reason: { code: 'unavailable' } });
    expect(await rig.db.read(parts.countNotes, {})).toBe(10);
  });

  it('reject waiting calls when the thread dies, and start it again', async () => {
    const clock = createStepClock();
    await using rig = await open({ clock });
    const { db } = rig;
    await db.write(parts.addNote, { text: 'kept' });
    for (const outcome of await Promise.allSettled([db.write(parts.crash, {}), db.write(parts.addNote, { text: 'lost' })]))
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'unavailable' } });
    expect((await db.status()).state).toBe('read_only');
    await expect(db.write(parts.addNote, { text: 'too early' })).rejects.toMatchObject({ code: 'unavailable' });
    clock.advance(1_000);
    await db.write(parts.addNote, { text: 'again' });
    expect((await db.status()).state).toBe('ok');
    const texts = await db.read(parts.listTexts, {});
    expect([texts[0], texts.at(-1)]).toEqual(['kept', 'again']);
  });

  it('search in a separate thread that keeps state, sees every write, and is started again when it dies', async () => {
    const clock = createStepClock();
    await using rig = await open({ clock });
    const { db } = rig;
    await db.write(parts.addNote, { text: 'kept' });
    const first = await db.search(parts.remember, { text: 'one' });
    expect(first).toMatchObject({ asked: ['one'], notes: 1 });
    await db.write(parts.addNote, { text: 'seen' });
    expect(await db.search(parts.remember, { text: 'two' })).toEqual({ asked: ['one', 'two'], thread: first.thread, notes: 2 });
    await expect(db.search(parts.crash, {})).rejects.toMatchObject({ code: 'unavailable' });
    await expect(db.search(parts.remember, { text: 'too early' })).rejects.toMatchObject({ code: 'unavailable' });
    clock.advance(1_000);
    expect(await db.search(parts.remember, { text: 'again' })).toMatchObject({ asked: ['again'], notes: 2 });
  });

  it('answer calls made before the close and refuse later ones; a backup names the tools of PostgreSQL', async () => {
    await using rig = await open();
    await expect(rig.db.backup('copy.db')).rejects.toMatchObject({
      code: 'precondition_failed',
      message: expect.stringContaining('pgBackRest'),
    });
    const last = rig.db.write(parts.addNote, { text: 'last' });
    await rig.db[Symbol.asyncDispose]();
    expect(await last).toEqual({ added: 'last' });
    await expect(rig.db.write(parts.addNote, { text: 'x' })).rejects.toMatchObject({ code: 'unavailable' });
    expect(await (await rig.reopen()).read(parts.listTexts, {})).toEqual(['last']);
  });

  it('wait for a server that refuses connections, because it starts as well', async () => {
    await using database = await createTestDatabase(parts.migrations);
    const url = new URL(database.url);
    const target = { host: '127.0.0.1', port: Number(url.port) };
    let asked = 0;
    await using gate = createServer((client) => {
      asked += 1;
      if (asked <= 2) return void client.destroy();
      const server = createConnection(target);
      client.on('error', () => server.destroy()).pipe(server);
      server.on('error', () => client.destroy()).pipe(client);
    }).listen(0, '127.0.0.1');
    await once(gate, 'listening');
    url.port = String((gate.address() as AddressInfo).port);
    await using db = await openPostgresDb({ address: { url: url.href }, workerUrl, clock: systemClock, log: silentLog });
    expect(await db.write(parts.addNote, { text: 'late' })).toEqual({ added: 'late' });
    expect(asked).toBeGreaterThan(2);
  });

  it('name the setting for an authority that is not known', async () => {
    const authority = await makeAuthority('theirs');
    const secureContext = createSecureContext(await makeCertificate('db', authority));
    await using server = createServer((client) => {
      // The client asks for TLS first.
      client.once('data', () => {
        client.write('S');
        new TLSSocket(client, { isServer: true, secureContext }).on('error', () => client.destroy());
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const address = { url: `postgres://127.0.0.1:${port}/data`, ssl: true } as const;
    await expect(openPostgresDb({ address, workerUrl, clock: systemClock, log: silentLog })).rejects.toMatchObject({
      reason: 'unusable',
      message: expect.stringMatching(/no known authority has signed its certificate: name the file of its authority in storage\.sslCaPath$/),
    });
  });

  it('refuse sessions that have belonged to another connection, whose settings a pooler leaves in them', async () => {
    await using database = await createTestDatabase(parts.migrations);
    const client = new Client({ connectionString: database.url });
    await client.connect();
    await client.query(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET gatehouse.session = used', current_database()); END $$`);
    await client.end();
    await expect(openPostgresDb({ address: database, workerUrl, clock: systemClock, log: silentLog })).rejects.toMatchObject({
      reason: 'unusable',
      message: expect.stringContaining('PgBouncer in session mode'),
    });
  });

  it('refuse to start with a database that does not exist, without naming the password', async () => {
    await using rig = await open();
    const url = new URL(rig.address.url);
    url.pathname = '/nowhere';
    url.password = 'open-sesame';
    const refused = await openPostgresDb({ address: { url: url.href }, workerUrl, clock: systemClock, log: silentLog }).catch(
      (error: unknown) => error,
    );
    expect(refused).toMatchObject({
      reason: 'unusable',
      message: expect.stringMatching(/Cannot use the database postgres:\/\/127.*"nowhere" does not exist/),
    });
    expect(String(refused)).not.toContain('open-sesame');
  });
});

it('warns of settings with which the server loses what is acknowledged', () => {
  const sound = {
    version: '17.2',
    versionNumber: 170_002,
    fsync: 'on',
    fullPageWrites: 'on',
    synchronousStandbys: '',
    standardStrings: 'on',
    standbys: 0,
  };
  expect(warningsOf(sound)).toEqual([]);
  expect(warningsOf({ ...sound, standbys: 1, synchronousStandbys: 'ANY 1 (a, b)' })).toEqual([]);
  const faults = {
    'older than 14': { version: '13.9', versionNumber: 130_009 },
    'fsync = off': { fsync: 'off' },
    'full_page_writes = off': { fullPageWrites: 'off' },
    asynchronous: { standbys: 1 },
    'standard_conforming_strings = off': { standardStrings: 'off' },
  };
  for (const [words, fault] of Object.entries(faults)) expect(warningsOf({ ...sound, ...fault })).toEqual([expect.stringContaining(words)]);
});
