import { createHash } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite';
import { AppError } from '../../app-error.ts';
import type { Migration } from '../operation.ts';
import { checkIntegrity } from '../sqlite/backup.ts';
import { explainOpening, openReader } from '../sqlite/connection.ts';
import { databaseFile, restoringFile, telemetryFileName } from '../sqlite/database-files.ts';
import { planMigrations } from '../sqlite/migrate.ts';
import { splitMigrations } from '../sqlite/open-files.ts';
import { type ColumnType, columnTypes, quoteName } from './row-text.ts';

export interface SourceTable {
  readonly name: string;
  readonly columns: readonly SourceColumn[];
  /** Columns of the primary key, in its order. */
  readonly key: readonly SourceColumn[];
  readonly rows: number;
  /** Exact sums of the columns of money, by their names. */
  readonly sums: Readonly<Record<string, string>>;
  /** The highest id that was ever given out, where SQLite keeps it. */
  readonly lastId: bigint | undefined;
  /** Rows in the order of their insertion, with the values in the order of `columns`; integers as bigints. */
  readAll(): IterableIterator<SQLOutputValue[]>;
  /** Rows in the order in which PostgreSQL sorts the primary key. */
  readByKey(): IterableIterator<SQLOutputValue[]>;
}

export interface SourceColumn {
  readonly name: string;
  readonly type: ColumnType;
}

export interface Source extends Disposable {
  /** Ordered so that no row refers to a later table. */
  readonly tables: readonly SourceTable[];
  /** Changes when the files do. */
  readonly stamp: string;
}

export interface SourceOptions {
  readonly dataDir: string;
  readonly migrations: readonly Migration[];
  readonly programVersion: string;
}

/**
 * Opens the database of a stopped daemon for reading and checks that all of it can be copied. Nothing is changed in the files.
 * @throws AppError or StartError when there is no database, it is damaged, or has another schema than this program.
 */
export function openSource({ dataDir, migrations, programVersion }: SourceOptions): Source {
  const main = databaseFile(dataDir);
  if (!existsSync(main)) throw new AppError('not_found', `There is no database ${main}`);
  if (existsSync(restoringFile(dataDir))) {
    throw new AppError('precondition_failed', `A restore of ${dataDir} was interrupted: start the daemon of this home once, which completes it.`);
  }
  const split = splitMigrations(migrations);
  const telemetry = databaseFile(dataDir, telemetryFileName);
  const open: DatabaseSync[] = [];
  const close = () => open.forEach((db) => db.close());
  try {
    const files = [{ file: main, steps: split.main }, ...(existsSync(telemetry) ? [{ file: telemetry, steps: split.telemetry }] : [])];
    const tables = files.flatMap(({ file, steps }) => {
      const db = openFile(file, steps, programVersion);
      open.push(db);
      return listTables(db).map((name) => describeTable(db, name));
    });
    return {
      tables: tables.toSorted((a, b) => a.depth - b.depth),
      stamp: stampOf([main, `${main}-wal`, telemetry, `${telemetry}-wal`]),
      [Symbol.dispose]: close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

function openFile(file: string, steps: readonly Migration[], programVersion: string): DatabaseSync {
  const db = openReader(file);
  try {
    const { pending } = planMigrations(db, file, steps, programVersion);
    if (pending.length > 0) {
      throw new AppError(
        'precondition_failed',
        `${file} has an older schema than this program: start the daemon of this version once, which upgrades it after making a backup, stop it and repeat the import.`,
      );
    }
    checkIntegrity(db, file, 'quick_check');
    return db;
  } catch (error) {
    db.close();
    throw explainOpening(file, error);
  }
}

/** Tables of full-text search are left out: PostgreSQL builds its own from the rows. */
function listTables(db: DatabaseSync): string[] {
  const found = db.prepare(
    `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT GLOB 'sqlite_*' AND name <> 'schema_migration' ORDER BY name`,
  );
  return found.all().map(({ name }) => String(name));
}

/** Integers that JavaScript represents exactly, as all of them must be. */
const safe = `BETWEEN ${Number.MIN_SAFE_INTEGER} AND ${Number.MAX_SAFE_INTEGER}`;
const misfits: Readonly<Record<ColumnType, (column: string) => string>> = {
  INTEGER: (column) => `NOT (typeof(${column}) = 'integer' AND ${column} ${safe})`,
  REAL: (column) => `typeof(${column}) NOT IN ('real', 'integer')`,
  TEXT: (column) => `typeof(${column}) <> 'text'`,
  BLOB: (column) => `typeof(${column}) <> 'blob'`,
};

function describeTable(db: DatabaseSync, name: string): SourceTable & { readonly depth: number } {
  const described = db.prepare('SELECT name, type, pk FROM pragma_table_info(?) ORDER BY cid').all(name);
  const columns = described.map((column) => ({ name: String(column['name']), type: typeOf(name, column['type']) }));
  const keyNames = described
    .filter(({ pk }) => Number(pk) > 0)
    .toSorted((a, b) => Number(a['pk']) - Number(b['pk']))
    .map((column) => String(column['name']));
  const key = keyNames.flatMap((keyName) => columns.filter((column) => column.name === keyName));
  const table = quoteName(name);
  const list = columns.map((column) => quoteName(column.name)).join(', ');
  return {
    name,
    columns,
    key,
    ...measure(db, name, columns, key),
    lastId: lastIdOf(db, name),
    depth: depthOf(db, name),
    readAll: () => iterate(db.prepare(`SELECT ${list} FROM ${table}`)),
    readByKey: () => iterate(db.prepare(`SELECT ${list} FROM ${table} ORDER BY ${sortTerms(db, name, key)}`)),
  };
}

function typeOf(table: string, declared: SQLOutputValue | undefined): ColumnType {
  const type = columnTypes.find((known) => known === declared);
  if (type === undefined) throw new Error(`Table "${table}" has a column of the unknown type "${String(declared)}"`);
  return type;
}

/** Counts and sums up, in one scan. @throws AppError naming the first value that PostgreSQL would not keep as it is. */
function measure(db: DatabaseSync, name: string, columns: readonly SourceColumn[], key: readonly SourceColumn[]) {
  const table = quoteName(name);
  const money = columns.filter((column) => column.name.endsWith('_nano'));
  const isMisfit = columns.map(({ name: column, type }) => `(${quoteName(column)} IS NOT NULL AND ${misfits[type](quoteName(column))})`).join(' OR ');
  const statement = db.prepare(`SELECT count(*) AS rows, coalesce(sum(${isMisfit}), 0) AS misfits FROM ${table}`);
  const found = statement.get();
  if (Number(found?.['misfits']) > 0) throw misfitOf(db, name, columns, key);
  const sums = money.map(({ name: column }) => `cast(coalesce(sum(${quoteName(column)}), 0) AS TEXT) AS ${quoteName(column)}`);
  const summed = sums.length === 0 ? {} : db.prepare(`SELECT ${sums.join(', ')} FROM ${table}`).get();
  return {
    rows: Number(found?.['rows']),
    sums: Object.fromEntries(Object.entries(summed ?? {}).map(([column, sum]) => [column, String(sum)])),
  };
}

function misfitOf(db: DatabaseSync, name: string, columns: readonly SourceColumn[], key: readonly SourceColumn[]): AppError {
  for (const { name: column, type } of columns) {
    const quoted = quoteName(column);
    const keyText = key.map((part) => `CAST(${quoteName(part.name)} AS TEXT)`).join(` || ', ' || `);
    const row = db
      .prepare(
        `SELECT ${keyText === '' ? `'?'` : keyText} AS key, typeof(${quoted}) AS type FROM ${quoteName(name)}
          WHERE ${quoted} IS NOT NULL AND ${misfits[type](quoted)} LIMIT 1`,
      )
      .get();
    if (row === undefined) continue;
    const fault = type === 'INTEGER' && row['type'] === 'integer' ? 'an integer beyond 2^53' : `a value of type ${String(row['type'])}`;
    return new AppError('precondition_failed', `Table "${name}", row ${String(row['key'])}: column "${column}" holds ${fault}. Nothing was copied.`);
  }
  return new AppError('precondition_failed', `Table "${name}" holds values that PostgreSQL would not keep. Nothing was copied.`);
}

function lastIdOf(db: DatabaseSync, name: string): bigint | undefined {
  const exists = db.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'`).get() !== undefined;
  if (!exists) return undefined;
  const statement = db.prepare('SELECT seq FROM sqlite_sequence WHERE name = ?');
  statement.setReadBigInts(true);
  const seq = statement.get(name)?.['seq'];
  return typeof seq === 'bigint' ? seq : undefined;
}

/** How many tables a row refers to, one after the other. */
function depthOf(db: DatabaseSync, name: string): number {
  const parents = db.prepare('SELECT DISTINCT "table" AS parent FROM pragma_foreign_key_list(?)').all(name);
  const others = parents.map(({ parent }) => String(parent)).filter((parent) => parent !== name);
  return others.length === 0 ? 0 : 1 + Math.max(...others.map((parent) => depthOf(db, parent)));
}

/** Both engines sort by bytes; a U+0000, which the copy does not have, is sorted as what replaces it. */
function sortTerms(db: DatabaseSync, name: string, key: readonly SourceColumn[]): string {
  const terms = key.map(({ name: column, type }) => {
    const quoted = quoteName(column);
    if (type !== 'TEXT') return quoted;
    const hasNul = db.prepare(`SELECT 1 FROM ${quoteName(name)} WHERE instr(CAST(${quoted} AS BLOB), x'00') > 0 LIMIT 1`).get() !== undefined;
    if (!hasNul) return quoted;
    db.function('without_nul', { deterministic: true }, (text) => String(text).replaceAll('\0', '\ufffd'));
    return `without_nul(${quoted})`;
  });
  if (terms.length === 0) throw new Error(`Table "${name}" has no primary key`);
  return terms.join(', ');
}

function iterate(statement: StatementSync): IterableIterator<SQLOutputValue[]> {
  statement.setReadBigInts(true);
  statement.setReturnArrays(true);
  return statement.iterate() as IterableIterator<unknown> as IterableIterator<SQLOutputValue[]>;
}

function stampOf(files: readonly string[]): string {
  const hash = createHash('sha256');
  for (const file of files) {
    const stats = statSync(file, { bigint: true, throwIfNoEntry: false });
    // Reading creates an empty log.
    if (stats !== undefined && stats.size > 0n) hash.update(`${basename(file)} ${stats.size} ${stats.mtimeNs}\n`);
  }
  return hash.digest('hex');
}
