import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@gatehouse/client';
import { sql, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';

const secretOf = (id: string) => `${id}-secret-0123456789-abcdefghijklmnop`;
const entry = (id: string, scopes: ('rpc' | 'admin' | '*')[] = ['rpc']) => ({ id, secret: secretOf(id), scopes });

let homeDir: string;
let servers: TestServer[] = [];
beforeEach(() => {
  homeDir = mkdtempSync(join(tmpdir(), 'gatehouse-tokens-'));
});
afterEach(async () => {
  for (const server of servers) await server[Symbol.asyncDispose]();
  servers = [];
  rmSync(homeDir, { recursive: true, force: true });
});

async function start(tokens = [entry('ops'), entry('ci')]): Promise<TestServer> {
  const server = await startTestServer({ homeDir, config: { gateway: { tokens } } });
  servers.push(server);
  return server;
}

async function restart(server: TestServer, tokens?: Parameters<typeof start>[0]): Promise<TestServer> {
  servers = servers.filter((other) => other !== server);
  await server[Symbol.asyncDispose]();
  return start(tokens);
}

const pings = ({ url }: TestServer, token: string) =>
  createClient({ url, token })
    .call('system.ping')
    .then(
      () => 'ok',
      ({ code }) => code,
    );
const idsIn = ({ configuration }: TestServer): string[] => parse(configuration.readText()).gateway.tokens.map(({ id }: { id: string }) => id);

describe('a token of config.yaml', () => {
  test('is revoked in the file, at once and with its socket; other tokens stay', async () => {
    const server = await start();
    const socket = server.socket(secretOf('ops'));
    await socket.call('system.ping', {});
    const patched = server.heard('config:patched');
    expect(await server.client.call('tokens.revoke', { id: 'ops' })).toMatchObject({ id: 'ops', revoked: true });
    expect([await pings(server, secretOf('ops')), await pings(server, secretOf('ci'))]).toEqual(['unauthenticated', 'ok']);
    await expect(socket.call('system.ping', {})).rejects.toThrow();
    socket.close();
    expect(idsIn(server)).toEqual(['root', 'ci']);
    expect(patched).toMatchObject([{ section: 'gateway', key: 'tokens', from: 'rpc', patchedBy: 'token:root' }]);
    const { rows } = await server.client.call('obs.audit.query', { actionType: 'tokens.revoke' });
    expect(rows).toMatchObject([{ target: 'ops', outcome: 'success' }]);
    await expect(server.client.call('tokens.revoke', { id: 'ops' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(server.client.call('tokens.rotate', { id: 'ops' })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('that was revoked stays so when a rollback or a person brings its entry back; the same id with another secret is a new one', async () => {
    const server = await start();
    await server.client.call('config.set', { path: 'logging.level', value: 'warn' });
    const { digest } = await server.client.call('config.read', {});
    await server.client.call('tokens.revoke', { id: 'ops' });
    await server.client.call('config.rollback', { sha: digest, confirm: true });
    expect(idsIn(server)).toEqual(['root', 'ops', 'ci']);
    expect(await pings(server, secretOf('ops'))).toBe('unauthenticated');
    const again = await restart(server);
    expect([await pings(again, secretOf('ops')), await pings(again, secretOf('ci'))]).toEqual(['unauthenticated', 'ok']);
    expect((await again.client.call('tokens.list', {})).tokens.map(({ id }) => id)).toEqual(['ci', 'root']);
    await again.client.call('config.set', { path: 'gateway.tokens[1].secret', value: secretOf('new'), confirm: true });
    expect(await pings(again, secretOf('new'))).toBe('ok');
  });

  test('stops with its running turn when it is revoked, and continues when it is rotated', async () => {
    const server = await start();
    const turnOf = async (token: string) => {
      const before = server.provider.requests.length;
      server.provider.queue({ text: 'Slow.', delayMs: 400 });
      const turn = createClient({ url: server.url, token, retry: { retries: 0 } })
        .call('agent.execute', { message: 'Hello' })
        .then(
          ({ finishReason }) => finishReason,
          ({ code }) => code,
        );
      await vi.waitUntil(() => server.provider.requests.length > before, { timeout: 15_000, interval: 5 });
      return { turn };
    };
    const { turn: kept } = await turnOf(secretOf('ci'));
    await server.client.call('tokens.rotate', { id: 'ci' });
    expect(await kept).toBe('stop');
    const { turn: stopped } = await turnOf(secretOf('ops'));
    await server.client.call('tokens.revoke', { id: 'ops' });
    expect(await stopped).not.toBe('stop');
  });

  test('is rotated in the file when its secret is written there, and nothing of it is shown', async () => {
    const server = await start();
    const rotated = await server.client.call('tokens.rotate', { id: 'ops' });
    expect(rotated).toMatchObject({ id: 'ops', scopes: ['rpc'], rotated: true });
    expect([await pings(server, secretOf('ops')), await pings(server, rotated.secret)]).toEqual(['unauthenticated', 'ok']);
    expect(parse(server.configuration.readText()).gateway.tokens[1]).toEqual({ ...entry('ops'), secret: rotated.secret });
    await expect(server.client.call('tokens.rotate', { id: 'ops' })).rejects.toMatchObject({ code: 'conflict' });
    const { entries } = await server.client.call('config.history', { limit: 1 });
    expect(entries).toMatchObject([{ message: 'gateway.tokens: tokens.rotate ops' }]);
    const shown = JSON.stringify([entries, await server.client.call('config.diff', {}), await server.client.call('config.read', {})]);
    expect(shown).not.toContain(rotated.secret.slice(0, 12));
  });

  test('cannot be changed while the file cannot be used: it stays as it is', async () => {
    const server = await start();
    const { file } = server.configuration;
    const text = readFileSync(file, 'utf8');
    writeFileSync(file, text.replace('"gateway"', '"gatway"'));
    for (const method of ['tokens.revoke', 'tokens.rotate'] as const)
      await expect(server.client.call(method, { id: 'ops' })).rejects.toMatchObject({ code: 'precondition_failed' });
    expect(await pings(server, secretOf('ops'))).toBe('ok');
    writeFileSync(file, text);
    expect(await server.client.call('tokens.revoke', { id: 'ops' })).toMatchObject({ revoked: true });
  });

  test('is revoked once, while other callers change the configuration', async () => {
    const server = await start([entry('ops'), entry('ci', ['admin'])]);
    const ci = createClient({ url: server.url, token: secretOf('ci'), retry: { retries: 0 } });
    const results = await Promise.allSettled([
      ci.call('config.set', { path: 'logging.level', value: 'debug' }),
      ci.call('config.set', { path: 'logging.modules.turns', value: 'warn' }),
      server.client.call('tokens.revoke', { id: 'ci' }),
      server.client.call('tokens.revoke', { id: 'ops' }),
      server.client.call('tokens.revoke', { id: 'ops' }),
      server.client.call('agents.update', { agentId: 'default', config: { maxSteps: 9 } }),
    ]);
    expect(results.slice(2).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
    // A change of the revoked token is there as a whole, with its version, or not at all.
    const { logging, gateway, agents } = parse(server.configuration.readText());
    expect(gateway.tokens.map(({ id }: { id: string }) => id)).toEqual(['root']);
    expect(agents.default.maxSteps).toBe(9);
    const { entries } = await server.client.call('config.history', {});
    const changes = entries.map(({ message }) => message);
    expect(changes.includes('logging.level: changed')).toBe(logging?.level === 'debug');
    expect(changes.includes('logging.modules.turns: changed')).toBe(logging?.modules?.turns === 'warn');
    await expect(ci.call('config.set', { path: 'logging.level', value: 'error' })).rejects.toMatchObject({ code: 'unauthenticated' });
  });
});

describe('the token of the first start', () => {
  const first = secretOf('first');
  const file = () => join(homeDir, 'token');
  const read = () => readFileSync(file(), 'utf8');
  beforeEach(() => writeFileSync(file(), `${first}\n`, { mode: 0o600 }));

  test('is rotated: the file has the new secret, and a copy of the old file opens nothing', async () => {
    const server = await start();
    const { secret } = await server.client.call('tokens.rotate', { id: 'owner' });
    expect([read(), statSync(file()).mode & 0o777]).toEqual([`${secret}\n`, 0o600]);
    expect([await pings(server, first), await pings(server, secret)]).toEqual(['unauthenticated', 'ok']);
    const again = await restart(server);
    expect([await pings(again, first), await pings(again, secret)]).toEqual(['unauthenticated', 'ok']);
    // As in the home of a standby, which has a copy of the file.
    writeFileSync(file(), `${first}\n`, { mode: 0o600 });
    const standby = await restart(again);
    expect([await pings(standby, first), await pings(standby, secret)]).toEqual(['unauthenticated', 'ok']);
    expect(JSON.stringify(await sql(homeDir, 'SELECT * FROM token'))).not.toContain(secret.slice(3, 20));
  });

  test('is revoked for good: the file is empty, and neither it nor a copy opens anything', async () => {
    const server = await start();
    const { secret } = await server.client.call('tokens.rotate', { id: 'owner' });
    await server.client.call('tokens.revoke', { id: 'owner' });
    expect([await pings(server, secret), read()]).toEqual(['unauthenticated', '']);
    for (const copy of ['', first, secret]) {
      writeFileSync(file(), copy, { mode: 0o600 });
      const again = await restart(servers[0] ?? server);
      expect([await pings(again, first), await pings(again, secret)]).toEqual(['unauthenticated', 'unauthenticated']);
      expect((await again.client.call('tokens.list', {})).tokens.map(({ id }) => id)).toEqual(['ci', 'ops', 'root']);
    }
  });

  test('opens nothing any more when a token of its id replaces it after a rotation', async () => {
    const server = await start();
    const { secret } = await server.client.call('tokens.rotate', { id: 'owner' });
    const replaced = await server.client.call('tokens.create', { id: 'owner', scopes: ['rpc'], replace: true });
    const again = await restart(server);
    expect([await pings(again, first), await pings(again, secret), await pings(again, replaced.secret)]).toEqual([
      'unauthenticated',
      'unauthenticated',
      'ok',
    ]);
  });

  test('does not come up instead of a revoked token of config.yaml with the same secret', async () => {
    const server = await start([{ id: 'same', secret: first, scopes: ['rpc'] }, entry('ops')]);
    await server.client.call('tokens.revoke', { id: 'same' });
    expect([await pings(server, first), read()]).toEqual(['unauthenticated', '']);
    expect(await server.client.call('tokens.create', { id: 'owner', scopes: ['rpc'] })).toMatchObject({ id: 'owner' });
  });
});
