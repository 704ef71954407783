import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '@gatehouse/testkit/free-port';
import { findPostgres, startPostgres, type TestPostgres } from '@gatehouse/testkit/postgres';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeHome, removeHome } from '../proving/lib/home.ts';
import { findCommand } from '../tools/system-packages.mjs';
import { readGuide, shellOf } from './lib/guide.ts';
import { openShell, type Shell } from './lib/shell.ts';

// Pastes docs/guide/walkthrough-postgresql.md into one shell, and compares what is printed with what the page shows.
const missing = findPostgres() === undefined ? 'PostgreSQL' : findCommand('curl') === undefined ? 'curl' : undefined;
const guide = await readGuide('walkthrough-postgresql.md');

describe.skipIf(missing !== undefined)(`from SQLite to a standby${missing === undefined ? '' : ` (skipped: ${missing} is not installed)`}`, () => {
  let folder: string;
  let postgres: TestPostgres;
  let shell: Shell;
  /** The addresses of the page, and those of this run. */
  let addresses: readonly (readonly [string, string])[];

  beforeAll(async () => {
    folder = await makeHome();
    postgres = await startPostgres();
    await query('postgres', ...guide.blocks('An empty database', 'sql').join('').split(/;\n/));
    const [a, b] = [String(await freePort()), String(await freePort())];
    addresses = [
      ['127.0.0.1:4771', `127.0.0.1:${a}`],
      ['127.0.0.1:4772', `127.0.0.1:${b}`],
      ['127.0.0.1:5432', `127.0.0.1:${postgres.port}`],
    ];
    const { PATH } = await shellOf(folder, { port: 0, token: '' });
    shell = openShell(folder, {
      PATH,
      HOME: folder,
      PORT_A: a,
      PORT_B: b,
      DATABASE_URL: `postgres://gatehouse:walkthrough@127.0.0.1:${postgres.port}/gatehouse`,
    });
    await paste('Names');
  });
  afterAll(async () => {
    await shell?.[Symbol.asyncDispose]();
    await postgres?.[Symbol.asyncDispose]();
    if (folder !== undefined) await removeHome(folder);
  });

  /** Runs statements as the administrator and returns the rows of the last one; one by one, as no transaction may create a database. */
  async function query(database: string, ...statements: string[]): Promise<unknown[]> {
    const client = new Client({ connectionString: postgres.url(database) });
    await client.connect();
    try {
      let rows: unknown[] = [];
      for (const statement of statements) ({ rows } = await client.query(statement));
      return rows;
    } finally {
      await client.end();
    }
  }

  /** Runs the commands of a section; each prints what the block that follows it shows. */
  async function paste(heading: string): Promise<void> {
    const shown = guide.blocks(heading, 'text');
    for (const index of guide.blocks(heading, 'sh').keys()) {
      const printed = await shell.run(guide.take(heading, index));
      if (shown[index] !== undefined) expect(printed).toMatch(patternOf(shown[index]));
    }
  }

  /** `…` stands for the rest of a line or a part of it, and alone in a line for any lines. */
  function patternOf(block: string): RegExp {
    const text = addresses.reduce((all, [page, run]) => all.replaceAll(page, run), block.trimEnd());
    const lines = text.split('\n').map((line) => (line === '…' ? '(?:.*\n)*?' : `${RegExp.escape(line).replaceAll(RegExp.escape('…'), '.*')}\n`));
    return new RegExp(`^${lines.join('')}`, 'm');
  }

  const messages = () => query('gatehouse', `SELECT 1 FROM message`);

  test('a daemon on SQLite keeps a conversation and a job', async () => {
    await paste('1. A daemon on SQLite');
    expect(await query('gatehouse', `SELECT 1 FROM pg_tables WHERE schemaname = 'public'`)).toEqual([]);
  });

  test('its data is imported, and it does not start on the old database', async () => {
    await paste('2. Import');
    expect(existsSync(join(folder, 'gatehouse-a/data/gatehouse.db'))).toBe(true);
    expect(await messages()).toHaveLength(2);
  });

  test('two daemons start on PostgreSQL, one of them as the standby', async () => {
    await paste('3. Configuration');
    await paste('4. The active daemon and its standby');
    expect(await messages()).toHaveLength(2);
  });

  test('the standby takes over with the conversation and the job when the active one is killed', async () => {
    await paste('5. The active one is killed');
    expect(await messages()).toHaveLength(4);
    expect(await query('gatehouse', 'SELECT fence::int FROM active_node')).toEqual([{ fence: 2 }]);
  });

  test('the killed one comes back as the standby, and takes over in order', async () => {
    await paste('6. It comes back as the standby');
    expect(await query('gatehouse', 'SELECT fence::int FROM active_node')).toEqual([{ fence: 3 }]);
  });

  test('nothing is left, and every command of the page was pasted', async () => {
    await paste('The end');
    expect(existsSync(join(folder, 'gatehouse-a'))).toBe(false);
    expect(guide.unpasted()).toEqual([]);
  });
});
