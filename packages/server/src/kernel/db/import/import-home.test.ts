import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { DatabaseSync } from 'node:sqlite';
import { findPostgres } from '@gatehouse/testkit/postgres';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../clock.ts';
import { StartError } from '../../lifecycle/start-error.ts';
import { migratePostgres } from '../postgres/migrate.ts';
import { createEmptyDatabase, type TestDatabase } from '../postgres/testing/test-database.ts';
import { type ImportOptions, type ImportProgress, importHome } from './import-home.ts';
import { refuseImported } from './imported-note.ts';
import { fillLibrary, lastTables, libraryMigrations } from './testing/library.ts';

let dataDir: string;
let database: TestDatabase;

describe.skipIf(findPostgres() === undefined)('an import into PostgreSQL', () => {
  beforeAll(async () => {
    database = await createEmptyDatabase();
  });
  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-import-'));
    await emptyDatabase();
  });
  afterEach(() => rmSync(dataDir, { recursive: true, force: true }));
  afterAll(() => database[Symbol.asyncDispose]());

  it('copies every kind of row and continues its ids', async () => {
    await fillLibrary(dataDir, (main, telemetry) => {
      addBooks(main, 30);
      const book = main.prepare('INSERT INTO book (writer_id, text, weight, cover, cost_nano) VALUES (1, ?, ?, ?, ?)');
      book.run('tab\tline\nreturn\rback\\slash \\N \\. \u{1f4da} e\u0301\b\v\f', 0.1 + 0.2, new Uint8Array([0, 1, 92, 255]), Number.MAX_SAFE_INTEGER);
      book.run('nul\0inside', 1e21, new Uint8Array(), Number.MIN_SAFE_INTEGER);
      book.run('', null, null, null);
      book.run('tiny', 5e-324, null, null);
      book.run('endless', Number.POSITIVE_INFINITY, null, null);
      book.run('whole', 7, null, null);
      // Its id is not given out again.
      main.exec(`INSERT INTO book (id, writer_id, text) VALUES (900, 1, 'gone'); DELETE FROM book WHERE id = 900`);
      const loan = main.prepare('INSERT INTO a_loan VALUES (?, ?, ?)');
      // By bytes, U+0000 comes first, and what replaces it nearly last.
      for (const reader of ['B', 'a', '_', 'é', 'a\0', 'ab', 'a\u{10ffff}']) loan.run(reader, new TextEncoder().encode(reader), 1);
      main.exec('UPDATE cursor SET place = 12');
      telemetry.exec(`INSERT INTO visit VALUES (5, 1700000000000, NULL), (9, 1700000000001, 'late')`);
    });
    const report = await importLibrary();
    expect(report).toMatchObject({ imported: true, tables: 6, replacedTexts: 2 });
    expect(report.place).toMatch(/^postgres:\/\/127\.0\.0\.1:\d+\/d_/);
    expect(report.sums).toEqual({ 'writer.owed_nano': '6000000000000007', 'book.cost_nano': String(30 * 4_000_000_001) });

    expect(await rowsOf('SELECT text, weight, cover, cost_nano FROM book WHERE id > 30 ORDER BY id')).toEqual([
      ['tab\tline\nreturn\rback\\slash \\N \\. \u{1f4da} e\u0301\b\v\f', 0.1 + 0.2, Buffer.from([0, 1, 92, 255]), '9007199254740991'],
      ['nul\ufffdinside', 1e21, Buffer.alloc(0), '-9007199254740991'],
      ['', null, null, null],
      ['tiny', 5e-324, null, null],
      ['endless', Number.POSITIVE_INFINITY, null, null],
      ['whole', 7, null, null],
    ]);
    expect((await rowsOf('SELECT reader FROM a_loan ORDER BY reader')).flat()).toEqual(['B', '_', 'a', 'ab', 'a\ufffd', 'a\u{10ffff}', 'é']);
    expect(await rowsOf('SELECT place FROM cursor')).toEqual([['12']]);
    expect(await rowsOf('SELECT * FROM visit ORDER BY id')).toEqual([
      ['5', '1700000000000', null],
      ['9', '1700000000001', 'late'],
    ]);
    // What triggers wrote while books were copied is gone; full-text search is theirs.
    expect(await rowsOf('SELECT count(*), max(version) FROM book_change')).toEqual([['37', '37']]);
    expect(await rowsOf(`SELECT rowid FROM book_fts WHERE text @@ to_tsquery('simple', 'endless')`)).toEqual([['35']]);
    expect(await rowsOf(`INSERT INTO book (writer_id, text) VALUES (1, 'next') RETURNING id`)).toEqual([['901']]);
    expect(await rowsOf(`INSERT INTO writer (name) VALUES ('next') RETURNING id`)).toEqual([['4']]);
    expect(await rowsOf(`SELECT max(version) FROM book_change`)).toEqual([['38']]);
  });

  it('is done once: a repeat does nothing, daemons start on the copy alone', async () => {
    await fillLibrary(dataDir, (main) => addBooks(main, 3));
    refuseImported(dataDir);
    const first = await importLibrary();
    await startDaemon();
    expect(() => refuseImported(dataDir)).toThrow(expect.objectContaining({ reason: 'imported', message: expect.stringContaining(first.place) }));
    await rowsOf(`UPDATE book SET text = 'written since'`);
    expect(await importLibrary()).toEqual({ ...first, imported: false });
    expect(await rowsOf('SELECT DISTINCT text FROM book')).toEqual([['written since']]);
    await using other = await createEmptyDatabase();
    await expect(importLibrary({ address: other })).rejects.toThrow(/was imported into .* delete .*imported-into-postgres\.json first/);
  });

  it('survives kill -9 at any moment', { timeout: 60_000 }, async () => {
    await fillLibrary(dataDir, (main) => addBooks(main, 1_200));
    const { digest } = await importLibrary();
    // After the first table, inside of books, before their commit, in the comparison, before the last commit.
    for (const killAt of ['2', '6', '7', '16', 'end']) {
      await emptyDatabase();
      rmSync(join(dataDir, 'imported-into-postgres.json'), { force: true });
      expect(await importInProcess(killAt)).toEqual({ signal: 'SIGKILL' });
      await expect(startDaemon()).rejects.toThrow(
        expect.objectContaining({ reason: 'import_unfinished', message: expect.stringContaining('gatehouse storage import') }),
      );
      if (killAt === 'end') expect(() => refuseImported(dataDir)).toThrow(StartError);
      const progress: ImportProgress[] = [];
      const report = await importLibrary({ onProgress: (step) => progress.push(step) });
      expect(report).toMatchObject({ imported: true, digest });
      // Tables that were complete are not copied again.
      const copying = progress.filter(({ phase, table, rows, tableRows }) => phase === 'copy' && table === 'book' && rows < tableRows);
      expect(copying).toHaveLength(['16', 'end'].includes(killAt) ? 0 : 1);
      await startDaemon();
    }
  });

  it('is repeated after a lost connection, and after a schema that could not be made', async () => {
    await fillLibrary(dataDir, (main) => addBooks(main, 20));
    const [library] = libraryMigrations;
    if (library?.postgres === undefined) throw new Error('The library has one list of statements');
    const broken = [{ ...library, postgres: [...library.postgres, 'SELECT 1 / 0'] }, ...libraryMigrations.slice(1)];
    await expect(importLibrary({ migrations: broken })).rejects.toThrow('division by zero');
    await expect(startDaemon()).rejects.toThrow(StartError);
    await expect(importLibrary({ finish: [{ text: 'SELECT pg_terminate_backend(pg_backend_pid())' }] })).rejects.toThrow(
      /was lost: repeat the command/,
    );
    await expect(startDaemon()).rejects.toThrow(StartError);
    expect(await importLibrary()).toMatchObject({ imported: true });
    await startDaemon();
  });

  it('starts over when the home was used after an interruption', async () => {
    await fillLibrary(dataDir, (main) => addBooks(main, 20));
    await expect(importLibrary({ finish: [{ text: 'SELECT 1 / 0' }] })).rejects.toThrow('division by zero');
    await fillLibrary(dataDir, (main) => main.exec(`UPDATE book SET text = 'later' WHERE id = 7; DELETE FROM book WHERE id = 8`));
    expect(await importLibrary()).toMatchObject({ imported: true });
    expect(await rowsOf(`SELECT count(*), count(*) FILTER (WHERE text = 'later') FROM book`)).toEqual([['19', '1']]);
  });

  it.each([
    ['changed', ', key 21: PostgreSQL has another row there'],
    ['lost', ', key 21: PostgreSQL has another row there'],
    ['cheaper', ', key 21: PostgreSQL has another row there'],
    ['lighter', ', key 21: PostgreSQL has another row there'],
    ['twice', ': PostgreSQL has a row that the home has not, after 22 equal ones'],
  ])('fails when a row is %s in the copy, and starts over', async (fault, message) => {
    await fillLibrary(dataDir, (main) => {
      addBooks(main, 20);
      main.exec(`INSERT INTO book (writer_id, text, weight, cost_nano) VALUES (1, 'fault: ${fault}', 1.5, 9), (1, 'last', 1, 1)`);
    });
    await expect(importLibrary()).rejects.toThrow(`Table "book"${message}`);
    await expect(startDaemon()).rejects.toThrow(StartError);
    refuseImported(dataDir);
    await rowsOf('DROP TRIGGER book_fault ON book');
    expect(await importLibrary()).toMatchObject({ imported: true });
  });

  it('refuses a database that is not empty, or has the import of another home', async () => {
    await fillLibrary(dataDir, (main) => addBooks(main, 1));
    await rowsOf('CREATE TABLE other (id int)');
    await expect(importLibrary()).rejects.toThrow(/is not empty \(other\): an import needs an empty database/);
    await rowsOf('DROP TABLE other');
    await expect(importLibrary({ finish: [{ text: 'SELECT 1 / 0' }] })).rejects.toThrow('division by zero');
    const elsewhere = join(dataDir, 'elsewhere');
    await fillLibrary(elsewhere, (main) => addBooks(main, 1));
    await expect(importLibrary({ dataDir: elsewhere })).rejects.toThrow(/unfinished import of another home/);
    await importLibrary();
    await expect(importLibrary({ dataDir: elsewhere })).rejects.toThrow(/holds another home/);
    await fillLibrary(dataDir, (main) => addBooks(main, 1));
    await expect(importLibrary()).rejects.toThrow(/holds an earlier state of this home/);
  });

  it('refuses a home that it cannot copy as it is, before anything is written', async () => {
    await expect(importLibrary()).rejects.toThrow(/There is no database .*gatehouse\.db/);
    await fillLibrary(dataDir, (main) => {
      addBooks(main, 4);
      main.exec('UPDATE book SET cost_nano = 9007199254740992 WHERE id = 3');
    });
    await expect(importLibrary()).rejects.toThrow('Table "book", row 3: column "cost_nano" holds an integer beyond 2^53. Nothing was copied.');
    await fillLibrary(dataDir, (main) => main.exec('UPDATE book SET cost_nano = 0.5 WHERE id = 3'));
    await expect(importLibrary()).rejects.toThrow('Table "book", row 3: column "cost_nano" holds a value of type real');
    await fillLibrary(dataDir, (main) => main.exec('UPDATE book SET cost_nano = 1 WHERE id = 3'));
    const newer = [...libraryMigrations, { id: '003-more', up: ['CREATE TABLE more (id INTEGER PRIMARY KEY)'] }];
    await expect(importLibrary({ migrations: newer })).rejects.toThrow(/older schema .* start the daemon of this version once/);
    await expect(importLibrary({ migrations: libraryMigrations.map((step) => ({ ...step, up: [...step.up, 'SELECT 1'] })) })).rejects.toThrow(
      StartError,
    );
    expect(await rowsOf(`SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace`)).toEqual([]);
    await importLibrary();
  });

  it('never shows the password of the database', async () => {
    await fillLibrary(dataDir, (main) => addBooks(main, 1));
    const { port } = new URL(database.url);
    for (const url of [
      `postgres://someone:s3cr3t%21@127.0.0.1:${port}/nothing`,
      `postgres://someone:s3cr3t%21@127.0.0.1:1/x`,
      'postgres://u:s3cr3t%21@[::bad/x',
    ]) {
      const failure: unknown = await importLibrary({ address: { url } }).catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(Error);
      expect(String(failure)).toMatch(/Cannot connect to postgres/);
      expect(String(failure)).not.toContain('s3cr3t');
    }
  });

  it('runs alone', async () => {
    await fillLibrary(dataDir, (main) => addBooks(main, 1));
    await using holder = await connect();
    await holder.client.query(`SELECT pg_advisory_lock(${0x67617469})`);

    await expect(importLibrary({ waitMs: 50 })).rejects.toThrow(/Another import into .* is running/);
  });

  it('needs little memory', { timeout: 120_000 }, async () => {
    const rows = Number(process.env['GATEHOUSE_TEST_ROWS'] ?? 20_000);
    await fillLibrary(dataDir, (_main, telemetry) => {
      const insert = telemetry.prepare(`INSERT INTO visit VALUES (?, 0, ?)`);
      telemetry.exec('BEGIN');
      for (let id = 1; id <= rows; id++) insert.run(id, `${id} ${'x'.repeat(2_000)}`);
      telemetry.exec('COMMIT');
    });
    // Less than the rows have.
    const found = await importInProcess('never', ['--max-old-space-size=32', '--max-semi-space-size=2']);
    expect(found).toMatchObject({ imported: true });
    if (rows > 20_000) process.stdout.write(`${JSON.stringify(found)}\n`);
  });
});

function addBooks(main: DatabaseSync, count: number, more = ''): void {
  main.exec(
    `INSERT INTO writer (name, owed_nano) VALUES ('Ada ' || (SELECT count(*) FROM writer), 6000000000000000), ('Bo ' || (SELECT count(*) FROM writer), 7), ('Cy ' || (SELECT count(*) FROM writer), NULL)`,
  );
  const insert = main.prepare('INSERT INTO book (writer_id, text, weight, cover, cost_nano) VALUES (?, ?, ?, ?, 4000000001)');
  for (let index = 0; index < count; index++) insert.run(1 + (index % 3), `book ${index} ${more}`, index / 7, new Uint8Array([index % 256]));
}

function importLibrary(options: Partial<ImportOptions> = {}) {
  return importHome({
    dataDir,
    address: database,
    migrations: libraryMigrations,
    programVersion: 'test',
    clock: systemClock,
    lastTables,
    ...options,
  });
}

/** Runs an import in another process, which kills itself at its n-th report of progress. */
async function importInProcess(killAt: string, flags: readonly string[] = []): Promise<Record<string, unknown>> {
  const child = spawn(process.execPath, [...flags, join(import.meta.dirname, 'testing/import-process.ts'), dataDir, database.url, killAt], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  const [output, errors, [code, signal]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  if (signal !== null) return { signal };
  if (code !== 0) throw new Error(errors);
  return JSON.parse(output) as Record<string, unknown>;
}

/** What a daemon does with the database first. */
async function startDaemon(): Promise<void> {
  await using found = await connect();
  await migratePostgres(found.client, libraryMigrations, { nowMs: 0, programVersion: 'test' });
}

async function emptyDatabase(): Promise<void> {
  await rowsOf('DROP SCHEMA public CASCADE');
  await rowsOf('CREATE SCHEMA public');
}

async function rowsOf(statement: string): Promise<unknown[][]> {
  await using found = await connect();
  return (await found.client.query<unknown[]>({ text: statement, rowMode: 'array' })).rows;
}

async function connect() {
  const client = new Client({ connectionString: database.url });
  await client.connect();
  return { client, [Symbol.asyncDispose]: () => client.end() };
}
