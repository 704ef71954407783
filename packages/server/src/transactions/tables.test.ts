import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { findPostgres } from '@gatehouse/testkit/postgres';
import { Client } from 'pg';
import { expect, test } from 'vitest';
import { createTestDatabase } from '../kernel/db/postgres/testing/test-database.ts';
import { migrations } from './registry.ts';

const source = join(import.meta.dirname, '..');

interface Column {
  readonly name: string;
  /** `text`, `number`, `bytes`, or undefined where the type is declared elsewhere. */
  readonly kind: string | undefined;
  readonly isNullable: boolean | undefined;
}

const toSnakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Reads the declared tables of a text, by the name in the database. */
function declaredIn(text: string): ReadonlyMap<string, readonly Column[]> {
  const types = new Map([...text.matchAll(/interface (\w+Table) \{([^]*?)\n\}/g)].map(([, name = '', body = '']) => [name, body]));
  const named = [...text.matchAll(/readonly (\w+): (\w+Table);/g)];
  return new Map(named.map(([, table = '', type = '']) => [toSnakeCase(table), columnsOf(types.get(type) ?? '')]));
}

function columnsOf(body: string): Column[] {
  return [...body.matchAll(/readonly (\w+): ([^;]+);/g)].map(([, name = '', type = '']) => {
    const plain = /^(?:Generated<)?(string|number|Uint8Array|0 \| 1)( \| null)?>?$/.exec(type);
    const kind = { string: 'text', number: 'number', '0 | 1': 'number', Uint8Array: 'bytes' }[plain?.[1] ?? ''];
    return { name: toSnakeCase(name), kind, isNullable: kind === undefined ? undefined : plain?.[2] !== undefined };
  });
}

/** Runs all migrations and reads what they made. */
function storedTables(): ReadonlyMap<string, readonly Column[]> {
  const found = new Map<string, readonly Column[]>();
  for (const file of ['main', 'telemetry']) {
    using db = new DatabaseSync(':memory:');
    const own = migrations.filter(({ database = 'main' }) => database === file);
    for (const { up } of own.toSorted((a, b) => Number.parseInt(a.id, 10) - Number.parseInt(b.id, 10)))
      for (const statement of up) db.exec(statement);
    const virtual = db
      .prepare(`SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%'`)
      .all()
      .map(({ name }) => String(name));
    const tables = db.prepare(`SELECT name FROM pragma_table_list WHERE schema = 'main' AND type <> 'shadow' AND name NOT LIKE 'sqlite_%'`).all();
    for (const { name } of tables) found.set(String(name), columnsStored(db, String(name), virtual.includes(String(name))));
  }
  return found;
}

const kinds: Readonly<Record<string, string>> = { INTEGER: 'number', REAL: 'number', TEXT: 'text', BLOB: 'bytes', '': 'text' };

function columnsStored(db: DatabaseSync, table: string, isVirtual: boolean): readonly Column[] {
  const columns = db.prepare('SELECT name, type, "notnull" AS required, pk FROM pragma_table_info(?)').all(table);
  const own = columns.map(({ name, type, required, pk }) => ({
    name: String(name),
    kind: kinds[String(type)],
    isNullable: required === 0 && pk === 0 && !isVirtual,
  }));
  return isVirtual ? [{ name: 'rowid', kind: 'number', isNullable: false }, ...own] : own;
}

/** Runs all migrations on a PostgreSQL and reads what they made. */
async function storedOnPostgres(): Promise<ReadonlyMap<string, readonly Column[]>> {
  await using database = await createTestDatabase(migrations);
  const client = new Client({ connectionString: database.url });
  await client.connect();
  try {
    const { rows } = await client.query<{ table: string; name: string; type: string; required: boolean; key: boolean }>(
      `SELECT c.relname AS table, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS required,
        EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND a.attnum = ANY (i.indkey)) AS key
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY 1, a.attnum`,
    );
    const columns = rows.map(({ table, name, type, required, key }) => ({ table, name, kind: postgresKinds[type], isNullable: !required && !key }));
    return new Map([...Map.groupBy(columns, ({ table }) => table)].map(([table, all]) => [table, all.map(({ table: _, ...column }) => column)]));
  } finally {
    await client.end();
  }
}

// What holds the words of a text is text on SQLite.
const postgresKinds: Readonly<Record<string, string>> = {
  bigint: 'number',
  'double precision': 'number',
  text: 'text',
  bytea: 'bytes',
  tsvector: 'text',
};

/** Every table that the source declares. */
function declaredTables(): ReadonlyMap<string, readonly Column[]> {
  const texts = globSync('{features/**/tables.ts,kernel/db/audit.ts}', { cwd: source }).map((path) => readFileSync(join(source, path), 'utf8'));
  return new Map(texts.flatMap((text) => [...declaredIn(text)]));
}

function expectSame(declared: ReadonlyMap<string, readonly Column[]>, stored: ReadonlyMap<string, readonly Column[]>): void {
  expect([...declared.keys()].toSorted()).toEqual([...stored.keys()].toSorted());
  for (const [table, columns] of declared) {
    const inDatabase = stored.get(table) ?? [];
    // What is declared elsewhere is checked by the queries that use it.
    const expected = inDatabase.map((one) => {
      const own = columns.find(({ name }) => name === one.name);
      return own?.kind === undefined ? { ...one, kind: undefined, isNullable: undefined } : one;
    });
    const byName = (a: Column, b: Column) => a.name.localeCompare(b.name);
    expect(columns.toSorted(byName), table).toEqual(expected.toSorted(byName));
  }
}

test('the declared tables have the columns, kinds and nulls of the database', () => {
  expectSame(declaredTables(), storedTables());
});

test.skipIf(findPostgres() === undefined)('the declared tables have the columns, kinds and nulls of PostgreSQL', async () => {
  const stored = await storedOnPostgres();
  expect(stored.get('schema_migration')).toHaveLength(6);
  // Its `body` holds the tokens of `part` too.
  const isPart = (table: string, { name }: Column) => table.endsWith('_fts') && name === 'part';
  const declared = [...declaredTables()].map(([table, columns]) => [table, columns.filter((column) => !isPart(table, column))] as const);
  expectSame(new Map(declared), new Map([...stored].filter(([table]) => table !== 'schema_migration')));
});
