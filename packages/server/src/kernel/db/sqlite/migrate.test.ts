import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Migration } from '../operation.ts';
import { databaseFile } from './database-files.ts';
import { openFiles } from './open-files.ts';
import { rowsPerStep, slowMigrations } from './testing/slow-migrations.ts';

let dataDir: string;
const backupsDir = () => join(dataDir, 'backups');

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-test-'));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const step = (id: string, ...up: string[]): Migration => ({ id, up });

async function migrate(migrations: readonly Migration[], programVersion = '1.0.0') {
  const opened = await openFiles({ dataDir, backupsDir: backupsDir(), migrations, nowMs: 1_000, programVersion });
  opened.main.close();
  opened.telemetry?.close();
  return opened;
}

function inspect<T>(look: (db: DatabaseSync) => T, file = databaseFile(dataDir)): T {
  const db = new DatabaseSync(file);
  try {
    return look(db);
  } finally {
    db.close();
  }
}

const create = step('001-create', 'CREATE TABLE note (text TEXT)', "INSERT INTO note VALUES ('first')");
const extend = step('002-extend', 'ALTER TABLE note ADD COLUMN size INTEGER', 'UPDATE note SET size = length(text)');

it('runs in the order of the numbers, once', async () => {
  expect(await migrate([extend, create])).toMatchObject({ schemaVersion: 2, applied: ['gatehouse.db: 1', 'gatehouse.db: 2'] });
  expect(await migrate([create, extend])).toMatchObject({ schemaVersion: 2, applied: [] });
  expect(inspect((db) => db.prepare('SELECT text, size FROM note').all())).toEqual([{ text: 'first', size: 5 }]);
});

it('copies an existing database before it changes it', async () => {
  await migrate([create]);
  expect(existsSync(backupsDir())).toBe(false);
  await migrate([create, extend]);
  const [copy] = readdirSync(backupsDir());
  expect(copy).toBe('gatehouse-before-schema-2-1000.db');
  expect(inspect((db) => db.prepare('SELECT * FROM note').all(), join(backupsDir(), copy ?? ''))).toEqual([{ text: 'first' }]);
});

it('refuses a database of a newer program, naming both versions, and leaves it as it is', async () => {
  await migrate([create, extend], '2.0.0');
  await expect(migrate([create])).rejects.toMatchObject({
    reason: 'newer_schema',
    message: expect.stringMatching(/schema 2, written by version 2\.0\.0; this is version 1\.0\.0, which knows schemas up to 1/),
  });
  expect(await migrate([create, extend])).toMatchObject({ applied: [] });
});

it('refuses changed statements, and steps that come too late', async () => {
  await migrate([create, step('005-more', 'CREATE TABLE more (id INTEGER)')]);
  await expect(migrate([step('001-create', 'CREATE TABLE note (body TEXT)')])).rejects.toMatchObject({ reason: 'changed_migration' });
  await expect(migrate([create, extend, step('005-more', 'CREATE TABLE more (id INTEGER)')])).rejects.toMatchObject({
    reason: 'changed_migration',
    message: expect.stringContaining('2 ("extend") comes before 5'),
  });
});

it('refuses two steps with the same number and malformed ids', async () => {
  await expect(migrate([create, step('001-other', 'SELECT 1')])).rejects.toThrow(/Two migrations have the number 1/);
  await expect(migrate([step('create', 'SELECT 1')])).rejects.toThrow(/must be NNN-name/);
});

it('keeps nothing of a step that fails', async () => {
  await migrate([create]);
  await expect(migrate([create, step('002-bad', 'CREATE TABLE half (id INTEGER)', 'INSERT INTO nowhere VALUES (1)')])).rejects.toThrow(
    /Migration 2 \("bad"\) failed: no such table: nowhere/,
  );
  await expect(
    migrate([create, step('002-orphan', 'CREATE TABLE half (id INTEGER REFERENCES note (text))', 'INSERT INTO half VALUES (1)')]),
  ).rejects.toThrow(/Migration 2/);
  expect(inspect((db) => db.prepare("SELECT name FROM sqlite_schema WHERE name = 'half'").all())).toEqual([]);
  expect(await migrate([create, extend])).toMatchObject({ applied: ['gatehouse.db: 2'] });
});

it('names the step that leaves references to missing rows in a new file, and keeps nothing of any', async () => {
  const orphan = step('002-orphan', 'CREATE TABLE half (id INTEGER REFERENCES note (text))', 'INSERT INTO half VALUES (1)');
  await expect(migrate([create, orphan, step('003-later', 'CREATE TABLE later (id INTEGER)')])).rejects.toThrow(/Migration 2 \("orphan"\)/);
  expect(inspect((db) => db.prepare('SELECT name FROM sqlite_schema').all())).toEqual([]);
});

it('refuses a database of another program and a file that is not a database', async () => {
  inspect((db) => db.exec('CREATE TABLE theirs (id INTEGER)'));
  await expect(migrate([create])).rejects.toMatchObject({ reason: 'foreign_database' });
});

/** Kills a process while it migrates, some milliseconds after it began; returns how many steps are left. */
async function killedAfter(ms: number): Promise<number> {
  const script = `import { openFiles } from ${JSON.stringify(new URL('./open-files.ts', import.meta.url).href)}; import { slowMigrations } from ${JSON.stringify(new URL('./testing/slow-migrations.ts', import.meta.url).href)};
    console.log('go'); await openFiles({ dataDir: process.argv[1], backupsDir: process.argv[1], migrations: slowMigrations, nowMs: 0, programVersion: '1' });`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, dataDir], { stdio: ['ignore', 'pipe', 'inherit'] });
  // A fast machine may be done before the kill.
  const exited = once(child, 'exit');
  await once(child.stdout, 'data');
  await sleep(ms);
  child.kill('SIGKILL');
  await exited;
  return inspect((db) => {
    const tables = db
      .prepare("SELECT name FROM sqlite_schema WHERE name LIKE 'step_%' ORDER BY name")
      .all()
      .map((row) => String(row['name']));
    for (const table of tables) expect(db.prepare(`SELECT count(*) AS count FROM ${table}`).get()).toEqual({ count: rowsPerStep });
    if (tables.length > 0) expect(db.prepare('SELECT count(*) AS count FROM schema_migration').get()).toEqual({ count: tables.length });
    return tables.length;
  });
}

it('leaves whole steps only when the process is killed while it changes an existing file', async () => {
  const seen = new Set<number>();
  // The kills must hit different steps, or the rounds would all test the same; on a slow machine those come later.
  for (let round = 0; round < 4 || (seen.size < 2 && round < 20); round++) {
    rmSync(dataDir, { recursive: true, force: true });
    dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-test-'));
    await migrate(slowMigrations.slice(0, 1));
    const steps = await killedAfter(5 + round * 30);
    seen.add(steps);
    const { applied } = await migrate(slowMigrations);
    expect(applied).toHaveLength(slowMigrations.length - steps);
  }
  expect(seen.size).toBeGreaterThan(1);
}, 30_000);

it('leaves nothing when the process is killed while it makes a new file', async () => {
  expect([0, slowMigrations.length]).toContain(await killedAfter(30));
  await migrate(slowMigrations);
  expect(inspect((db) => db.prepare('SELECT count(*) AS count FROM schema_migration').get())).toEqual({ count: slowMigrations.length });
});
