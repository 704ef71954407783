import { readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';

let server: TestServer;
let call: TestServer['client']['call'];
let file: string;
let base: string;
beforeAll(async () => {
  server = await startTestServer({
    env: { SCOUT_MODEL: 'mock/mock-other' },
    config: { agents: { default: { model: 'mock/mock-fast' }, gone: { name: 'Gone' } } },
  });
  ({ call } = server.client);
  ({ file } = server.configuration);
  const { agents: _, ...others } = JSON.parse(readFileSync(file, 'utf8'));
  // As a person writes it.
  base = `${JSON.stringify(others, null, 2).replace(/\n}$/, '')},
# who works here
"agents": {
  "default": {"model": "mock/mock-fast"}, # the usual one
  "scout": {
    "model": "\${SCOUT_MODEL}", # from the environment
    "maxSteps": 7 # enough
  },
  "gone": {"name": "Gone"}
}
}
`;
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(() => edit(base));

/** Edits the file by hand; what is in force is what it says when this returns. */
async function edit(text: string): Promise<void> {
  write(text);
  await server.configuration.reload('test');
}

function write(text: string): void {
  writeFileSync(`${file}.draft`, text);
  renameSync(`${file}.draft`, file);
}

const text = () => readFileSync(file, 'utf8');
const entries = (): Record<string, unknown> => parse(text()).agents;
const newest = async () => (await call('config.history', { limit: 1 })).entries[0];

describe('agents.create, agents.update and agents.delete', () => {
  test('change the entry in config.yaml in place, with a version, and keep comments and references', async () => {
    const { config } = await call('agents.get', { agentId: 'scout' });
    expect(config.model).toBe('mock/mock-other');
    const patched = server.heard('config:patched');
    // As an editor sends it that shows the whole configuration.
    await call('agents.update', { agentId: 'scout', config: { ...config, maxSteps: 9, instructions: 'Say ${HOME}, not $${HOME}.' } });
    const [, kept] = base.split('"maxSteps": 7');
    expect(text()).toContain('"model": "${SCOUT_MODEL}", # from the environment\n    "maxSteps": 9');
    expect(text().endsWith(kept?.slice(kept.indexOf('"gone"')) ?? 'nothing')).toBe(true);
    expect(text()).toContain('# enough');
    expect((await call('agents.get', { agentId: 'scout' })).config).toMatchObject({ maxSteps: 9, instructions: 'Say ${HOME}, not $${HOME}.' });
    expect(patched).toMatchObject([{ section: 'agents', key: 'scout', from: 'agents', patchedBy: 'token:root' }]);
    expect(await newest()).toMatchObject({ from: 'agents', message: 'agents.scout: changed', version: patched[0]?.version });

    await call('agents.update', { agentId: 'scout', config: { model: 'mock/mock-fast', maxSteps: null, instructions: null } });
    expect(entries()['scout']).toMatchObject({ model: 'mock/mock-fast' });
    expect(entries()['scout']).not.toHaveProperty('maxSteps');
  });

  test('write of a new agent what differs from the defaults, and delete an agent of the file', async () => {
    await call('agents.create', { agentId: 'fresh', config: { name: 'Fresh', maxSteps: 150, tools: { deny: ['write'] } } });
    expect(entries()['fresh']).toEqual({ name: 'Fresh', tools: { deny: ['write'] } });
    await call('agents.delete', { agentId: 'fresh' });
    await call('agents.suspend', { agentId: 'gone' });
    await call('agents.delete', { agentId: 'gone' });
    expect(text()).toBe(base.replace(',\n  "gone": {"name": "Gone"}', ''));
    await expect(call('agents.get', { agentId: 'gone' })).rejects.toMatchObject({ code: 'not_found' });
    await call('agents.create', { agentId: 'gone' });
    expect(await call('agents.get', { agentId: 'gone' })).toMatchObject({ suspended: false, source: 'file', config: { name: 'Gate' } });
  });

  test('agents.get says where each value comes from', async () => {
    await call('agents.update', { agentId: 'scout', config: { heartbeat: { intervalMs: 60_000 } } });
    const { origins, source } = await call('agents.get', { agentId: 'scout' });
    expect(source).toBe('file');
    expect(origins).toMatchObject({
      model: 'reference',
      maxSteps: 'file',
      name: 'default',
      'tools.profile': 'default',
      'heartbeat.intervalMs': 'file',
      'heartbeat.prompt': 'installation',
      'autonomy.profile': 'installation',
    });
    await edit(base.replace(/"default": .*\n/, ''));
    expect(await call('agents.get', { agentId: 'default' })).toMatchObject({ source: 'default', origins: { model: 'installation' } });
    await call('agents.update', { agentId: 'default', config: { model: 'mock/mock-fast' } });
    expect(await call('agents.get', { agentId: 'default' })).toMatchObject({ source: 'file', origins: { model: 'file' } });
  });

  test('a patch that changes nothing makes no version', async () => {
    const before = (await newest())?.version ?? 0;
    await call('agents.update', { agentId: 'scout', config: { maxSteps: 7, model: 'mock/mock-other', temperature: null } });
    expect(text()).toBe(base);
    expect((await newest())?.version).toBeLessThanOrEqual(before + 1);
  });

  test('go through together with other writers: everything is in force, and the history has no gap', async () => {
    const from = (await call('config.set', { path: 'logging.level', value: 'warn' })).version;
    const scout = { agentId: 'scout' };
    await Promise.all([
      call('agents.update', { ...scout, config: { temperature: 0.5 } }),
      call('agents.update', { ...scout, config: { maxTokens: 99 } }),
      call('config.set', { path: 'agents.scout.maxSteps', value: 12 }),
      call('agents.suspend', scout),
      call('agents.create', { agentId: 'twin' }),
      call('heartbeat.update', { ...scout, intervalMs: 60_000 }),
    ]);
    expect(await call('agents.get', scout)).toMatchObject({
      suspended: true,
      config: { temperature: 0.5, maxTokens: 99, maxSteps: 12, model: 'mock/mock-other', heartbeat: { intervalMs: 60_000 } },
    });
    const { entries: versions } = await call('config.history', { limit: 5 });
    expect(versions.map(({ version }) => version)).toEqual([5, 4, 3, 2, 1].map((step) => from + step));
    await call('agents.resume', scout);
  });

  test('a running turn keeps what it began with, the next one has the change', async () => {
    server.provider.queue({ text: 'slow', delayMs: 300 });
    const before = server.provider.requests.length;
    const running = call('agent.execute', { agentId: 'scout', message: 'one' });
    await vi.waitUntil(() => server.provider.requests.length > before, { timeout: 15_000, interval: 5 });
    await call('agents.update', { agentId: 'scout', config: { model: 'mock/mock-fast' } });
    expect((await running).response).toBe('slow');
    await call('agent.execute', { agentId: 'scout', message: 'two' });
    expect(server.provider.requests.slice(before).map(({ body }) => body)).toMatchObject([{ model: 'mock-other' }, { model: 'mock-fast' }]);
  });

  test('keep an edit by hand that was not in force yet; one that cannot be used stops them, and not a suspension', async () => {
    write(base.replace('"maxSteps": 7', '"maxSteps": 8'));
    await call('agents.update', { agentId: 'scout', config: { temperature: 1 } });
    expect((await call('agents.get', { agentId: 'scout' })).config).toMatchObject({ maxSteps: 8, temperature: 1 });
    const broken = base.replace('"maxSteps"', '"maxStep"');
    write(broken);
    const refusal = { code: 'precondition_failed', message: expect.stringMatching(/config\.yaml cannot be used as it is now.*maxStep.*"maxSteps"/s) };
    await expect(call('agents.update', { agentId: 'scout', config: { temperature: 0 } })).rejects.toMatchObject(refusal);
    await expect(call('agents.create', { agentId: 'fresh' })).rejects.toMatchObject(refusal);
    await expect(call('agents.delete', { agentId: 'gone' })).rejects.toMatchObject(refusal);
    expect(text()).toBe(broken);
    expect((await call('agents.get', { agentId: 'scout' })).config).toMatchObject({ maxSteps: 8, temperature: 1 });
    await call('agents.suspend', { agentId: 'scout' });
    await call('agents.resume', { agentId: 'scout' });
  });

  test('a rollback takes an agent away and brings it back', async () => {
    const { digest: without } = await call('config.set', { path: 'logging.level', value: 'error' });
    await call('agents.create', { agentId: 'brief', config: { name: 'Brief' } });
    const { digest: withIt } = await call('config.read', {});
    const events = [server.heard('agent:hot_added'), server.heard('agent:hot_removed')];
    await call('config.rollback', { sha: without, confirm: true });
    await expect(call('agent.execute', { agentId: 'brief', message: 'hello' })).rejects.toMatchObject({ code: 'not_found' });
    await call('config.rollback', { sha: withIt, confirm: true });
    expect((await call('agents.get', { agentId: 'brief' })).config.name).toBe('Brief');
    expect(events.map((heard) => heard.map(({ agentId }) => agentId))).toEqual([['brief'], ['brief']]);
  });

  test('a dry run validates the whole and writes nothing', async () => {
    await call('agents.update', { agentId: 'scout', config: { maxSteps: 3 }, dryRun: true });
    await expect(call('agents.update', { agentId: 'scout', config: { maxSteps: 0 }, dryRun: true })).rejects.toMatchObject({
      code: 'invalid_params',
    });
    expect(text()).toBe(base);
  });
});

describe('a file that cannot be written', () => {
  test('is named, and nothing changes', async () => {
    // Its folder takes no second name as long as this: no draft can be written next to it, also not by root.
    const long = join(server.homeDir, `${'x'.repeat(250)}.yml`);
    writeFileSync(long, base);
    symlinkSync(long, `${file}.draft`);
    renameSync(`${file}.draft`, file);
    const refusal = { code: 'unavailable', message: expect.stringContaining('config.yaml cannot be written') };
    await expect(call('agents.update', { agentId: 'scout', config: { maxSteps: 3 } })).rejects.toMatchObject(refusal);
    await expect(call('agents.create', { agentId: 'fresh' })).rejects.toMatchObject(refusal);
    expect(text()).toBe(base);
    expect((await call('agents.list', {})).agents).toEqual(['default', 'gone', 'scout']);
    expect((await call('agents.get', { agentId: 'scout' })).config.maxSteps).toBe(7);
  });
});

describe('what an earlier version stored in the database', () => {
  const config = { agents: { default: { model: 'mock/mock-fast' }, filed: { name: 'Filed', maxSteps: 7, temperature: 1 } } };
  const insert = (homeDir: string, id: string, source: string, stored: object, suspended = 0) =>
    sql(homeDir, 'INSERT INTO agent VALUES (?, ?, ?, ?, 0, 0)', id, source, JSON.stringify(stored), suspended);
  const rows = (homeDir: string) => sql(homeDir, "SELECT id FROM agent WHERE config_json <> '{}' OR source <> 'file'");
  const again = async (homeDir: string, work: (server: TestServer) => Promise<void>) => {
    await using next = await startTestServer({ homeDir });
    await work(next);
  };

  test('moves into config.yaml once, at the first start; a start that was cut off in between moves it again', async () => {
    await using first = await startTestServer({ config });
    await first.server[Symbol.asyncDispose]();
    const { homeDir } = first;
    const filed = { temperature: null, maxSteps: 3, instructions: 'Say ${X}.' };
    await insert(homeDir, 'filed', 'file', filed, 1);
    await insert(homeDir, 'made', 'stored', { name: 'Made', tools: { deny: ['write'] } });
    await insert(homeDir, 'left', 'file', { name: 'Left' });
    const check = async ({ client, configuration }: TestServer) => {
      expect(await client.call('agents.get', { agentId: 'filed' })).toMatchObject({
        source: 'file',
        suspended: true,
        config: { name: 'Filed', maxSteps: 3, instructions: 'Say ${X}.' },
      });
      expect(await client.call('agents.get', { agentId: 'made' })).toMatchObject({ source: 'file', config: { tools: { deny: ['write'] } } });
      expect(parse(configuration.readText()).agents).toEqual({
        default: { model: 'mock/mock-fast' },
        filed: { name: 'Filed', maxSteps: 3, instructions: 'Say $${X}.' },
        made: { name: 'Made', tools: { deny: ['write'] } },
      });
      // There is nothing in the file that it could belong to.
      expect(await rows(homeDir)).toEqual([{ id: 'left' }]);
    };
    await again(homeDir, async (next) => {
      await check(next);
      const { entries: versions } = await next.client.call('config.history', {});
      expect(versions.filter(({ from }) => from === 'agents').map(({ message }) => message)).toEqual([
        'agents.made: moved from the database into config.yaml',
        'agents.filed: moved from the database into config.yaml',
      ]);
    });
    await sql(homeDir, "UPDATE agent SET config_json = ? WHERE id = 'filed'", JSON.stringify(filed));
    await again(homeDir, async (next) => {
      await check(next);
      const versions = (await next.client.call('config.history', {})).entries.length;
      await next.client.call('agents.create', { agentId: 'left' });
      expect((await next.client.call('agents.get', { agentId: 'left' })).config.name).toBe('Gate');
      expect((await next.client.call('config.history', {})).entries.length).toBe(versions + 1);
      expect(await rows(homeDir)).toEqual([]);
    });
  });

  test('is skipped where it is not valid: the agent runs without it and can be changed', async () => {
    await using first = await startTestServer({ config });
    await first.server[Symbol.asyncDispose]();
    await insert(first.homeDir, 'filed', 'file', { maxSteps: 'many', name: 'Bad' });
    await insert(first.homeDir, 'made', 'stored', { colour: 'red' });
    await again(first.homeDir, async ({ client }) => {
      expect((await client.call('agents.list', {})).agents).toEqual(['default', 'filed']);
      expect((await client.call('agents.get', { agentId: 'filed' })).config).toMatchObject({ name: 'Filed', maxSteps: 7 });
      expect(await client.call('agents.update', { agentId: 'filed', config: { maxSteps: 8 } })).toMatchObject({ updated: true });
    });
  });

  test('stays in force while the file cannot be written', async () => {
    await using first = await startTestServer({ config });
    await first.server[Symbol.asyncDispose]();
    const { homeDir } = first;
    await insert(homeDir, 'filed', 'file', { maxSteps: 3 });
    await insert(homeDir, 'made', 'stored', { name: 'Made' });
    const long = join(homeDir, `${'x'.repeat(250)}.yml`);
    renameSync(join(homeDir, 'config.yaml'), long);
    symlinkSync(long, join(homeDir, 'config.yaml'));
    await again(homeDir, async ({ client }) => {
      expect((await client.call('agents.get', { agentId: 'filed' })).config.maxSteps).toBe(3);
      expect(await client.call('agents.get', { agentId: 'made' })).toMatchObject({ source: 'stored', config: { name: 'Made' } });
      for (const [method, params] of [
        ['agents.update', { agentId: 'made', config: { name: 'Other' } }],
        ['agents.delete', { agentId: 'made' }],
      ] as const)
        await expect(client.call(method, params)).rejects.toMatchObject({ code: 'unavailable' });
    });
    renameSync(long, join(homeDir, 'config.yaml'));
    await again(homeDir, async ({ client }) => {
      expect(await client.call('agents.get', { agentId: 'made' })).toMatchObject({ source: 'file', config: { name: 'Made' } });
      await client.call('agents.delete', { agentId: 'made' });
      expect((await client.call('agents.list', {})).agents).toEqual(['default', 'filed']);
    });
  });
});
