import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { Client } from 'pg';
import type { Migration } from '../../operation.ts';
import { migratePostgres } from '../migrate.ts';

/** A database of the server that all tests of a run share, with the tables of some migrations and no rows. */
export interface TestDatabase extends AsyncDisposable {
  readonly url: string;
}

let server: Promise<string> | undefined;

/** Returns the URL of the server of this test run, which its first user starts (tools/test-postgres.ts). */
export function testServer(): Promise<string> {
  return (server ??= askForServer());
}

async function askForServer(): Promise<string> {
  const path = process.env['GATEHOUSE_TEST_POSTGRES'];
  if (path === undefined) throw new Error('This process does not belong to a test run: there is no PostgreSQL for it');
  const socket = createConnection(path);
  let answer = '';
  socket.setEncoding('utf8').on('data', (text: string) => (answer += text));
  await once(socket, 'close');
  if (!answer.startsWith('postgres:')) throw new Error(`The PostgreSQL of the test run did not start: ${answer}`);
  return answer;
}

/** Creates a database; the first one with these migrations makes a template, which the others copy. */
export async function createTestDatabase(migrations: readonly Migration[]): Promise<TestDatabase> {
  const url = await testServer();
  const template = `t_${createHash('sha256').update(JSON.stringify(migrations)).digest('hex').slice(0, 24)}`;
  const name = `d_${randomBytes(9).toString('hex')}`;
  await withClient(url, async (admin) => {
    if (!(await exists(admin, template))) await createTemplate(admin, url, template, migrations);
    await admin.query(`CREATE DATABASE ${name} TEMPLATE ${template}`);
  });
  return testDatabase(toDatabase(url, name));
}

/** Creates a database without any table. */
export async function createEmptyDatabase(): Promise<TestDatabase> {
  const url = await testServer();
  const name = `d_${randomBytes(9).toString('hex')}`;
  await withClient(url, async (admin) => void (await admin.query(`CREATE DATABASE ${name} TEMPLATE template0 LOCALE 'C.UTF-8' ENCODING 'UTF8'`)));
  return testDatabase(toDatabase(url, name));
}

/** Returns a new database, or the one that `folder` has already: a restart in the same folder finds its data. */
export async function databaseOf(folder: string, migrations: readonly Migration[]): Promise<TestDatabase> {
  const note = noteOf(folder);
  if (existsSync(note)) return testDatabase(readFileSync(note, 'utf8'));
  const database = await createTestDatabase(migrations);
  noteUrl(folder, database.url);
  return database;
}

/** Makes for a folder a database without any table, for the copy of another one. */
export async function emptyDatabaseOf(folder: string): Promise<TestDatabase> {
  const database = await createEmptyDatabase();
  noteUrl(folder, database.url);
  return database;
}

function noteUrl(folder: string, url: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(noteOf(folder), url);
}

const noteOf = (folder: string) => join(folder, 'postgres-url');

function testDatabase(url: string): TestDatabase {
  const name = new URL(url).pathname.slice(1);
  return {
    url,
    async [Symbol.asyncDispose]() {
      const server = await testServer();
      await withClient(server, async (admin) => void (await admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)));
    },
  };
}

async function createTemplate(admin: Client, url: string, template: string, migrations: readonly Migration[]): Promise<void> {
  await admin.query('SELECT pg_advisory_lock(1)');
  // Another worker may have made it meanwhile.
  if (!(await exists(admin, template))) {
    const draft = `${template}_draft`;
    await admin.query(`DROP DATABASE IF EXISTS ${draft}`);
    await admin.query(`CREATE DATABASE ${draft} TEMPLATE template0 LOCALE 'C.UTF-8' ENCODING 'UTF8'`);
    await withClient(toDatabase(url, draft), (client) => migratePostgres(client, migrations, { nowMs: 0, programVersion: 'test' }));
    await admin.query(`ALTER DATABASE ${draft} RENAME TO ${template}`);
  }
  await admin.query('SELECT pg_advisory_unlock(1)');
}

async function exists(admin: Client, name: string): Promise<boolean> {
  return (await admin.query('SELECT 1 FROM pg_database WHERE datname = $1', [name])).rows.length > 0;
}

async function withClient<T>(url: string, use: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

function toDatabase(url: string, name: string): string {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.href;
}
