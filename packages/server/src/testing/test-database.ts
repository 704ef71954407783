import { join } from 'node:path';
import { Client, types } from 'pg';
import { databaseOf, emptyDatabaseOf as emptyOf, type TestDatabase } from '../kernel/db/postgres/testing/test-database.ts';
import { migrations } from '../transactions/registry.ts';

/** Returns an empty database for a home; the same one again for the same home. */
export function openDatabaseOf(homeDir: string): Promise<TestDatabase> {
  return databaseOf(join(homeDir, 'data'), migrations);
}

/** Creates a database without any table for a home, to copy another one into. */
export function emptyDatabaseOf(homeDir: string): Promise<TestDatabase> {
  return emptyOf(join(homeDir, 'data'));
}

/** Types of PostgreSQL that are numbers in tests, as on SQLite: bigint, real, double and numeric. */
const numbers = [types.builtins.INT8, types.builtins.FLOAT4, types.builtins.FLOAT8, types.builtins.NUMERIC];

/** Runs a statement in the database of a home, with a connection for it alone. */
export async function askDatabaseOf(homeDir: string, text: string, values: readonly unknown[]): Promise<Record<string, unknown>[]> {
  const { url } = await openDatabaseOf(homeDir);
  const client = new Client({
    connectionString: url,
    types: { getTypeParser: (type: number) => (numbers.includes(type) ? Number : types.getTypeParser(type, 'text')) },
  });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text, [...values])).rows;
  } finally {
    await client.end();
  }
}
