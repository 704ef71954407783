import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
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

test('the declared tables have the columns, kinds and nulls of the database', () => {
  const texts = globSync('{features/**/tables.ts,kernel/db/audit.ts}', { cwd: source }).map((path) => readFileSync(join(source, path), 'utf8'));
  const declared = new Map(texts.flatMap((text) => [...declaredIn(text)]));
  const stored = storedTables();
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
});
