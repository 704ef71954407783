import { execFile } from 'node:child_process';
import { cp, readFile, stat, writeFile } from 'node:fs/promises';
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
  await sql(to, 'UPDATE node SET lease_until_ms = 0');
  await keepHomeId(from, to);
}

/** Makes the copy the same home: a changed config.yaml of another one would be replaced by that of the database. */
async function keepHomeId(from: string, to: string): Promise<void> {
  const [id = ''] = (await readFile(join(from, 'data', 'home-id'), 'utf8')).split(' ');
  const { dev, ino } = await stat(join(to, 'data'), { bigint: true });
  await writeFile(join(to, 'data', 'home-id'), `${id} ${dev}:${ino}\n`);
}
