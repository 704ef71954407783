import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startTestServer } from '@gatehouse/testkit';
import { findPostgres } from '@gatehouse/testkit/postgres';
import { createTestDatabase } from '../kernel/db/postgres/testing/test-database.ts';
import { testEngine } from '../kernel/db/testing/engine.ts';
import { examine } from './doctor.ts';
import { runBackup, runRestore } from './maintenance.ts';

let homeDir: string;
let lines: Record<string, unknown>[];
const print = (value: object) => void lines.push(value as Record<string, unknown>);
beforeEach(() => {
  homeDir = mkdtempSync(join(tmpdir(), 'gatehouse-maintenance-'));
  lines = [];
});
afterEach(() => rmSync(homeDir, { recursive: true, force: true }));

describe.skipIf(testEngine === 'postgres')('backup and restore of a stopped daemon (the files of SQLite)', () => {
  test('restore the data, keep what they replace, and overwrite nothing', async () => {
    const first = await startTestServer({ homeDir });
    await first.client.call('tokens.create', { id: 'early', scopes: ['rpc'] });
    await first[Symbol.asyncDispose]();
    const file = join(homeDir, 'copy.db');
    await runBackup(homeDir, file, {}, print);
    expect(lines.at(-1)).toMatchObject({ result: { file } });
    await runBackup(homeDir, file, {}, print);
    expect(lines.at(-1)).toMatchObject({ error: { code: 'conflict', message: expect.stringContaining(file) } });

    const second = await startTestServer({ homeDir });
    await second.client.call('tokens.create', { id: 'late', scopes: ['rpc'] });
    await runBackup(homeDir, join(homeDir, 'other.db'), {}, print);
    expect(lines.at(-1)).toMatchObject({ error: { message: expect.stringMatching(/Another daemon \(pid \d+/) } });
    await second[Symbol.asyncDispose]();

    await runRestore(homeDir, file, {}, print);
    expect(lines.at(-1)).toMatchObject({ result: { file, previous: expect.stringContaining(homeDir) } });
    const third = await startTestServer({ homeDir });
    expect((await third.client.call('tokens.list')).tokens.map(({ id }) => id)).toEqual(['early', 'root']);
    await third[Symbol.asyncDispose]();
    await runRestore(homeDir, join(homeDir, 'nothing.db'), {}, print);
    expect(lines.at(-1)).toMatchObject({ error: { code: 'not_found' } });
  });
});

test('neither copies nor restores a file when the data is in PostgreSQL', async () => {
  writeFileSync(join(homeDir, 'config.yaml'), 'storage: { driver: postgres, url: "${DATABASE_URL}" }\n', { mode: 0o600 });
  const env = { DATABASE_URL: 'postgres://ada@127.0.0.1:1/gatehouse' };
  const refusal = { error: { code: 'precondition_failed', message: expect.stringContaining('pgBackRest') } };
  await runBackup(homeDir, join(homeDir, 'copy.db'), env, print);
  await runRestore(homeDir, join(homeDir, 'copy.db'), env, print);
  expect(lines).toEqual([refusal, refusal]);
});

describe('the doctor', () => {
  test('checks an empty folder without creating anything', async () => {
    const nowhere = join(homeDir, 'none');
    const checks = await examine(nowhere, {});
    expect(Object.fromEntries(checks.map(({ name, status }) => [name, status]))).toEqual({
      node: 'ok',
      clock: 'ok',
      home: 'warn',
      disk: 'ok',
      lock: 'ok',
      permissions: 'ok',
      key: 'ok',
      config: 'warn',
      port: 'warn',
      database: 'ok',
      models: 'warn',
      // Depend on whether the machine has a jail, and a browser.
      jail: expect.stringMatching(/^(?:ok|warn)$/),
      browser: expect.stringMatching(/^(?:ok|warn)$/),
    });
    expect((await examine(nowhere, {})).find((check) => check.name === 'home')?.detail).toContain('does not exist');
  });

  test.skipIf(testEngine === 'postgres')('skips the database of a running daemon and checks that of a stopped one (the file of SQLite)', async () => {
    const server = await startTestServer({ homeDir });
    const find = async (wanted: string) => (await examine(homeDir, {})).find(({ name }) => name === wanted);
    expect((await find('database'))?.detail).toContain(`pid ${process.pid}`);
    expect((await find('lock'))?.detail).toContain(`held by the daemon with pid ${process.pid}`);
    await server[Symbol.asyncDispose]();
    expect((await find('database'))?.detail).toContain('is sound');
    expect((await find('lock'))?.detail).toContain('no daemon');
  });

  test('reports a database server that cannot be reached, without its password', async () => {
    writeFileSync(join(homeDir, 'config.yaml'), 'storage: { driver: postgres, url: "${DATABASE_URL}" }\n', { mode: 0o600 });
    const checks = await examine(homeDir, { DATABASE_URL: 'postgres://ada:open-sesame@127.0.0.1:1/gatehouse' });
    expect(checks.find(({ name }) => name === 'database')).toEqual({
      name: 'database',
      status: 'fail',
      detail: expect.stringMatching(/^Cannot use the database postgres:\/\/127\.0\.0\.1:1\/gatehouse: .*ECONNREFUSED/),
    });
    expect(JSON.stringify(checks)).not.toContain('open-sesame');
  });

  test.skipIf(findPostgres() === undefined)('names the settings of a database server that may lose data', async () => {
    await using database = await createTestDatabase([]);
    writeFileSync(join(homeDir, 'config.yaml'), 'storage: { driver: postgres, url: "${DATABASE_URL}" }\n', { mode: 0o600 });
    const checks = await examine(homeDir, { DATABASE_URL: database.url });
    expect(checks.find(({ name }) => name === 'database')).toEqual({
      name: 'database',
      status: 'warn',
      detail: expect.stringMatching(/^PostgreSQL \d+.* at postgres:\/\/127\.0\.0\.1:.*fsync = off/),
    });
  });

  test('reports a full disk, an unusable lock and a clock that is behind written files', async () => {
    const config = join(homeDir, 'config.yaml');
    writeFileSync(config, 'storage: { minFreeBytes: 9007199254740991 }\n', { mode: 0o600 });
    utimesSync(config, new Date(), new Date('2100-01-01T00:00:00Z'));
    mkdirSync(join(homeDir, 'data', 'lock.db'), { recursive: true });
    const found = Object.fromEntries((await examine(homeDir, {})).map(({ name, ...rest }) => [name, rest]));
    expect(found).toMatchObject({
      clock: { status: 'warn', detail: expect.stringContaining('was written at 2100-01-01T00:00:00Z') },
      disk: { status: 'fail', detail: expect.stringContaining('storage.minFreeBytes') },
      lock: { status: 'fail', detail: expect.stringContaining('Cannot lock') },
    });
  });
});
