import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';

/** True when `GATEHOUSE_TEST_DB=postgres` runs the tests on PostgreSQL; the reason to skip one is part of its name. */
export const onPostgres = process.env['GATEHOUSE_TEST_DB'] === 'postgres';

/**
 * Runs one statement in the database of a test server's home, past the server, as a fault or another program would, and returns the rows.
 * `?` stands for a value on both engines.
 */
export function sql(homeDir: string, text: string, ...values: SQLInputValue[]): Promise<Record<string, unknown>[]> {
  return ask(homeDir, 'gatehouse.db', text, values);
}

/** The same for telemetry and events, which have their own file on SQLite. */
export function telemetrySql(homeDir: string, text: string, ...values: SQLInputValue[]): Promise<Record<string, unknown>[]> {
  return ask(homeDir, 'telemetry.db', text, values);
}

async function ask(homeDir: string, file: string, text: string, values: readonly SQLInputValue[]): Promise<Record<string, unknown>[]> {
  if (onPostgres) {
    const { askDatabaseOf } = await import('@gatehouse/server/test-database');
    let count = 0;
    return askDatabaseOf(
      homeDir,
      text.replaceAll('?', () => `$${(count += 1)}`),
      values,
    );
  }
  using db = new DatabaseSync(join(homeDir, 'data', file), { timeout: 5_000 });
  return db
    .prepare(text)
    .all(...values)
    .map((row) => ({ ...row }));
}
