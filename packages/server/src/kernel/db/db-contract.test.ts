import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findPostgres } from '@gatehouse/testkit/postgres';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '../app-error.ts';
import { systemClock } from '../clock.ts';
import { silentLog } from '../log.ts';
import type { Db } from './db.ts';
import { openInlinePostgres } from './postgres/inline.ts';
import { openPostgresDb } from './postgres/open-postgres.ts';
import { createTestDatabase } from './postgres/testing/test-database.ts';
import { openInlineSqlite } from './sqlite/inline.ts';
import { openDb } from './sqlite/open-db.ts';
import * as parts from './sqlite/testing/parts.ts';

// What every engine promises: the same tests on each of them.
const { operations, migrations } = parts;
const log = silentLog;
const clock = systemClock;
const sqliteWorker = new URL('./sqlite/testing/worker.ts', import.meta.url);
const postgresWorker = new URL('./postgres/testing/worker.ts', import.meta.url);

let dataDir: string;
let db: Db;

type Kind =
  | { readonly driver: 'sqlite'; readonly open: () => Promise<Db> }
  | { readonly driver: 'postgres'; readonly open: (address: { readonly url: string }) => Promise<Db> };

const kinds: Readonly<Record<string, Kind>> = {
  'SQLite, reads on the writer thread': { driver: 'sqlite', open: () => openDb({ dataDir, workerUrl: sqliteWorker, clock, log, settleMs: 1e9 }) },
  'SQLite, reads on a reader thread': { driver: 'sqlite', open: () => openDb({ dataDir, workerUrl: sqliteWorker, clock, log, settleMs: 0 }) },
  'SQLite, inline': { driver: 'sqlite', open: () => openInlineSqlite({ dataDir, operations, migrations }) },
  'PostgreSQL, threads': { driver: 'postgres', open: (address) => openPostgresDb({ address, workerUrl: postgresWorker, clock, log }) },
  'PostgreSQL, inline': { driver: 'postgres', open: (address) => openInlinePostgres({ address, operations, migrations }) },
};

/** Opens a database before each test. */
function openEach(open: () => Promise<Db>): void {
  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-test-'));
    db = await open();
  });
  afterEach(async () => {
    await db[Symbol.asyncDispose]();
    rmSync(dataDir, { recursive: true, force: true });
  });
}

/** Opens one database for all tests, which a copy and a thread take long for, and deletes its rows before each. */
function openOnce(open: (address: { readonly url: string }) => Promise<Db>): void {
  const opened = new AsyncDisposableStack();
  let client: Client;
  beforeAll(async () => {
    const database = opened.use(await createTestDatabase(migrations));
    db = opened.use(await open(database));
    client = new Client({ connectionString: database.url });
    await client.connect();
    opened.defer(() => client.end());
  });
  beforeEach(() => client.query('TRUNCATE note, point, audit RESTART IDENTITY'));
  afterAll(() => opened.disposeAsync());
}

for (const [name, kind] of Object.entries(kinds)) {
  const { driver } = kind;
  describe.skipIf(driver === 'postgres' && findPostgres() === undefined)(`a database (${name})`, () => {
    if (kind.driver === 'sqlite') openEach(kind.open);
    else openOnce(kind.open);

    it('reads what was written as soon as the write has resolved', async () => {
      for (let index = 0; index < 40; index++) {
        expect(await db.write(parts.addNote, { text: `note ${index}` })).toEqual({ added: `note ${index}` });
        expect(await db.read(parts.countNotes, {})).toBe(index + 1);
      }
    });

    it('applies writes in the order of their calls', async () => {
      const expected = Array.from({ length: 2_000 }, (_, index) => `n${index}`);
      await Promise.all(expected.map((text) => db.write(parts.addNote, { text })));
      expect(await db.read(parts.listTexts, {})).toEqual(expected);
    });

    it('fails only the unit that throws and keeps nothing of it', async () => {
      const outcomes = await Promise.allSettled([
        db.write(parts.addTwo, { text: 'a' }),
        db.write(parts.addTwo, { text: 'b', failAt: 'start' }),
        db.write(parts.addTwo, { text: 'c', failAt: 'middle' }),
        db.write(parts.addTwo, { text: 'd', failAt: 'end', code: 'conflict' }),
        db.write(parts.addTwo, { text: 'e' }),
      ]);
      expect(outcomes.map((outcome) => outcome.status)).toEqual(['fulfilled', 'rejected', 'rejected', 'rejected', 'fulfilled']);
      expect(await db.read(parts.listTexts, {})).toEqual(['a 1', 'a 2', 'e 1', 'e 2']);
    });

    it('carries an AppError with its code and details, and another error with its message', async () => {
      const refused = await db.write(parts.addTwo, { text: 'x', failAt: 'end', code: 'conflict' }).catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(AppError);
      expect(refused).toMatchObject({ code: 'conflict', message: 'failed at end', details: { param: 'text', retryAfterMs: 5 } });
      const failed = await db.write(parts.addTwo, { text: 'x', failAt: 'middle' }).catch((error: unknown) => error);
      expect(failed).toBeInstanceOf(Error);
      expect(failed).not.toBeInstanceOf(AppError);
      expect(failed).toMatchObject({ message: 'failed at middle' });
    });

    it('stores booleans as 0 and 1 and undefined as null', async () => {
      await db.write(parts.addNote, { text: 'f', flag: true });
      await db.write(parts.addNote, { text: 'f', flag: false });
      await db.write(parts.addNote, { text: 'f' });
      const rows = await db.read(parts.findNotes, { text: 'f' });
      expect(rows.map((row) => row.flag)).toEqual([1, 0, null]);
    });

    it('replaces U+0000 in texts, and refuses whole numbers beyond 2^53', async () => {
      await db.write(parts.addNote, { text: 'a\0b' });
      expect(await db.read(parts.listTexts, {})).toEqual(['a\ufffdb']);
      const greatest = String(Number.MAX_SAFE_INTEGER);
      expect(await db.read(parts.readNumbers, { texts: [greatest, `-${greatest}`] })).toEqual([
        { number: Number.MAX_SAFE_INTEGER },
        { number: -Number.MAX_SAFE_INTEGER },
      ]);
      for (const text of ['9007199254740993', '-9007199254740993'])
        await expect(db.read(parts.readNumbers, { texts: [text] })).rejects.toThrow(/9007199254740993|too large|beyond/);
    });

    it('builds a query for each input', async () => {
      for (const text of ['ab', 'ac', 'b']) await db.write(parts.addNote, { text });
      expect(await db.read(parts.findByPrefix, { prefix: 'a', limit: 10 })).toEqual(['ab', 'ac']);
      expect(await db.read(parts.findByPrefix, { limit: 1 })).toEqual(['ab']);
    });

    it('refuses to write in a read', async () => {
      await expect(db.read(parts.addNote, { text: 'x' })).rejects.toThrow(/readonly/);
      expect(await db.read(parts.countNotes, {})).toBe(0);
    });

    it('names an operation that is missing in the list', async () => {
      await expect(db.write(parts.unlisted, {})).rejects.toThrow('Unknown storage operation "test.unlisted": add it to the list in storage.ts');
    });

    it('lets input and output that is not plain data fail alone', async () => {
      const [bad, good, alsoBad] = await Promise.allSettled([
        db.write(parts.addNote, { text: (() => 'x') as unknown as string }),
        db.write(parts.addNote, { text: 'good' }),
        db.write(parts.returnFunction, {}),
      ]);
      expect([bad.status, good.status, alsoBad.status]).toEqual(['rejected', 'fulfilled', 'rejected']);
      expect(await db.read(parts.listTexts, {})).toEqual(['good']);
    });

    it('commits an audit row with its change or not at all', async () => {
      const audit = {
        id: 'au_1',
        atMs: 1,
        principalId: 'token:a',
        action: 'note.add',
        classification: 'mutate',
        outcome: 'success',
        target: undefined,
        metadata: { size: 1 },
        traceId: '0',
      } as const;
      await expect(db.write(parts.addAudited, { text: 'lost', audit, fail: true })).rejects.toThrow('too late');
      expect(await db.read(parts.listAudits, {})).toEqual([]);
      await db.write(parts.addAudited, { text: 'kept', audit });
      expect(await db.read(parts.listAudits, {})).toEqual([{ action: 'note.add', target: null, metadataJson: '{"size":1}' }]);
    });

    it('keeps telemetry where queries see it as well', async () => {
      await Promise.all([
        db.telemetry(parts.addPoint, { value: 1 }),
        db.write(parts.addNote, { text: 'n' }),
        db.telemetry(parts.addPoint, { value: 2 }),
      ]);
      expect(await db.read(parts.listPoints, {})).toEqual([1, 2]);
    });

    it.runIf(driver === 'sqlite')('keeps telemetry in a separate file', async () => {
      await expect(db.write(parts.addPoint, { value: 3 })).rejects.toThrow(/no such table: point/);
    });

    it('reports size and schema', async () => {
      const status = await db.status();
      expect(status).toMatchObject({ driver, schemaVersion: driver === 'sqlite' ? 2 : 3, state: 'ok' });
      if (driver === 'sqlite') expect(status.path).toBe(join(dataDir, 'gatehouse.db'));
      else expect(status.path).toMatch(/^postgres:\/\/127\.0\.0\.1:\d+\/d_[0-9a-f]+$/);
      expect(status.bytes + status.walBytes).toBeGreaterThan(0);
    });
  });
}
