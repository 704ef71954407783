import { cpSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Db } from '../db.ts';
import type { Migration, Operation } from '../operation.ts';
import { testEngine } from '../testing/engine.ts';
import { backupDatabase } from './backup.ts';
import { databaseFile } from './database-files.ts';
import { Failure, indexOperations, type Unit } from '../unit.ts';
import { fromWireError, toWireError } from '../wire-error.ts';
import { createGroupCommit, type GroupCommit, runInSnapshot } from './group-commit.ts';
import { openFiles, openForQueries } from './open-files.ts';
import { explainSqliteError } from './sqlite-errors.ts';
import { createSession } from './statements.ts';
import type { StorageParts } from './worker.ts';

export interface InlineOptions extends StorageParts {
  /** When absent, a temporary folder that is deleted with the Db. */
  readonly dataDir?: string;
}

/** Opens a database for a test, on the engine that the tests run on (`GATEHOUSE_TEST_DB`). */
export async function openInlineDb(options: InlineOptions): Promise<Db> {
  if (testEngine === 'sqlite') return openInlineSqlite(options);
  const { openInlineTestDatabase } = await import('../postgres/testing/inline-database.ts');
  return openInlineTestDatabase(options);
}

/**
 * Runs the same operations with the same semantics on the calling thread, without starting threads. Input, output
 * and errors are serialized as between threads, so what would not survive that fails here as well.
 */
export async function openInlineSqlite(options: InlineOptions): Promise<Db> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'gatehouse-db-'));
  if (options.dataDir === undefined) cpSync(await emptyDatabase(options.migrations), dataDir, { recursive: true });
  const files = await openAt(dataDir, options.migrations);
  const findOperation = indexOperations(options.operations);
  const main = createGroupCommit(files.main, findOperation);
  const telemetry = files.telemetry === undefined ? undefined : createGroupCommit(files.telemetry, findOperation);
  const queries = createSession(openForQueries(dataDir), findOperation);
  const file = databaseFile(dataDir);
  let last: Promise<unknown> = Promise.resolve();

  function enqueue<Output>(operation: Operation<never, Output>, input: unknown, execute: (unit: Unit) => Promise<unknown>): Promise<Output> {
    const next = last.then(async () => {
      const result = await execute({ operation: findOperation(operation.name), input: structuredClone(input) });
      if (result instanceof Failure) throw fromWireError(structuredClone(toWireError(explainSqliteError(result.error))));
      return structuredClone(result) as Output;
    });
    last = next.catch(() => {});
    return next;
  }

  const committed = (commit: GroupCommit) => async (unit: Unit) => (await commit.commit([unit])).results[0];

  return {
    write: (operation, input) => enqueue(operation, input, committed(main)),
    telemetry: (operation, input) =>
      telemetry === undefined
        ? Promise.reject(new Error('This database has no tables: add a migration for it'))
        : enqueue(operation, input, committed(telemetry)),
    read: (operation, input) => enqueue(operation, input, (unit) => runInSnapshot(queries, unit)),
    search: (operation, input) => enqueue(operation, input, (unit) => runInSnapshot(queries, unit)),
    async backup(targetPath, onProgress) {
      await last;
      return backupDatabase(file, targetPath, onProgress);
    },
    async status() {
      const size = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
      return { driver: 'sqlite', path: file, bytes: size(file), walBytes: size(`${file}-wal`), schemaVersion: files.schemaVersion, state: 'ok' };
    },
    async [Symbol.asyncDispose]() {
      await last;
      queries.db.close();
      files.telemetry?.close();
      files.main.close();
      if (options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

const openAt = (dataDir: string, migrations: readonly Migration[]) =>
  openFiles({ dataDir, backupsDir: join(dataDir, 'backups'), migrations, nowMs: 0, programVersion: 'inline' });

/** Empty databases of this process, by their migrations: to create all tables takes many times as long as to copy them. */
const emptyDatabases: { readonly migrations: readonly Migration[]; readonly dataDir: string }[] = [];
process.once('exit', () => {
  for (const { dataDir } of emptyDatabases) rmSync(dataDir, { recursive: true, force: true });
});

async function emptyDatabase(migrations: readonly Migration[]): Promise<string> {
  const isSame = (one: { readonly migrations: readonly Migration[] }) =>
    one.migrations.length === migrations.length && migrations.every((migration, index) => migration === one.migrations[index]);
  const known = emptyDatabases.find(isSame);
  if (known !== undefined) return known.dataDir;
  const dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-empty-'));
  const files = await openAt(dataDir, migrations);
  files.telemetry?.close();
  files.main.close();
  emptyDatabases.push({ migrations, dataDir });
  return dataDir;
}
