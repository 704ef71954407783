import { readFile, rename, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import * as z from 'zod';

let server: TestServer;
let file: string;
let base: string;
let call: TestServer['client']['call'];
beforeAll(async () => {
  server = await startTestServer();
  ({ call } = server.client);
  file = join(server.homeDir, 'config.yaml');
  // As a person writes it.
  base = (await readFile(file, 'utf8')).replace(/}\s*$/, '') + ',\n# how much to log\n"logging": {"level": "info", "modules": {}} # kept\n}\n';
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(() => edit(base));

/** Edits the file by hand, as editors do: nothing reads a part of it. */
async function edit(next: string): Promise<void> {
  await writeFile(`${file}.draft`, next);
  await rename(`${file}.draft`, file);
}

const text = () => readFile(file, 'utf8');

/** Calls a method over the socket of the home folder, as its owner. */
async function asOwner(method: string, params: object): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const answer = await new Promise<string>((resolve, reject) => {
    const sent = request(
      {
        socketPath: join(server.homeDir, 'gatehouse.sock'),
        method: 'POST',
        path: '/rpc',
        headers: { host: 'localhost', 'content-type': 'application/json' },
      },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
        incoming.on('end', () => resolve(Buffer.concat(chunks).toString()));
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
  return z.object({ result: z.unknown() }).parse(JSON.parse(answer)).result;
}

describe('config.read and config.schema', () => {
  test('return sections without a secret', async () => {
    const read = await call('config.read', {});
    expect(read.sections).toContain('gateway');
    expect(read.config).toMatchObject({ gateway: { tokens: [{ id: 'root', secret: '[REDACTED]' }] }, providers: { mock: { apiKey: '[REDACTED]' } } });
    expect(await call('config.read', { section: 'embedding' })).toMatchObject({ section: 'embedding', config: null, restartNeeded: [] });
    expect(JSON.stringify(read)).not.toContain(server.token);
  });

  test('also return what the file says: no defaults, references as written, no secret', async () => {
    await edit(base.replace('"level": "info"', '"level": "${LEVEL:-info}"'));
    const { written } = await call('config.read', { section: 'logging', written: true });
    expect(written).toEqual({ level: '${LEVEL:-info}', modules: {} });
    await edit(base.replace('"apiKey": "mock-key"', '"apiKey": "Bearer ${MOCK_KEY}"'));
    const whole = await call('config.read', { written: true });
    expect(whole.written).toMatchObject({ gateway: { tokens: [{ secret: '[REDACTED]' }] }, providers: { mock: { apiKey: 'Bearer ${MOCK_KEY}' } } });
    expect(whole.written).not.toHaveProperty('routing');
    expect(JSON.stringify(whole)).not.toContain(server.token);
    await edit(base.replace('"mock-key"', '"mock-${KEY}-key"'));
    expect((await call('config.read', { section: 'providers', written: true })).written).toMatchObject({ mock: { apiKey: '[REDACTED]' } });
    await edit('{');
    expect(await call('config.read', { written: true })).not.toHaveProperty('written');
    expect(await call('config.read', {})).not.toHaveProperty('written');
  });

  test.each(['gatway', '__proto__', 'constructor', 'toString'])('name the valid sections instead of %s', async (section) => {
    for (const name of ['config.read', 'config.schema'] as const)
      await expect(call(name, { section })).rejects.toMatchObject({
        code: 'not_found',
        message: expect.stringContaining(`Unknown config section: "${section}". Valid sections: gateway, providers`),
      });
    await expect(call('config.set', { section, key: 'a', value: 1 })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('describe what may be written: keys with a default are optional', async () => {
    const { schema } = await call('config.schema', {});
    expect(schema).toMatchObject({
      type: 'object',
      additionalProperties: false,
      properties: { gateway: { properties: { port: { default: 4766 } } } },
    });
    expect(schema).not.toHaveProperty('required');
    expect(await call('config.schema', { section: 'embedding' })).toMatchObject({
      section: 'embedding',
      schema: { type: 'object', required: ['provider'] },
    });
  });
});

describe('config.get', () => {
  test('is raw for the owner on the socket of the home folder, with an audit row, and redacted for everybody else', async () => {
    const audited = server.heard('audit:event');
    const overNetwork = await call('config.get', { section: 'providers' });
    expect(overNetwork).toMatchObject({ providers: { mock: { apiKey: '[REDACTED]' } } });
    await expect(call('config.get', { text: true })).rejects.toMatchObject({ code: 'denied' });
    expect(audited).toEqual([]);
    expect(await asOwner('config.get', { section: 'providers', text: true })).toMatchObject({
      providers: { mock: { apiKey: 'mock-key' } },
      text: base,
      digest: (await call('config.read', {})).digest,
    });
    expect(audited.map(({ actionType, target }) => [actionType, target])).toEqual([['config.get', 'providers']]);
  });

  test('returns a summary without a section, and for one that does not exist', async () => {
    const summary = { logLevel: 'info', gateway: { enabled: true, host: '127.0.0.1', port: 0 } };
    expect(await call('config.get', {})).toEqual(summary);
    expect(await call('config.get', { section: 'nothing' })).toEqual(summary);
  });
});

describe('config.set, config.patch and config.apply', () => {
  test('change the file in place, and leave a version, an audit row and an event', async () => {
    const [audited, patched] = [server.heard('audit:event'), server.heard('config:patched')];
    const done = await call('config.set', { section: 'logging', key: 'level', value: 'debug' });
    expect(done).toMatchObject({ ok: true, previous: 'info', restarting: false, changed: expect.arrayContaining(['logging.level']) });
    expect(await text()).toBe(base.replace('"level": "info"', '"level": debug'));
    expect(audited).toMatchObject([{ actionType: 'config.set', target: 'logging.level', outcome: 'success' }]);
    expect(patched).toMatchObject([{ section: 'logging', key: 'level', from: 'rpc', patchedBy: 'token:root', version: done.version }]);
    const { entries } = await call('config.history', { limit: 1 });
    expect(entries).toMatchObject([
      {
        sha: done.digest,
        version: done.version,
        from: 'rpc',
        metadata: { section: 'logging', key: 'level', user: 'token:root' },
        message: 'logging.level: changed',
      },
    ]);
    expect((await call('config.read', {})).digest).toBe(done.digest);
  });

  test('merge objects, and remove what is null', async () => {
    await call('config.patch', { section: 'logging', value: { modules: { turns: 'debug', models: 'warn' } } });
    const done = await call('config.patch', { section: 'logging', value: { level: 'warn', modules: { turns: null } } });
    expect(done).toMatchObject({ patched: true, section: 'logging', value: { level: 'warn', modules: { models: 'warn' } } });
    expect(await call('config.set', { path: 'logging.modules', value: null })).toMatchObject({ ok: true, previous: { models: 'warn' } });
    expect(await text()).toBe(base.replace('"level": "info", "modules": {}', '"level": warn'));
  });

  test('several changes are one version, all or none', async () => {
    const changes = [
      { path: 'logging.level', value: 'warn' },
      { path: 'logging.modules["a.b"]', value: 'debug' },
      { path: 'gateway.tokens[0].expiresAt', value: null },
      { path: 'webhooks.enabled', value: 'false' },
    ];
    const { digest, version } = await call('config.set', { path: 'logging.modules.turns', value: 'debug' });
    await expect(call('config.patch', { changes: [...changes, { path: 'logging.level', value: 'loud' }] })).rejects.toMatchObject({
      code: 'invalid_params',
      issues: [{ path: 'logging.level' }],
    });
    await expect(call('config.patch', { changes: [...changes, { path: 'gatway.port', value: 1 }] })).rejects.toMatchObject({ code: 'not_found' });
    await expect(call('config.patch', { changes: [{ path: 'providers.mock.apiKey', value: '[REDACTED]' }] })).rejects.toMatchObject({
      message: expect.stringContaining('redaction marker'),
    });
    await expect(call('config.patch', { changes, path: 'logging.level' })).rejects.toMatchObject({
      message: 'Expected either changes, or one change',
    });
    expect((await call('config.read', {})).digest).toBe(digest);
    const done = await call('config.patch', { changes, ifDigest: digest });
    expect(done).toMatchObject({ patched: true, version: version + 1, changed: ['logging.level', 'logging.modules["a.b"]', 'webhooks.enabled'] });
    expect(parse(await text())).toMatchObject({
      logging: { level: 'warn', modules: { turns: 'debug', 'a.b': 'debug' } },
      webhooks: { enabled: false },
    });
    expect(await text()).toContain('# how much to log');
    expect((await call('config.history', { limit: 1 })).entries[0]?.message).toBe(
      'changed logging.level, logging.modules["a.b"], gateway.tokens[0].expiresAt, webhooks.enabled',
    );
    await expect(call('config.patch', { changes, ifDigest: digest })).rejects.toMatchObject({ code: 'conflict' });
  });

  test('a section is replaced, and what stays keeps its place', async () => {
    const done = await call('config.apply', { section: 'logging', value: { level: 'error' } });
    expect(done).toMatchObject({ applied: true, section: 'logging' });
    expect(await text()).toBe(base.replace('"level": "info", "modules": {}', '"level": error'));
    expect(await call('config.apply', { section: 'logging', value: { level: 'error' } })).toMatchObject({ changed: [], version: done.version });
  });

  test('texts become what the schema has', async () => {
    await call('config.set', { section: 'gateway', key: 'rateLimit.maxRequests', value: '2000000' });
    await call('config.set', { section: 'gateway', key: 'allowedHosts', value: '["a.example"]' });
    await call('config.set', { section: 'webhooks', key: 'enabled', value: 'false' });
    expect(parse(await text())).toMatchObject({
      gateway: { rateLimit: { maxRequests: 2000000 }, allowedHosts: ['a.example'] },
      webhooks: { enabled: false },
    });
  });

  test.each([
    [
      'an unknown key',
      { section: 'gateway', key: 'prot', value: 1 },
      { code: 'invalid_params', message: expect.stringMatching(/gateway.prot: .*did you mean "port"/) },
    ],
    [
      'a wrong value',
      { path: 'gateway.rateLimit.maxRequests', value: 'many' },
      { code: 'invalid_params', issues: [expect.objectContaining({ path: 'gateway.rateLimit.maxRequests' })] },
    ],
    [
      'a model that no provider has',
      { path: 'models.default', value: 'nobody/nothing' },
      { code: 'invalid_params', message: expect.stringContaining('models.default') },
    ],
    [
      'an embedder that does not exist',
      { section: 'embedding', value: { provider: 'nobody', model: 'm' } },
      { code: 'invalid_params', issues: [expect.objectContaining({ path: 'embedding.provider' })] },
    ],
    [
      'a hidden secret',
      { section: 'providers', value: { mock: { apiKey: '[REDACTED]' } }, confirm: true },
      { code: 'invalid_params', message: expect.stringContaining('providers.mock.apiKey') },
    ],
    ['a part of a hidden secret', { path: 'providers.mock.baseUrl', value: 'http://[REDACTED]@h/', confirm: true }, { code: 'invalid_params' }],
    ['a path that is none', { path: 'gateway..port', value: 1 }, { code: 'invalid_params' }],
    ['a section and a path', { section: 'gateway', path: 'gateway.port', value: 1 }, { code: 'invalid_params' }],
    ['nothing', { section: 'gateway', key: 'port' }, { code: 'invalid_params' }],
    ['a path through a value', { path: 'logging.level.a', value: 1 }, { code: 'invalid_params' }],
    [
      'another digest',
      { path: 'logging.level', value: 'warn', ifDigest: '0'.repeat(64) },
      { code: 'conflict', message: expect.stringMatching(/[0-9a-f]{64}/) },
    ],
    [
      'a protected key',
      { path: 'agents.default.name', value: 'Gate' },
      { code: 'precondition_failed', message: expect.stringContaining('agents.default.name') },
    ],
  ] as const)('%s is refused, and nothing changes', async (_name, params, refusal) => {
    const before = (await call('config.history', { limit: 1 })).entries[0]?.version ?? 0;
    for (const method of ['config.set', 'config.patch'] as const)
      await expect(call(method, { ...params, value: 'value' in params ? params.value : undefined })).rejects.toMatchObject(refusal);
    expect(await text()).toBe(base);
    // The file of this test was an edit by hand at most.
    expect((await call('config.history', { limit: 1 })).entries[0]?.version).toBeLessThanOrEqual(before + 1);
  });

  test('protected keys need an owner who confirms', async () => {
    const admin = await server.as(['admin']);
    const change = { path: 'agents.default.name', value: 'Gate' };
    await expect(admin.call('config.set', { ...change, confirm: true })).rejects.toMatchObject({
      code: 'denied',
      message: expect.stringContaining('only an owner'),
    });
    for (const [path, value] of Object.entries({
      'exec.enabled': false,
      'gateway.trustedProxies': ['10.0.0.0/8'],
      'secrets.readOnly': true,
      'storage.minFreeBytes': 0,
    }))
      await expect(admin.call('config.set', { path, value, confirm: true }), path).rejects.toMatchObject({ code: 'denied' });
    await expect(admin.call('config.rollback', { sha: '0000000' })).rejects.toMatchObject({ code: 'not_found' });
    expect(await admin.call('config.set', { path: 'agents.default.maxSteps', value: 9 })).toMatchObject({ ok: true });
    expect(await call('config.set', { ...change, confirm: true })).toMatchObject({ ok: true });
    const rpc = await server.as(['rpc']);
    await expect(rpc.call('config.set', change)).rejects.toMatchObject({ code: 'insufficient_scope' });
  });

  test('a dry run shows the difference without secrets, and changes nothing', async () => {
    const done = await call('config.set', { path: 'providers.mock.apiKey', value: 'sk-another-secret', confirm: true, dryRun: true });
    expect(done.protected).toEqual(['providers']);
    expect(done).toMatchObject({ dryRun: true, previous: '[REDACTED]', changed: expect.arrayContaining(['providers.mock.apiKey']) });
    expect(done.diff).toMatch(/^--- config.yaml\n\+\+\+ config.yaml \(changed\)\n@@ [^]*\n-.*"apiKey": \[REDACTED\][^]*\n\+.*"apiKey": \[REDACTED\]/);
    expect(done.diff).not.toMatch(/mock-key|sk-another/);
    expect(await text()).toBe(base);
    expect((await call('config.apply', { section: 'logging', value: {}, dryRun: true })).applied).toBe(false);
  });

  test('an edit by hand is kept as a version, and one that cannot be used stops changes until it is replaced', async () => {
    await edit(base.replace('"info"', '"warn"'));
    await call('config.set', { path: 'logging.modules.turns', value: 'debug' });
    expect((await call('config.history', { limit: 2 })).entries).toMatchObject([
      { from: 'rpc' },
      { from: 'file', metadata: { user: 'owner', summary: expect.stringContaining('edited by hand: ') } },
    ]);
    const versions = async () => (await call('config.history', { limit: 1 })).entries.map(({ from, metadata }) => [from, metadata.summary]);
    await edit(base.replace('"info"', '"error"'));
    // The file is watched.
    await expect.poll(versions).toEqual([['file', 'edited by hand: logging']]);
    expect((await call('config.read', { section: 'logging' })).config).toMatchObject({ level: 'error' });
    await edit('gatway: { port: 1 }');
    await expect(call('config.set', { path: 'logging.level', value: 'warn' })).rejects.toMatchObject({
      code: 'precondition_failed',
      message: expect.stringMatching(/config.yaml:1:1: gatway: .*did you mean "gateway"/),
    });
    expect(await call('config.apply', { text: base, confirm: true })).toMatchObject({ applied: true });
    expect(await text()).toBe(base);
  });
});

describe('config.history, config.diff, config.rollback and config.gc', () => {
  test('a rollback restores the bytes as a new version', async () => {
    const first = await call('config.set', { path: 'logging.level', value: 'debug' });
    const written = await text();
    await call('config.set', { path: 'logging.level', value: 'warn' });
    const back = await call('config.rollback', { sha: first.digest.slice(0, 12) });
    expect(back).toMatchObject({ rolledBack: true, sha: first.digest, newCommitSha: first.digest, version: first.version + 2 });
    expect(await text()).toBe(written);
    expect(await call('config.rollback', { sha: first.digest })).toMatchObject({ newCommitSha: '', version: first.version + 2 });
    expect((await call('config.history', { limit: 3 })).entries.map(({ from }) => from)).toEqual(['rollback', 'rpc', 'rpc']);
    await expect(call('config.rollback', { sha: 'abcdef0' })).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringContaining('Invalid SHA'),
    });
  });

  test('a diff is of the last change, or from a version', async () => {
    const first = await call('config.set', { path: 'logging.level', value: 'debug' });
    const second = await call('config.set', { path: 'logging.level', value: 'warn' });
    expect((await call('config.diff', {})).diff).toMatch(new RegExp(`^--- version ${first.version}\n\\+\\+\\+ version ${second.version}\n`));
    await edit((await text()).replace('# kept', '# edited'));
    const { diff } = await call('config.diff', { sha: first.digest });
    expect(diff).toContain('-"logging": {"level": debug, "modules": {}} # kept\n+"logging": {"level": warn, "modules": {}} # edited\n');
    expect((await call('config.diff', {})).diff).toContain('# edited');
    const between = await call('config.diff', { sha: first.digest, to: second.digest });
    expect(between.diff).toContain(`+++ version ${second.version}\n`);
    expect(between.diff).not.toContain('# edited');
    await expect(call('config.diff', { to: second.digest })).rejects.toMatchObject({ code: 'invalid_params' });
    expect(diff).not.toContain(server.token);
  });

  test('old versions are deleted, the newest one stays', async () => {
    const last = await call('config.set', { path: 'logging.level', value: 'debug' });
    expect(await call('config.gc', { olderThan: '2000-01-01T00:00:00Z' })).toMatchObject({ squashed: 0 });
    const cleared = await call('config.gc', {});
    expect(cleared).toMatchObject({ gc: true, newRootSha: last.digest });
    expect(cleared.squashed).toBeGreaterThan(0);
    expect((await call('config.history', {})).entries).toMatchObject([{ sha: last.digest, version: last.version }]);
    expect((await call('config.diff', {})).diff).toBe('');
    expect(await call('config.set', { path: 'logging.level', value: 'info' })).toMatchObject({ version: last.version + 1 });
  });
});
