import { execFile } from 'node:child_process';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findPostgres } from './postgres.ts';
import { onPostgres, sql } from './sql.ts';

/** Copies the home of a running test server with its database, as a kill at this moment would leave it: no lock and no socket. */
export async function copyHome(from: string, to: string): Promise<void> {
  await cp(from, to, { recursive: true, filter: (path) => !/\.sock$|lock|postgres-url$/.test(path) });
  if (onPostgres) await copyDatabase(from, to);
}

async function copyDatabase(from: string, to: string): Promise<void> {
  const { emptyDatabaseOf, openDatabaseOf } = await import('@gatehouse/server/test-database');
  const [source, target] = await Promise.all([openDatabaseOf(from), emptyDatabaseOf(to)]);
  const programs = findPostgres() ?? '';
  const dump = join(to, 'database.sql');
  const run = promisify(execFile);
  await run(join(programs, 'pg_dump'), ['--no-sync', '-f', dump, source.url]);
  await run(join(programs, 'psql'), ['-q', '-X', '-v', 'ON_ERROR_STOP=1', '-1', '-o', '/dev/null', '-f', dump, target.url]);
  // The daemon that was killed is silent for longer than its lease: the home is another one, so its lock says nothing about it.
  await sql(to, 'UPDATE node SET lease_until_ms = 0');
}
