import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { gunzipSync } from 'node:zlib';
import * as z from 'zod';
import { openFiles } from '../../packages/server/src/kernel/db/sqlite/open-files.ts';
import { migrations } from '../../packages/server/src/transactions/registry.ts';

const Value = z.union([z.string(), z.number(), z.null()]);
const Stored = z.record(z.string(), z.union([Value, z.instanceof(Uint8Array)]));
const Row = z.record(z.string(), Value);
export type Row = z.output<typeof Stored>;
/** Files that a release has left on disk: written once by that release, never changed since. */
const Release = z.strictObject({
  note: z.string(),
  installKey: z.string(),
  tokens: z.strictObject({ keeper: z.string(), minted: z.string() }),
  checksums: z.record(z.string(), z.string()),
  /** Rows, from which homes of earlier schemas are made too. */
  tables: z.record(z.string(), z.array(Row)).default({}),
  /** Since full-text search exists rows are not complete: the database itself, gzip in base64, for its own schema alone. */
  database: z.base64().optional(),
});
export type Release = z.output<typeof Release>;

export const numberOf = (id: string): number => Number.parseInt(id, 10);

export async function readRelease(schema: number): Promise<Release> {
  return Release.parse(JSON.parse(await readFile(join(import.meta.dirname, `../fixtures/schema-${String(schema).padStart(3, '0')}.json`), 'utf8')));
}

/** Creates the data of a home as they were when `schema` was the newest migration; data that the schema cannot hold is left out. */
export async function makeOldHome(home: string, release: Release, schema: number): Promise<Readonly<Record<string, readonly Row[]>>> {
  const dataDir = join(home, 'data');
  await mkdir(dataDir, { mode: 0o700 });
  await writeFile(join(home, 'install.key'), `${release.installKey}\n`, { mode: 0o600 });
  if (release.database !== undefined) return unpackDatabase(join(dataDir, 'gatehouse.db'), release.database);
  const opened = await openFiles({
    dataDir,
    backupsDir: join(home, 'backups'),
    migrations: migrations.filter(({ id }) => numberOf(id) <= schema),
    nowMs: 1_790_000_000_000,
    programVersion: '0.1.0',
  });
  opened.telemetry?.close();
  const rows: Record<string, readonly Row[]> = {};
  // In the order of creation, so that references resolve.
  for (const { name } of tablesOf(opened.main)) {
    const columns = opened.main
      .prepare(`SELECT name FROM pragma_table_info('${name}')`)
      .all()
      .map((row) => String(row['name']));
    rows[name] = (release.tables[name] ?? []).map((row) => Object.fromEntries(Object.entries(row).filter(([column]) => columns.includes(column))));
    for (const row of rows[name])
      opened.main
        .prepare(
          `INSERT INTO ${name} (${Object.keys(row).join(', ')}) VALUES (${Object.keys(row)
            .map(() => '?')
            .join(', ')})`,
        )
        .run(...Object.values(row));
  }
  opened.main.close();
  return rows;
}

async function unpackDatabase(file: string, packed: string): Promise<Readonly<Record<string, readonly Row[]>>> {
  await writeFile(file, gunzipSync(Buffer.from(packed, 'base64')), { mode: 0o600 });
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    // The daemon keeps derived data up to date while it runs.
    const tables = tablesOf(db).filter(({ name }) => !/_fts|^message_index$|^usage_|^memory_change$|^node$/.test(name));
    return Object.fromEntries(tables.map(({ name }) => [name, z.array(Stored).parse(db.prepare(`SELECT * FROM ${name}`).all())]));
  } finally {
    db.close();
  }
}

function tablesOf(db: DatabaseSync): readonly { readonly name: string }[] {
  return z
    .array(z.object({ name: z.string() }))
    .parse(
      db
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'schema_migration' AND name NOT LIKE 'sqlite_%' ORDER BY rowid")
        .all(),
    );
}

/**
 * Columns that are rightly rewritten: since 18 the parts of its key determine the kind of a conversation, and since 170 the configuration of
 * agents is moved into config.yaml. The others are marks of derived data.
 */
const rewritten: Readonly<Record<string, readonly string[]>> = {
  agent: ['source', 'config_json'],
  conversation: ['kind', 'indexed_seq'],
  model_call: ['rolled_up'],
};

/** Returns which required rows a database file lacks, and other damage; nothing when it is intact. */
export function faultsOfFile(file: string, rows: Readonly<Record<string, readonly Row[]>>, keeps: 'all' | 'meaning'): string[] {
  const faults: string[] = [];
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    const check = db.prepare('PRAGMA integrity_check(1)').get()?.['integrity_check'];
    if (check !== 'ok') faults.push(`${file}: ${String(check)}`);
    if (db.prepare('PRAGMA foreign_key_check').get() !== undefined) faults.push(`${file}: rows refer to missing ones`);
    for (const [table, wanted] of Object.entries(rows)) {
      const columns = Object.keys(wanted[0] ?? {}).filter((column) => keeps === 'all' || rewritten[table]?.includes(column) !== true);
      if (columns.length === 0) continue;
      const found = new Set(
        db
          .prepare(`SELECT ${columns.join(', ')} FROM ${table}`)
          .all()
          .map((row) => JSON.stringify(Object.values(row))),
      );
      for (const row of wanted)
        if (!found.has(JSON.stringify(columns.map((column) => row[column]))))
          faults.push(`${table}: lost or changed ${JSON.stringify(row).slice(0, 160)}`);
    }
  } catch (error) {
    faults.push(`${file}: ${String(error)}`);
  } finally {
    db.close();
  }
  return faults;
}

/** Returns the highest migration number recorded in a database file. */
export function schemaOf(file: string): number {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    return Number(db.prepare('SELECT max(number) AS newest FROM schema_migration').get()?.['newest']);
  } finally {
    db.close();
  }
}
