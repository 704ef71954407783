import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startTestServer, type TestServer, type TestServerOptions } from '@gatehouse/testkit';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const value = 'sk-canary-of-the-store-0123456789';
let server: TestServer;
/** Runs before each write of the database. */
let beforeWrite: (name: string) => Promise<void>;
let call: TestServer['client']['call'];
beforeEach(async () => {
  beforeWrite = async () => {};
  server = await startTestServer({ env: {}, db: withWrites });
  ({ call } = server.client);
});
afterEach(() => server[Symbol.asyncDispose]());

const withWrites: NonNullable<TestServerOptions['db']> = (db) => ({
  read: (one, input) => db.read(one, input),
  telemetry: (one, input) => db.telemetry(one, input),
  search: (one, input) => db.search(one, input),
  backup: (to, onProgress) => db.backup(to, onProgress),
  status: () => db.status(),
  async write(one, input) {
    await beforeWrite(one.name);
    return db.write(one, input);
  },
  [Symbol.asyncDispose]: () => db[Symbol.asyncDispose](),
});

const file = () => join(server.homeDir, 'config.yaml');
const set = (key: string, given = value) => call('env.set', { key, value: given });
const useKey = (reference: string) => call('config.set', { path: 'providers.mock.apiKey', value: reference, confirm: true });

/** Edits the file by hand, as editors do: nothing reads a part of it. */
async function edit(change: (text: string) => string): Promise<void> {
  await writeFile(`${file()}.draft`, change(await readFile(file(), 'utf8')));
  await rename(`${file()}.draft`, file());
}

/** Returns the key that the next turn sends to its provider. */
async function keyInUse(): Promise<unknown> {
  await call('agent.execute', { message: 'Hello' });
  return server.provider.requests.at(-1)?.headers['authorization'];
}

/** The file can be used, and is what is in force. */
async function expectUsable(): Promise<void> {
  expect(() => server.configuration.check(server.configuration.readText())).not.toThrow();
  const { restartNeeded, fault } = await call('config.read', {});
  expect({ restartNeeded, fault }).toEqual({ restartNeeded: [], fault: undefined });
}

describe('a key of the configuration that only the store has', () => {
  test('is used by the next turn, as is each new value; a name that nobody has is refused', async () => {
    expect(await keyInUse()).toBe('Bearer mock-key');
    await expect(useKey('${A_KEY}')).rejects.toMatchObject({
      code: 'invalid_params',
      message: expect.stringMatching(/providers\.mock\.apiKey: A_KEY is not set/),
    });
    await set('A_KEY');
    expect(await useKey('${A_KEY}')).toMatchObject({ changed: ['providers.mock.apiKey'], restart: [] });
    expect(await keyInUse()).toBe(`Bearer ${value}`);
    expect(await set('A_KEY', 'sk-another-value-0123456789')).toMatchObject({ restart: [] });
    expect(await keyInUse()).toBe('Bearer sk-another-value-0123456789');
    await expect(call('env.remove', { key: 'A_KEY' })).rejects.toMatchObject({ code: 'precondition_failed' });
    await expectUsable();
  });

  test('stays out of history and differences', async () => {
    await set('A_KEY');
    const { digest } = await call('config.read', {});
    await useKey('${A_KEY}');
    const seen = JSON.stringify([await call('config.history', {}), await call('config.diff', { sha: digest }), await call('config.read', {})]);
    expect(seen).not.toContain('canary');
    expect(seen).not.toContain('mock-key');
  });

  test('that was removed stops a rollback to a text that needs it', async () => {
    await set('A_KEY');
    const { digest } = await useKey('${A_KEY}');
    const plain = await useKey('plain-key');
    await call('env.remove', { key: 'A_KEY' });
    await expect(call('config.rollback', { sha: digest, confirm: true })).rejects.toMatchObject({
      code: 'invalid_params',
      message: expect.stringMatching(/providers\.mock\.apiKey: A_KEY is not set/),
    });
    expect(await call('config.read', {})).toMatchObject({ digest: plain.digest });
    await set('A_KEY', 'sk-the-second-one-0123456789');
    expect(await call('config.rollback', { sha: digest, confirm: true })).toMatchObject({ rolledBack: true, digest });
    expect(await keyInUse()).toBe('Bearer sk-the-second-one-0123456789');
  });

  test('and is removed while a change that uses it is stored: the removal is refused, and the file can be used', async () => {
    await set('A_KEY');
    const removals: Promise<unknown>[] = [];
    beforeWrite = async (name) => {
      if (name !== 'config.add' || removals.length > 0) return;
      removals.push(call('env.remove', { key: 'A_KEY' }));
      // It arrives before these are answered.
      for (let pings = 0; pings < 10; pings += 1) await call('system.ping', {});
    };
    await useKey('${A_KEY}');
    expect(await Promise.allSettled(removals)).toMatchObject([{ reason: { code: 'precondition_failed' } }]);
    expect(await keyInUse()).toBe(`Bearer ${value}`);
    await expectUsable();
  });
});

describe('an edit by hand', () => {
  test('at the same time as a change by a call is kept as a version, and both apply', async () => {
    await edit((text) => text.replace('"mock-key"', '"key-by-hand"'));
    const { version } = await call('config.set', { section: 'logging', key: 'level', value: 'debug' });
    expect(await keyInUse()).toBe('Bearer key-by-hand');
    const { entries } = await call('config.history', {});
    expect(entries.map((entry) => [entry.version, entry.from])).toEqual([
      [version, 'rpc'],
      [version - 1, 'file'],
      [version - 2, 'file'],
    ]);
    await expectUsable();
  });

  test('that leaves the file empty, as editors do for a moment, ends no token', async () => {
    const before = await readFile(file(), 'utf8');
    await writeFile(file(), '');
    await expect(call('config.set', { section: 'logging', key: 'level', value: 'debug' })).rejects.toMatchObject({
      code: 'precondition_failed',
      message: expect.stringContaining('config.yaml: the file is empty; write {} for the defaults'),
    });
    await expect.poll(async () => (await call('config.read', {})).fault, { timeout: 10_000 }).toMatch(/the file is empty/);
    expect(await keyInUse()).toBe('Bearer mock-key');
    await writeFile(file(), before);
    await expect.poll(async () => (await call('config.read', {})).fault, { timeout: 10_000 }).toBeUndefined();
    await expectUsable();
  });

  test('that only a start would refuse is refused with its place, and what is in force stays', async () => {
    const patched = server.heard('config:patched');
    const status = async () => (await call('config.read', {})).fault;
    const before = await readFile(file(), 'utf8');
    // Its models are not listed, so that only building shows that it does not have this one.
    const second = '"second": { "type": "openai-compatible", "baseUrl": "http://127.0.0.1:9/v1", "apiKey": "key" },';
    await edit((text) => text.replace('"mock": {', `${second} "mock": {`).replace(/}\s*$/, ', "models": { "default": "nobody/nothing" } }'));
    await expect.poll(status, { timeout: 10_000 }).toMatch(/config\.yaml:\d+:\d+: models\.default: /);
    expect(await keyInUse()).toBe('Bearer mock-key');
    expect((await call('models.list_providers', {})).providers).toEqual(['mock']);
    expect(patched).toEqual([]);
    await edit(() => before.replace('"mock-key"', '"key-by-hand"'));
    await expect.poll(status, { timeout: 10_000 }).toBeUndefined();
    expect(await keyInUse()).toBe('Bearer key-by-hand');
    expect(patched).toMatchObject([{ from: 'file', patchedBy: 'owner', changed: ['providers.mock.apiKey'], restart: [] }]);
    await expectUsable();
  });
});

test('secrets that are set while the configuration is read again, changed and edited are all in force', async () => {
  await set('A_KEY');
  await useKey('${A_KEY}');
  await edit((text) => text.replace('"model": "mock/mock-fast"', '"model": "mock/mock-other"'));
  await Promise.all([
    server.configuration.reload('test'),
    set('A_KEY', 'sk-number-two-0123456789'),
    call('config.set', { section: 'logging', key: 'level', value: 'debug' }),
    set('A_KEY', 'sk-number-three-0123456789'),
    server.configuration.reload('test'),
  ]);
  expect(await keyInUse()).toBe('Bearer sk-number-three-0123456789');
  expect(server.configuration.current).toMatchObject({ logging: { level: 'debug' }, agents: { default: { model: 'mock/mock-other' } } });
  await expectUsable();
});

test('a command sees a stored secret that exec.env of its agent names, and no other variable of the store', async () => {
  await set('SERVICE_TOKEN', 'token-of-nine-and-more');
  await set('PLAIN_NAME');
  const config = { model: 'mock/mock-fast', tools: { profile: 'full' }, exec: { env: ['SERVICE_TOKEN', 'PLAIN_NAME'] } };
  await call('config.patch', { path: 'agents.default', value: config, confirm: true });
  const argv = ['sh', '-c', 'echo "${#SERVICE_TOKEN} ${#PLAIN_NAME}"'];
  server.provider.queue({ toolCalls: [{ id: 'c1', name: 'exec', arguments: JSON.stringify({ argv }) }] }, { text: 'Done.' });
  await call('agent.execute', { message: 'Go' });
  expect(JSON.stringify(server.provider.requests.at(-1)?.body)).toContain('22 0');
});
