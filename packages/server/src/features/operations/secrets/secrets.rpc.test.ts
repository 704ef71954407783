import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@gatehouse/client';
import { copyHome, createStepClock, onPostgres, sql, startTestServer, type TestServer, type TestServerOptions } from '@gatehouse/testkit';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const value = 'sk-canary-of-the-store-0123456789';
const minuteMs = 60_000;
let clock: ReturnType<typeof createStepClock>;
let homeDir: string;
let open: Set<TestServer>;
beforeEach(async () => {
  clock = createStepClock();
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-secrets-'));
  open = new Set();
});
afterEach(async () => {
  for (const server of open) await stop(server);
  await rm(homeDir, { recursive: true, force: true });
});

async function start(options: Partial<TestServerOptions> = {}): Promise<TestServer> {
  const server = await startTestServer({ clock, homeDir, env: {}, ...options });
  open.add(server);
  return server;
}

async function stop(server: TestServer): Promise<void> {
  open.delete(server);
  await server[Symbol.asyncDispose]();
}

const copyFile = () => join(homeDir, 'secrets.sealed');
const set = (server: TestServer, key: string, given = value) => server.client.call('env.set', { key, value: given });
const names = async (server: TestServer) => (await server.client.call('env.list', {})).secrets.map(({ name }) => name);
const apiKey = (reference: string): NonNullable<TestServerOptions['config']> => ({
  providers: { second: { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:9/v1', apiKey: reference, models: [{ id: 'm' }] } },
});

/** Wraps a database: `run` decides what becomes of each write. */
function writesThrough(run: (name: string, write: () => Promise<unknown>) => Promise<unknown>): NonNullable<TestServerOptions['db']> {
  return (db) => ({
    read: (one, input) => db.read(one, input),
    telemetry: (one, input) => db.telemetry(one, input),
    search: (one, input) => db.search(one, input),
    backup: (file, onProgress) => db.backup(file, onProgress),
    status: () => db.status(),
    write: <Input, Output>(one: Parameters<typeof db.write<Input, Output>>[0], input: Input) =>
      run(one.name, () => db.write(one, input)) as Promise<Output>,
    [Symbol.asyncDispose]: () => db[Symbol.asyncDispose](),
  });
}

describe('a secret', () => {
  test('is stored sealed and listed by name; no answer, event, audit row or file has its value', async () => {
    const server = await start();
    const heard = [server.heard('secret:modified'), server.heard('audit:event')] as const;
    expect(await server.client.call('env.set', { key: 'A_KEY', value, description: 'For searches', provider: 'search', expiresAt: 2e12 })).toEqual({
      set: true,
      key: 'A_KEY',
      storage: 'encrypted',
      restarting: false,
      restart: [],
    });
    clock.advance(1_000);
    await set(server, 'A_KEY', `${value}-rotated`);
    await set(server, 'B_KEY');
    const [first, second] = [1_790_000_000_000, 1_790_000_001_000];
    const listed = await server.client.call('env.list', {});
    expect(listed).toEqual({
      secrets: [
        {
          name: 'A_KEY',
          source: 'secretstore',
          provider: 'search',
          description: 'For searches',
          createdAt: first,
          updatedAt: second,
          usageCount: 0,
          usedBy: [],
        },
        { name: 'B_KEY', source: 'secretstore', createdAt: second, updatedAt: second, usageCount: 0, usedBy: [] },
      ],
      total: 2,
      truncated: false,
    });
    expect(await server.client.call('env.remove', { key: 'B_KEY' })).toEqual({ removed: true, key: 'B_KEY' });
    await expect(server.client.call('env.remove', { key: 'B_KEY' })).rejects.toMatchObject({ code: 'not_found' });
    expect(heard[0].map(({ secretName, action }) => `${secretName} ${action}`)).toEqual([
      'A_KEY created',
      'A_KEY updated',
      'B_KEY created',
      'B_KEY deleted',
    ]);
    const { rows } = await server.client.call('obs.audit.query', {});
    expect(rows.map(({ action, target }) => `${action} ${target ?? ''}`.trim()).toReversed()).toEqual([
      'env.set A_KEY',
      'env.set A_KEY',
      'env.set B_KEY',
      'env.list',
      'env.remove B_KEY',
    ]);
    const stored = await sql(homeDir, 'SELECT * FROM secret');
    expect(stored).toHaveLength(1);
    const said = JSON.stringify([listed, heard, rows, stored, readFileSync(copyFile(), 'utf8')]);
    expect(said).not.toContain('canary');
  });

  test('is refused by its limits, without a repeat of its value', async () => {
    const server = await start();
    for (const [params, message] of [
      [{ key: 'lower', value }, /key: expected an upper-case letter/],
      [{ key: '1_KEY', value }, /key: expected an upper-case letter/],
      [{ key: 'A-KEY', value }, /key: expected an upper-case letter/],
      [{ key: 'A'.repeat(257), value }, /key/],
      [{ key: 'A_KEY', value: '' }, /value/],
      [{ key: 'A_KEY', value: value.repeat(300) }, /value/],
      [{ key: 'A_KEY', value: '[REDACTED]' }, /value: expected a value, found the marker of a redacted one/],
      [{ key: 'A_KEY', value: `${value} Bearer [REDACTED:1]` }, /value: expected a value, found the marker/],
      [{ key: 'A_KEY', value: `${value}\0b` }, /value: expected Unicode text/],
      [{ key: 'A_KEY', value: `${value}\ud800` }, /value: expected Unicode text/],
    ] as const) {
      const failure: unknown = await server.client.call('env.set', params).catch((error: unknown) => error);
      expect(failure).toMatchObject({ code: 'invalid_params', message: expect.stringMatching(message) });
      expect(JSON.stringify(failure)).not.toContain('canary');
    }
    expect(await names(server)).toEqual([]);
  });

  test('of the longest name and value is kept through a restart', async () => {
    const key = `A${'_'.repeat(255)}`;
    const longest = '€'.repeat(8192);
    const server = await start();
    await set(server, key, longest);
    await stop(server);
    const next = await start({ config: { agents: { default: { model: 'mock/mock-fast', instructions: `\${${key}}` } } } });
    expect(await next.client.call('config.read', { section: 'agents' })).toMatchObject({ config: { default: { instructions: longest } } });
  });
});

describe('a reference', () => {
  test('takes effect at once in a live key; one that needs a restart is named', async () => {
    const server = await start();
    const file = join(homeDir, 'config.yaml');
    const config = JSON.parse(readFileSync(file, 'utf8'));
    const accessed = server.heard('secret:accessed');
    await set(server, 'FREEZE', 'false');
    writeFileSync(file, JSON.stringify({ ...config, gateway: { ...config.gateway, host: '${HOST}' }, secrets: { readOnly: '${FREEZE}' } }));
    expect(await set(server, 'HOST', '127.0.0.1')).toMatchObject({ restart: [] });
    expect(await set(server, 'HOST', 'localhost')).toMatchObject({ restart: ['gateway.host'] });
    expect(await server.client.call('config.read', { section: 'gateway' })).toMatchObject({ config: { host: '127.0.0.1' } });
    expect(await set(server, 'FREEZE', 'true')).toMatchObject({ restart: [] });
    expect(accessed.map(({ secretName, outcome }) => `${secretName} ${outcome}`).toSorted()).toEqual(['FREEZE success', 'HOST success']);
    const readOnly = { code: 'precondition_failed', message: 'The secret store is read-only (secrets.readOnly in config.yaml)' };
    await expect(set(server, 'FREEZE', 'false')).rejects.toMatchObject(readOnly);
    await expect(server.client.call('env.remove', { key: 'OTHER' })).rejects.toMatchObject(readOnly);
    expect(await names(server)).toEqual(['FREEZE', 'HOST']);
  });

  test('takes the environment first; the store is said to be shadowed', async () => {
    const server = await start({ env: { A_KEY: 'of the environment', EMPTY: '' }, config: apiKey('${A_KEY}') });
    expect(await set(server, 'A_KEY')).toMatchObject({ shadowed: true, restart: [] });
    expect(await set(server, 'EMPTY')).not.toHaveProperty('shadowed');
    expect((await server.client.call('env.list', {})).secrets).toMatchObject([
      { name: 'A_KEY', shadowed: true, usedBy: ['providers.second.apiKey'] },
      { name: 'EMPTY', usedBy: [] },
    ]);
    // Nothing would be missing.
    await server.client.call('env.remove', { key: 'A_KEY' });
  });

  test('that is missing or does not fit stops neither the daemon nor a repair', async () => {
    const server = await start();
    const file = join(homeDir, 'config.yaml');
    const config = JSON.parse(readFileSync(file, 'utf8'));
    const tokens = [...config.gateway.tokens, { id: 'ops', secret: '${OPS_TOKEN}', scopes: ['rpc'] }];
    writeFileSync(file, JSON.stringify({ ...config, gateway: { ...config.gateway, tokens } }));
    // The file is not valid yet, so this value makes nothing worse; it is kept and cannot be applied.
    expect(await set(server, 'OPS_TOKEN', 'too short')).toMatchObject({ notApplied: expect.stringMatching(/gateway\.tokens\[1\]\.secret/) });
    const good = 'ops-token-of-the-store-0123456789-abcdefgh';
    expect(await set(server, 'OPS_TOKEN', good)).not.toHaveProperty('notApplied');
    await expect(set(server, 'OPS_TOKEN', 'too short again')).rejects.toMatchObject({
      code: 'precondition_failed',
      message: expect.stringMatching(/^With this value the configuration is not valid: .*gateway\.tokens\[1\]\.secret/),
    });
    const refused = server.client.call('env.remove', { key: 'OPS_TOKEN' });
    await expect(refused).rejects.toMatchObject({
      code: 'precondition_failed',
      message: 'The secret OPS_TOKEN is used by gateway.tokens[1].secret: change these keys of config.yaml first',
    });
    writeFileSync(file, JSON.stringify(config));
    await server.client.call('env.remove', { key: 'OPS_TOKEN' });
  });

  test('to the secret of a token is for callers that may do as much', async () => {
    const server = await start({ env: { HIDDEN: 'hidden-token-of-the-environment-0123456789', BASE: 'http://127.0.0.1:9/v1' } });
    await set(server, 'OPS_TOKEN', 'ops-token-of-the-store-0123456789-abcdefgh');
    const file = join(homeDir, 'config.yaml');
    const config = JSON.parse(readFileSync(file, 'utf8'));
    config.gateway.tokens.push({ id: 'ops', secret: '${OPS_TOKEN}', scopes: ['*'] });
    // The environment may lose a variable: what the store has counts then.
    config.gateway.tokens.push({ id: 'hidden', secret: '${HIDDEN}', scopes: ['*'] });
    config.providers.other = { type: 'openai-compatible', baseUrl: '${BASE}', apiKey: 'sk-of-the-file', models: [{ id: 'm' }] };
    writeFileSync(file, JSON.stringify(config));
    const admin = await server.as(['admin']);
    const params = { key: 'OPS_TOKEN', value: 'chosen-by-an-administrator-0123456789-abcd' };
    await expect(admin.call('env.set', params)).rejects.toMatchObject({
      code: 'denied',
      message: expect.stringContaining('gateway.tokens[1].secret'),
    });
    for (const key of ['HIDDEN', 'BASE']) await expect(admin.call('env.set', { ...params, key })).rejects.toMatchObject({ code: 'denied' });
    await server.client.call('env.set', params);
    await admin.call('env.set', { ...params, key: 'OTHER' });
    const reader = await server.as(['rpc']);
    for (const method of ['env.set', 'env.list', 'env.remove'] as const)
      await expect(reader.call(method, params as never)).rejects.toMatchObject({ code: 'insufficient_scope' });
  });

  test('is rotated in the store with its token; one of the environment is not, and a literal one in the file', async () => {
    const first = 'ops-token-of-the-store-0123456789-abcdefgh';
    const of = (id: string, secret: string, scopes: ('rpc' | '*')[] = ['rpc']) => ({ id, secret, scopes });
    const server = await start({ env: { ENV_TOKEN: `${first}-env` } });
    await set(server, 'OPS_TOKEN', first);
    await set(server, 'BIG_TOKEN', `${first}-big`);
    const file = join(homeDir, 'config.yaml');
    const config = JSON.parse(readFileSync(file, 'utf8'));
    config.gateway.tokens.push(of('ops', '${OPS_TOKEN}'), of('env', '${ENV_TOKEN}'), of('plain', `${first}-plain`), of('big', '${BIG_TOKEN}', ['*']));
    writeFileSync(file, JSON.stringify(config));
    await set(server, 'OTHER', 'applies the file');
    const pings = (token: string) =>
      createClient({ url: server.url, token })
        .call('system.ping')
        .then(
          () => 'ok',
          ({ code }) => code,
        );
    expect(await pings(first)).toBe('ok');
    const rotated = await server.client.call('tokens.rotate', { id: 'ops' });
    expect(rotated).toMatchObject({ id: 'ops', rotated: true, scopes: ['rpc'], message: 'Store the secret now: it is not shown again.' });
    expect([await pings(first), await pings(rotated.secret)]).toEqual(['unauthenticated', 'ok']);
    await expect(server.client.call('tokens.rotate', { id: 'ops' })).rejects.toMatchObject({ code: 'conflict' });
    await expect(server.client.call('tokens.rotate', { id: 'env' })).rejects.toMatchObject({
      code: 'precondition_failed',
      message: 'ENV_TOKEN is a variable of the environment: change it there and restart',
    });
    const plain = await server.client.call('tokens.rotate', { id: 'plain' });
    expect([await pings(`${first}-plain`), await pings(plain.secret)]).toEqual(['unauthenticated', 'ok']);
    expect(readFileSync(file, 'utf8')).toContain(plain.secret);
    const admin = await server.as(['admin']);
    await expect(admin.call('tokens.rotate', { id: 'big' })).rejects.toMatchObject({ code: 'denied' });
    const { rows } = await server.client.call('obs.audit.query', { actionType: 'tokens.rotate' });
    expect(rows.map(({ target, outcome }) => `${target} ${outcome}`)).toEqual(['big denied', 'plain success', 'ops success']);
    expect(JSON.stringify(rows)).not.toContain(rotated.secret);
    await stop(server);
    const next = await start({ config: { gateway: { tokens: [of('ops', '${OPS_TOKEN}')] } } });
    await createClient({ url: next.url, token: rotated.secret }).call('system.ping');
  });

  test('counts as a use when the configuration with it comes in force, and the provider has a key', async () => {
    const server = await start();
    await set(server, 'SECOND_KEY');
    await stop(server);
    const next = await start({ config: apiKey('${SECOND_KEY}') });
    const { secrets } = await next.client.call('env.list', {});
    expect(secrets).toMatchObject([{ name: 'SECOND_KEY', usageCount: 1, lastUsedAt: clock.now(), usedBy: ['providers.second.apiKey'] }]);
    const { operations } = await next.client.call('agent.getOperationModels', {});
    expect(operations[0]).toMatchObject({ apiKeyConfigured: true });
    await stop(next);
    expect(await sql(homeDir, 'SELECT usage_count FROM secret')).toEqual([{ usage_count: 1 }]);
  });
});

describe('the limits', () => {
  test('five writes a minute over the installation, also after a restart and however the clock is set', async () => {
    const server = await start();
    for (let n = 0; n < 4; n += 1) await set(server, `KEY_${n}`);
    await server.client.call('env.remove', { key: 'KEY_0' });
    clock.advance(20_000);
    const refused = {
      code: 'rate_limited',
      message: expect.stringContaining('At most 5 secrets are set or removed per minute: try again in 40 seconds'),
    };
    await expect(set(server, 'KEY_5')).rejects.toMatchObject(refused);
    for (const stepMs of [3_600_000, -7_200_000]) {
      clock.step(stepMs);
      await expect(set(server, 'KEY_5')).rejects.toMatchObject(refused);
    }
    clock.step(3_600_000);
    await stop(server);
    const next = await start();
    await expect(set(next, 'KEY_5')).rejects.toMatchObject({ ...refused, retryAfterMs: 40_000 });
    clock.advance(40_000);
    await set(next, 'KEY_5');
    await stop(next);
    // Rows of a time that has not come yet block nobody.
    clock.step(-3_600_000);
    await set(await start(), 'KEY_6');
  });

  test('thirty lists a minute; a filter selects names, and a limit cuts', async () => {
    const server = await start();
    for (const key of ['OPENAI_API_KEY', 'OPENAI_ORG', 'MISTRAL_API_KEY', 'X_API_KEY_OLD']) await set(server, key);
    const list = async (params: { readonly filter?: string; readonly limit?: number }) => {
      const { secrets, total, truncated } = await server.client.call('env.list', params);
      return [secrets.map(({ name }) => name).join(' '), total, truncated];
    };
    expect(await list({ filter: 'openai*' })).toEqual(['OPENAI_API_KEY OPENAI_ORG', 2, false]);
    expect(await list({ filter: '*_API_*' })).toEqual(['MISTRAL_API_KEY OPENAI_API_KEY X_API_KEY_OLD', 3, false]);
    expect(await list({ filter: '*_api_key' })).toEqual(['MISTRAL_API_KEY OPENAI_API_KEY', 2, false]);
    expect(await list({ filter: 'openai_org' })).toEqual(['OPENAI_ORG', 1, false]);
    expect(await list({ filter: 'O*I*G' })).toEqual(['OPENAI_ORG', 1, false]);
    expect(await list({ filter: 'OPENAI_ORG*ORG' })).toEqual(['', 0, false]);
    expect(await list({ filter: '.' })).toEqual(['', 0, false]);
    expect(await list({ limit: 3 })).toEqual(['MISTRAL_API_KEY OPENAI_API_KEY OPENAI_ORG', 4, true]);
    await expect(server.client.call('env.list', { limit: 501 })).rejects.toMatchObject({ code: 'invalid_params' });
    for (let n = 8; n < 30; n += 1) await list({});
    await expect(list({})).rejects.toMatchObject({ code: 'rate_limited' });
    clock.advance(minuteMs);
    await list({});
  });
});

describe('the sealed copy', () => {
  test('follows the rows after a crash between both, and the configuration with it', async () => {
    const server = await start();
    await set(server, 'HOST', '127.0.0.1');
    const before = readFileSync(copyFile());
    await set(server, 'HOST', 'localhost');
    await stop(server);
    writeFileSync(copyFile(), before);
    const next = await start({ config: { gateway: { host: '${HOST}' } } });
    // The start had the value of the copy; the row is the truth, and the key needs a restart.
    expect(await next.client.call('config.read', { section: 'gateway' })).toMatchObject({ config: { host: '127.0.0.1' } });
    expect(readFileSync(copyFile())).not.toEqual(before);
    await stop(next);
    expect(await (await start({ config: { gateway: { host: '${HOST}' } } })).client.call('config.read', { section: 'gateway' })).toMatchObject({
      config: { host: 'localhost' },
    });
  });

  test('that cannot be written fails no write, and is written as soon as it can be', async () => {
    const server = await start();
    mkdirSync(copyFile());
    await set(server, 'A_KEY');
    expect(await names(server)).toEqual(['A_KEY']);
    rmSync(copyFile(), { recursive: true });
    clock.advance(minuteMs);
    await expect.poll(() => existsSync(copyFile())).toBe(true);
    // A removal must not come back from the copy: it is refused while the copy cannot be written.
    rmSync(copyFile());
    mkdirSync(copyFile());
    await expect(server.client.call('env.remove', { key: 'A_KEY' })).rejects.toMatchObject({ code: 'internal' });
    expect(await names(server)).toEqual(['A_KEY']);
  });

  test.skipIf(onPostgres)('on SQLite brings back what was lost with the database, never what was removed', async () => {
    const server = await start();
    await set(server, 'LOST_KEY');
    await set(server, 'REMOVED_KEY');
    await server.client.call('env.remove', { key: 'REMOVED_KEY' });
    await stop(server);
    await sql(homeDir, 'DELETE FROM secret');
    const next = await start({ config: apiKey('${LOST_KEY}') });
    expect(await names(next)).toEqual(['LOST_KEY']);
    const stream = await fetch(`${next.url}/api/events`, { headers: { authorization: `Bearer ${next.token}`, 'last-event-id': '0' } });
    let heard = '';
    for await (const chunk of stream.body ?? []) {
      heard += Buffer.from(chunk).toString();
      if (heard.includes('"action":"imported"')) break;
    }
    expect(heard).toContain('"secretName":"LOST_KEY","action":"imported"');
    const { rows } = await next.client.call('obs.audit.query', { actionType: 'env.import' });
    expect(rows).toMatchObject([{ target: 'LOST_KEY', actor: 'system' }]);
  });
});

describe('a write', () => {
  test('of a token that is revoked meanwhile is stored whole or not at all', async () => {
    const held = Promise.withResolvers<void>();
    const server = await start({
      db: writesThrough(async (name, write) => {
        if (name === 'secrets.set') await held.promise;
        return write();
      }),
    });
    const admin = await server.as(['admin']);
    const writing = admin.call('env.set', { key: 'A_KEY', value }).then(
      () => 'stored',
      () => 'refused',
    );
    await server.client.call('tokens.revoke', { id: admin.tokenId });
    held.resolve();
    await writing;
    await expect.poll(async () => (await names(server)).length).toBe(1);
    const { rows } = await server.client.call('obs.audit.query', { actionType: 'env.set' });
    expect(rows).toMatchObject([{ target: 'A_KEY', actor: `token:${admin.tokenId}` }]);
    expect(JSON.parse(readFileSync(copyFile(), 'utf8')).secrets).toHaveProperty('A_KEY');
    await expect(admin.call('env.set', { key: 'B_KEY', value })).rejects.toMatchObject({ code: 'unauthenticated' });
  });

  test.each([
    ['secrets.set', 'before', 'old', ['KEPT_KEY']],
    ['secrets.set', 'after', 'new', ['KEPT_KEY']],
    // What is removed is not used.
    ['secrets.remove', 'before', 'none', ['KEPT_KEY']],
    ['secrets.remove', 'after', 'none', []],
  ] as const)(
    'that a kill cuts off, %s %s its rows are committed, leaves one state for rows, copy and configuration',
    async (name, when, used, expected) => {
      const copied = join(homeDir, '..', `killed-${name}-${when}-${process.pid}`);
      let kill = async () => {};
      const server = await start({
        db: writesThrough(async (written, write) => {
          if (written !== name) return write();
          if (when === 'before') await kill();
          const done = await write();
          if (when === 'after') await kill();
          return done;
        }),
      });
      await set(server, 'KEPT_KEY', 'old');
      kill = () => copyHome(homeDir, copied);
      try {
        await (name === 'secrets.set' ? set(server, 'KEPT_KEY', 'new') : server.client.call('env.remove', { key: 'KEPT_KEY' }));
        const named = { agents: { default: { model: 'mock/mock-fast', name: used === 'none' ? used : '${KEPT_KEY}' } } };
        const next = await start({ homeDir: copied, config: named });
        const listed = (await next.client.call('env.list', {})).secrets.map(({ name: key }) => key);
        const { config } = await next.client.call('config.read', { section: 'agents' });
        expect(listed).toEqual(expected);
        expect(config).toMatchObject({ default: { name: used } });
        expect(Object.keys(JSON.parse(readFileSync(join(copied, 'secrets.sealed'), 'utf8')).secrets)).toEqual(listed);
        await stop(next);
      } finally {
        await rm(copied, { recursive: true, force: true });
      }
    },
  );

  test('that the database refuses leaves neither value nor copy, and the next one works', async () => {
    let isFull = true;
    const server = await start({
      db: writesThrough(async (name, write) => {
        if (isFull && name.startsWith('secrets.')) throw Object.assign(new Error('no space left'), { code: 'ENOSPC' });
        return write();
      }),
    });
    await expect(set(server, 'A_KEY')).rejects.toMatchObject({ code: 'unavailable' });
    expect([await names(server), existsSync(copyFile())]).toEqual([[], false]);
    isFull = false;
    await set(server, 'A_KEY');
    isFull = true;
    await expect(server.client.call('env.remove', { key: 'A_KEY' })).rejects.toMatchObject({ code: 'unavailable' });
    expect(await names(server)).toEqual(['A_KEY']);
    expect(JSON.parse(readFileSync(copyFile(), 'utf8')).secrets).toHaveProperty('A_KEY');
  });

  test('of several at once of one name ends as one of them, and each counts', async () => {
    const server = await start();
    const all = await Promise.allSettled(Array.from({ length: 8 }, (_, n) => set(server, 'A_KEY', `${value}-${n}`)));
    expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(5);
    expect(await names(server)).toEqual(['A_KEY']);
  });
});
