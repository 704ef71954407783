import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@gatehouse/client';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createLogger } from '../kernel/logger.ts';
import { createRedactor } from '../kernel/redact.ts';
import { missingForKeyring, SecretService } from '../kernel/testing/secret-service.ts';
import { examine } from './doctor.ts';
import { exitCodeOf } from './exit-code-of.ts';
import { exitCodes } from './exit-codes.ts';
import { runInstallKey } from './maintenance.ts';
import { ServerLife } from './server-life.ts';

const token = `gh_${'Tk5'.repeat(20)}`;
let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'gatehouse-start-'));
  writeFileSync(join(home, 'config.yaml'), 'gateway: { port: 0 }\nmodels: { fetch: false }\n', { mode: 0o600 });
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const keyFile = () => readFileSync(join(home, 'install.key'), 'utf8');

async function start(env: Readonly<Record<string, string>>) {
  const redactor = createRedactor();
  const life = new ServerLife({
    args: { kind: 'start', home, port: undefined, host: undefined },
    env: { ...env, GATEHOUSE_TOKEN: token },
    logger: createLogger({ level: 'info', redact: redactor.redact, write() {} }),
    redactor,
    watchdog: false,
    onDeath() {},
    onStandby() {},
    onLost() {},
  });
  const greeting = await life.start();
  return { client: createClient({ url: greeting?.address ?? '', token }), [Symbol.asyncDispose]: () => life.stop() };
}

/** Runs `gatehouse secrets key` as the command does. */
async function move(to: 'file' | 'keyring' | undefined, env: Readonly<Record<string, string>>): Promise<unknown> {
  const lines: object[] = [];
  await runInstallKey(home, to, env, (line) => lines.push(line));
  return lines.at(-1);
}

async function failureOf(starting: Promise<unknown>): Promise<Error> {
  const error = await starting.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof Error)) throw new Error('expected a failed start');
  return error;
}

const noBus = { HOME: '/nonexistent', XDG_RUNTIME_DIR: '/nonexistent' };

test.skipIf(process.platform !== 'linux')('a start whose keyring is absent fails, says what to do and makes no key', async () => {
  const reference = 'keyring 0123456789abcdef\n';
  writeFileSync(join(home, 'install.key'), reference, { mode: 0o600 });
  const error = await failureOf(start(noBus));
  expect(error.message).toMatch(
    /install\.key: the install key is in the system's keyring, which is missing, locked or refuses access \(.*\)\. Unlock the keyring .*GATEHOUSE_MASTER_KEY_FILE\. No new key was made$/,
  );
  expect(exitCodeOf(error)).toBe(exitCodes.home.code);
  expect(keyFile()).toBe(reference);
  expect(existsSync(join(home, 'data', 'gatehouse.db'))).toBe(false);
  expect((await examine(home, noBus)).find(({ name }) => name === 'key')).toMatchObject({ status: 'fail', detail: error.message });
  // A key from the environment is used instead, and the keyring is not asked.
  await using daemon = await start({ ...noBus, GATEHOUSE_MASTER_KEY: '07'.repeat(32) });
  expect((await daemon.client.call('env.list', {})).secrets).toEqual([]);
});

test('the command refuses a home without a key, a key of the environment and an absent keyring', async () => {
  expect(await move('keyring', noBus)).toMatchObject({ error: { code: 'not_found', message: expect.stringContaining('the first start makes it') } });
  expect(await move('keyring', { GATEHOUSE_MASTER_KEY: '07'.repeat(32) })).toMatchObject({ error: { code: 'precondition_failed' } });
  const key = `${'0a'.repeat(32)}\n`;
  writeFileSync(join(home, 'install.key'), key, { mode: 0o600 });
  expect(await move(undefined, noBus)).toMatchObject({ result: { place: 'file', moved: false } });
  if (process.platform === 'linux')
    expect(await move('keyring', noBus)).toMatchObject({ error: { message: expect.stringContaining('keeps the install key, because') } });
  expect(keyFile()).toBe(key);
});

describe.skipIf(missingForKeyring.length > 0)(`with a Secret Service${missingForKeyring.map((name) => ` (missing: ${name})`).join('')}`, () => {
  test('the key moves there and back, also while the daemon runs; a locked keyring stops the start', { timeout: 120_000 }, async () => {
    await using service = await SecretService.start();
    const { env } = service;
    let before: string;
    {
      await using daemon = await start(env);
      await daemon.client.call('env.set', { key: 'A_KEY', value: 'sk-canary-of-the-keyring' });
      before = keyFile();
      expect(await move('keyring', env)).toMatchObject({ result: { place: 'keyring', moved: true } });
      expect(keyFile()).toMatch(/^keyring [0-9a-f]{16}\n$/);
      await daemon.client.call('env.set', { key: 'B_KEY', value: 'sk-canary-of-the-keyring' });
    }
    expect((await examine(home, env)).find(({ name }) => name === 'key')).toMatchObject({ status: 'ok', detail: expect.stringContaining('keyring') });
    {
      await using daemon = await start(env);
      const { secrets } = await daemon.client.call('env.list', {});
      expect(secrets.map(({ name, unreadable }) => [name, unreadable])).toEqual([
        ['A_KEY', undefined],
        ['B_KEY', undefined],
      ]);
    }

    await service.lock();
    const reference = keyFile();
    const error = await failureOf(start(env));
    expect(error.message).toMatch(/keyring, which is missing, locked or refuses access \(.*\)\. Unlock the keyring/);
    expect(await move('file', env)).toMatchObject({ error: { message: error.message } });
    expect(keyFile()).toBe(reference);

    await service.unlock();
    expect(await move('file', env)).toMatchObject({ result: { place: 'file', moved: true } });
    expect(keyFile()).toBe(before);
    await using daemon = await start(noBus);
    expect((await daemon.client.call('env.list', {})).secrets).toHaveLength(2);
  });
});
