import { hash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createClient } from '@gatehouse/client';
import { startFakeProvider } from '@gatehouse/testkit';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createLogger } from '../kernel/logger.ts';
import { createRedactor } from '../kernel/redact.ts';
import { checkConfig } from './check-config.ts';
import { examine } from './doctor.ts';
import { runBackup, runRestore } from './maintenance.ts';
import { ServerLife } from './server-life.ts';

const token = `gh_${'Tk4'.repeat(20)}`;
const value = 'sk-canary-of-the-store-0123456789';
const [keyOne, keyTwo] = ['01'.repeat(32), '02'.repeat(32)];
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-stored-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A home whose configuration has a provider with the key `apiKey`. */
function configure(name: string, apiKey = 'a-key', baseUrl = 'http://127.0.0.1:9/v1'): string {
  const home = join(folder, name);
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const provider = { type: 'openai-compatible', baseUrl, apiKey, models: [{ id: 'm' }] };
  // Nothing else to start with.
  rmSync(join(home, 'config.last-good'), { force: true });
  writeFileSync(join(home, 'config.yaml'), JSON.stringify({ gateway: { port: 0 }, models: { fetch: false }, providers: { local: provider } }), {
    mode: 0o600,
  });
  return home;
}

/** A daemon of this process, with what it logged. */
async function start(home: string, key = keyOne) {
  const redactor = createRedactor();
  let logged = '';
  const logger = createLogger({ level: 'info', redact: redactor.redact, write: (line) => (logged += line) });
  const life = new ServerLife({
    args: { kind: 'start', home, port: undefined, host: undefined },
    env: { GATEHOUSE_TOKEN: token, GATEHOUSE_MASTER_KEY: key },
    logger,
    redactor,
    watchdog: false,
    onDeath() {},
    onStandby() {},
    onLost() {},
  });
  const greeting = await life.start();
  const url = greeting?.address ?? '';
  return {
    greeting,
    url,
    redactor,
    client: createClient({ url, token }),
    logged: () => logged,
    [Symbol.asyncDispose]: () => life.stop(),
  };
}

/** Starts a daemon that stores a secret, and stops it. */
async function store(home: string, key = 'A_KEY'): Promise<void> {
  await using daemon = await start(home);
  await daemon.client.call('env.set', { key, value });
}

describe('a daemon whose configuration refers to stored secrets', { timeout: 30_000 }, () => {
  test('starts from the sealed copy, and from the database where the copy is lost, damaged or older', async () => {
    const home = configure('home');
    const copy = join(home, 'secrets.sealed');
    await store(home, 'OTHER_KEY');
    const older = readFileSync(copy);
    await store(home);
    const complete = readFileSync(copy);
    await using provider = await fakeProvider();
    configure('home', '${A_KEY}', provider.url);
    for (const spoil of [() => {}, () => rmSync(copy), () => writeFileSync(copy, 'no copy'), () => writeFileSync(copy, older)]) {
      spoil();
      await using daemon = await start(home);
      await daemon.client.call('agent.execute', { message: 'Hello' });
      expect(provider.requests.at(-1)?.headers['authorization']).toBe(`Bearer ${value}`);
      expect(JSON.parse(readFileSync(copy, 'utf8'))).toEqual(JSON.parse(complete.toString()));
      expect(daemon.redactor.redact(`it is ${value}`)).toBe('it is [REDACTED]');
      expect(daemon.logged()).not.toContain('canary');
    }
  });

  test('says what is missing when neither environment, copy nor database has it, in the start and in the doctor', async () => {
    const home = configure('home');
    await store(home);
    configure('home', '${B_KEY}');
    const missing = /config\.yaml:1:\d+: providers\.local\.apiKey: B_KEY is not set \(or empty\), neither in the environment nor in the secret store/;
    await expect(start(home)).rejects.toThrow(missing);
    const config = async () => (await examine(home, { GATEHOUSE_MASTER_KEY: keyOne })).find(({ name }) => name === 'config');
    expect(await config()).toMatchObject({ status: 'fail', detail: expect.stringMatching(missing) });
    configure('home', '${A_KEY}');
    expect(await config()).toMatchObject({ status: 'ok' });
  });

  test('names the secrets that another install key has sealed: the start fails where one is needed, and warns otherwise', async () => {
    const home = configure('home');
    await store(home);
    configure('home', '${A_KEY}');
    await expect(start(home, keyTwo)).rejects.toThrow(
      /A_KEY is not set[^]*secrets\.sealed: The secret A_KEY cannot be read: sealed with another install key.*\(fingerprint [0-9a-f]{16}\)/,
    );
    configure('home');
    await using daemon = await start(home, keyTwo);
    expect(daemon.greeting?.warnings).toEqual(expect.arrayContaining([expect.stringContaining('The secret A_KEY cannot be read')]));
    expect((await daemon.client.call('env.list', {})).secrets).toMatchObject([{ name: 'A_KEY', unreadable: true }]);
    await daemon.client.call('env.set', { key: 'A_KEY', value });
    expect((await daemon.client.call('env.list', {})).secrets[0]).not.toHaveProperty('unreadable');
  });

  test('finds the key of a vendor in the store', async () => {
    const home = configure('home');
    await store(home, 'OPENAI_API_KEY');
    writeFileSync(join(home, 'config.yaml'), 'gateway: { port: 0 }\nmodels: { fetch: false }');
    await using daemon = await start(home);
    expect(daemon.greeting?.discovery.providers).toMatchObject([{ id: 'openai', from: 'OPENAI_API_KEY' }]);
    expect((await daemon.client.call('agent.getOperationModels', {})).operations[0]).toMatchObject({ provider: 'openai', apiKeyConfigured: true });
    expect((await daemon.client.call('env.list', {})).secrets).toMatchObject([{ usageCount: 2 }]);
    const listed = await daemon.client.call('models.list', { provider: 'openai' });
    if (!('models' in listed)) throw new Error('expected the models of one provider');
    const models = { fetch: false, default: `openai/${listed.models[0]?.modelId}` };
    await daemon.client.call('config.patch', { section: 'models', value: models });
    expect((await daemon.client.call('config.read', { section: 'models' })).config).toMatchObject(models);
    expect(await checkConfig(home, undefined, { GATEHOUSE_MASTER_KEY: keyOne })).toMatchObject({ problems: [] });
    await daemon.client.call('config.patch', { section: 'models', value: { fetch: false, default: null } });
    const providers = async () => (await daemon.client.call('models.list_providers', {})).providers;
    await daemon.client.call('env.set', { key: 'MISTRAL_API_KEY', value });
    expect(await providers()).toEqual(['mistral', 'openai']);
    await daemon.client.call('env.remove', { key: 'OPENAI_API_KEY' });
    expect(await providers()).toEqual(['mistral']);
  });

  test('uses a new value at once, after its provider refused the old one; the redactor forgets neither', async () => {
    const home = configure('home');
    await store(home);
    await using provider = await fakeProvider();
    configure('home', '${A_KEY}', provider.url);
    await using daemon = await start(home);
    const newer = 'sk-canary-that-is-newer-0123456';
    provider.queue({ status: 401, error: { message: 'Incorrect API key provided' } });
    expect((await daemon.client.call('agent.execute', { message: 'Hello' })).response).toBe('');
    expect(await daemon.client.call('env.set', { key: 'A_KEY', value: newer })).toMatchObject({ restart: [] });
    expect((await daemon.client.call('agent.execute', { message: 'Hello' })).response).not.toBe('');
    expect(provider.requests.map(({ headers }) => headers['authorization'])).toEqual([`Bearer ${value}`, `Bearer ${newer}`]);
    expect(daemon.redactor.hide(`${value} ${newer}`)).toBe('[REDACTED] [REDACTED]');
    expect(daemon.logged()).not.toContain('canary');
  });
});

describe('a daemon that stored a configuration with a secret', { timeout: 30_000 }, () => {
  /** Stops it after the provider of `home` has the key `${A_KEY}`; returns the texts before and after. */
  async function changed(home: string): Promise<readonly [string, string]> {
    await using daemon = await start(home);
    const before = readFileSync(join(home, 'config.yaml'), 'utf8');
    await daemon.client.call('env.set', { key: 'A_KEY', value });
    await daemon.client.call('config.set', { path: 'providers.local.apiKey', value: '${A_KEY}', confirm: true });
    return [before, readFileSync(join(home, 'config.yaml'), 'utf8')];
  }

  test('starts with the last good configuration and its secrets, from the copy or the database, when the file was broken', async () => {
    await using provider = await fakeProvider();
    const home = configure('home', 'a-key', provider.url);
    const [, text] = await changed(home);
    writeFileSync(join(home, 'config.yaml'), text.replace('"gateway"', '"gatway"'));
    for (const spoil of [() => {}, () => rmSync(join(home, 'secrets.sealed'))]) {
      spoil();
      await using daemon = await start(home);
      expect(daemon.greeting?.warnings).toEqual(expect.arrayContaining([expect.stringMatching(/config\.yaml cannot be used.*gatway/s)]));
      await daemon.client.call('agent.execute', { message: 'Hello' });
      expect(provider.requests.at(-1)?.headers['authorization']).toBe(`Bearer ${value}`);
      expect(await daemon.client.call('gateway.status')).toMatchObject({ configFault: expect.stringContaining('did you mean "gateway"') });
      expect(daemon.logged()).not.toContain('canary');
    }
  });

  test('and was killed before it replaced the file completes the change at its start, also without the copy', async () => {
    await using provider = await fakeProvider();
    const home = configure('home', 'a-key', provider.url);
    const [before, after] = await changed(home);
    for (const spoil of [() => {}, () => rmSync(join(home, 'secrets.sealed'))]) {
      writeFileSync(join(home, 'config.yaml'), before);
      const db = new DatabaseSync(join(home, 'data', 'gatehouse.db'));
      db.prepare('UPDATE config_file SET version = version - 1, digest = ?').run(hash('sha256', before));
      db.close();
      spoil();
      await using daemon = await start(home);
      expect(readFileSync(join(home, 'config.yaml'), 'utf8')).toBe(after);
      await daemon.client.call('agent.execute', { message: 'Hello' });
      expect(provider.requests.at(-1)?.headers['authorization']).toBe(`Bearer ${value}`);
      expect((await daemon.client.call('config.history', {})).entries.map(({ version, from }) => [version, from])).toEqual([
        [2, 'rpc'],
        [1, 'file'],
      ]);
    }
  });

  test('names what needs a restart until it is restarted, and not what was taken back', async () => {
    const home = configure('home');
    let daemon = await start(home);
    try {
      const restartNeeded = async () => (await daemon.client.call('config.read', {})).restartNeeded;
      await daemon.client.call('env.set', { key: 'A_NAME', value: 'default' });
      expect(await daemon.client.call('config.set', { path: 'routing.defaultAgentId', value: '${A_NAME}' })).toMatchObject({ changed: [] });
      await daemon.client.call('config.set', { path: 'agents.other', value: {}, confirm: true });
      expect(await daemon.client.call('env.set', { key: 'A_NAME', value: 'other' })).toMatchObject({ restart: ['routing.defaultAgentId'] });
      expect(await daemon.client.call('config.set', { path: 'logging.level', value: 'debug' })).toMatchObject({ restart: [] });
      expect(await restartNeeded()).toEqual(['routing.defaultAgentId']);
      expect(await daemon.client.call('env.set', { key: 'A_NAME', value: 'default' })).toMatchObject({ restart: [] });
      expect(await restartNeeded()).toEqual([]);
      await daemon.client.call('env.set', { key: 'A_NAME', value: 'other' });
      await daemon[Symbol.asyncDispose]();
      daemon = await start(home);
      expect(await restartNeeded()).toEqual([]);
      expect((await daemon.client.call('config.read', { section: 'routing' })).config).toMatchObject({ defaultAgentId: 'other' });
    } finally {
      await daemon[Symbol.asyncDispose]();
    }
  });
});

describe('a backup', { timeout: 30_000 }, () => {
  test('has the secrets sealed; restored, they are read by the same install key and named by another one', async () => {
    const env = { GATEHOUSE_MASTER_KEY: keyOne };
    const home = configure('home');
    await store(home);
    const file = join(folder, 'backup.db');
    await runBackup(home, file, env, () => {});
    expect(readFileSync(file).includes('canary')).toBe(false);
    const next = configure('next', '${A_KEY}');
    mkdirSync(join(next, 'data'), { mode: 0o700 });
    await runRestore(next, file, env, () => {});
    cpSync(join(next, 'data'), join(configure('foreign', '${A_KEY}'), 'data'), { recursive: true });
    {
      await using daemon = await start(next);
      expect((await daemon.client.call('env.list', {})).secrets).toMatchObject([{ name: 'A_KEY', usedBy: ['providers.local.apiKey'] }]);
      expect(existsSync(join(next, 'secrets.sealed'))).toBe(true);
    }
    await expect(start(join(folder, 'foreign'), keyTwo)).rejects.toThrow(/The secret A_KEY cannot be read: sealed with another install key/);
  });
});

async function fakeProvider() {
  const provider = await startFakeProvider();
  return { ...provider, [Symbol.asyncDispose]: () => provider.close() };
}
