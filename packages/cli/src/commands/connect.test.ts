import { lstat, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parse as parseToml } from 'smol-toml';
import { describe, expect, test } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { rpcAnswers, startServer, token } from '../testing/servers.ts';
import { createUser } from '../testing/test-io.ts';

const secret = 'gh_a-secret-that-is-shown-once-and-never-again';
const model = {
  modelId: 'test-model',
  displayName: 'test-model',
  baseUrl: 'http://127.0.0.1:8000/v1',
  contextWindow: 128_000,
  maxTokens: 8192,
  input: ['text', 'image'],
  reasoning: false,
  cost: null,
  validated: true,
};
const many = Array.from({ length: 60 }, (_, at) => ({ ...model, modelId: `m${at}` }));

async function open(
  known: readonly object[] = [],
  models: readonly object[] = [{ ...model, modelId: 'other' }, model],
  answers: Readonly<Record<string, unknown>> = {},
) {
  const agent = { agentId: 'default', config: { model: 'test-model' }, source: 'file', suspended: false, isDefault: true, workspaceDir: '/w' };
  const server = await startServer(
    rpcAnswers({
      'agents.list': { agents: ['default'] },
      'agents.get': agent,
      'models.list': { providers: [{ name: 'local', modelCount: models.length, models }], totalModels: models.length },
      'tokens.list': { tokens: known, total: known.length },
      'tokens.revoke': { id: 'x', revoked: true, message: 'Gone.' },
      'tokens.create': { id: 'x', secret, scopes: ['api'], createdAt: 1, message: 'Store it.' },
      ...answers,
    }),
  );
  const user = await createUser();
  return {
    url: server.url,
    dir: user.dir,
    /** Calls with side effects. */
    changes: () => server.requests.map(({ body }) => JSON.parse(body)).flatMap((c) => (/create|revoke/.test(c.method) ? [[c.method, c.params]] : [])),
    run: (...args: string[]) => user.run({ args: ['connect', ...args], env: { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: token } }),
    async put(name: string, text: string) {
      await mkdir(dirname(join(user.dir, name)), { recursive: true });
      await writeFile(join(user.dir, name), text);
    },
    read: (name: string) => readFile(join(user.dir, name), 'utf8'),
    async [Symbol.asyncDispose]() {
      await user[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

describe('the token', () => {
  test('has the fewest scopes, and the extended fields without the agent’s tools for clients with their own', async () => {
    await using session = await open();
    expect((await session.run('opencode', '--expires', '2h')).code).toBe(0);
    await session.run('codex', '--mcp', '--tools', 'agent', '--name', 'laptop');
    await session.run('openai');
    await session.run('pi', '--agent', 'default');
    const compat = { fields: 'extended', tools: 'none' };
    expect(session.changes().map(([, params]) => params)).toEqual([
      { id: 'opencode', scopes: ['api'], compat, expiresAt: 1_790_000_000_000 + 7_200_000 },
      { id: 'laptop', scopes: ['api', 'mcp-client'], compat: { fields: 'extended', tools: 'agent' } },
      { id: 'openai', scopes: ['api'], compat: { fields: 'extended' } },
      { id: 'pi', scopes: ['api'], compat, agents: ['default'] },
    ]);
  });

  test('is replaced when the command runs again, and the message says so', async () => {
    await using session = await open([{ id: 'pi', scopes: ['api'], source: 'created' }]);
    const { err } = await session.run('pi');
    expect(session.changes()).toMatchObject([['tokens.create', { id: 'pi', replace: true }]]);
    expect(err).toContain('its former secret no longer works');
  });

  test("stays valid when no new one can be created or a file can't be written, and the files stay unchanged", async () => {
    const refusal = { error: { code: -32602, message: 'expiresAt: expected a number of at most 9', data: { code: 'invalid_params' } } };
    await using session = await open([{ id: 'codex', scopes: ['api'], source: 'created' }], undefined, { 'tokens.create': refusal });
    await session.put('.codex/config.toml', '# mine\n');
    expect(await session.run('codex', '--write')).toMatchObject({ err: expect.stringContaining('expiresAt') });
    expect(session.changes().map(([method]) => method)).toEqual(['tokens.create']);
    expect(await readdir(join(session.dir, '.codex'))).toEqual(['config.toml']);
    await rm(join(session.dir, '.codex'), { recursive: true });
    await session.put('.codex', 'a file');
    const before = session.changes().length;
    expect(await session.run('codex', '--write')).toMatchObject({ code: 1, err: expect.stringMatching(/Cannot (?:read|write)/) });
    expect(session.changes()).toHaveLength(before);
  });

  test.each([
    { id: 'pi', scopes: ['api'], source: 'config' },
    { id: 'pi', scopes: ['*'], source: 'created' },
  ])('never replaces one that was created differently: $source $scopes', async (former) => {
    await using session = await open([former]);
    expect(await session.run('pi')).toMatchObject({ code: 2, err: expect.stringContaining('--name') });
    expect(session.changes()).toEqual([]);
  });
});

describe('what it prints', () => {
  test('the configuration, with the secret once, on standard output', async () => {
    await using session = await open();
    const { out, err } = await session.run('codex');
    expect(parseToml(out)).toMatchObject({ model: 'local/test-model', model_providers: { gatehouse: { base_url: `${session.url}/v1` } } });
    expect([out.split(secret).length, err.includes(secret)]).toEqual([2, false]);
    expect((await session.run('claude-code')).out).toContain(`export ANTHROPIC_AUTH_TOKEN='${secret}'\nexport ANTHROPIC_MODEL='local/test-model'`);
  });

  test('one JSON value', async () => {
    await using session = await open();
    const value = JSON.parse((await session.run('opencode', '--json', '--model', 'other')).out);
    expect(value).toMatchObject({ client: 'opencode', model: 'local/other', token: { id: 'x', secret }, replaced: false, written: [] });
    expect(JSON.parse(value.files[0].text).provider.gatehouse.models).toEqual({
      'local/other': { name: 'local/other', limit: { context: 128_000, output: 8192 } },
      'local/test-model': { name: 'local/test-model', limit: { context: 128_000, output: 8192 } },
      'agent/default': { name: 'agent/default' },
    });
  });

  test('truncates a long list of models and says so', async () => {
    await using session = await open([], [...many, model]);
    const { out, err } = await session.run('pi');
    expect([out.match(/"id"/g)?.length, err]).toEqual([40, expect.stringContaining('22 more models')]);
    expect(out).toContain('local/test-model');
  });

  test('with --dry-run nothing is created or written', async () => {
    await using session = await open();
    const { out, err } = await session.run('pi', '--write', '--dry-run');
    expect([session.changes(), await readdir(session.dir)]).toEqual([[], []]);
    expect([out.includes('<token>'), err]).toEqual([true, expect.stringContaining('Nothing was created')]);
  });

  test('the clients, with --list or without a name', async () => {
    await using session = await open();
    const listed = JSON.parse((await session.run('--list', '--json')).out);
    expect(listed.map(({ id }: { id: string }) => id)).toEqual(
      'codex opencode continue cline qwen-code pi claude-code openai openai-agents'.split(' '),
    );
    expect((await session.run()).out).toContain('/v1/messages');
  });
});

describe('--write', () => {
  test('merges TOML line by line, after a backup, readable by the owner only', async () => {
    await using session = await open();
    const before =
      '# mine\nmodel = "gpt-x"\n\n[tui] # keep\ntheme = "dark"\n\n[model_providers.gatehouse]\nbase_url = "http://old"\n\n[features]\nx = true\n';
    await session.put('.codex/config.toml', before);
    const { code, out, err } = await session.run('codex', '--write');
    expect([code, out]).toEqual([0, '']);
    const text = await session.read('.codex/config.toml');
    expect(text).toContain('# mine\n');
    expect(text).toContain('[tui] # keep');
    expect(parseToml(text)).toMatchObject({
      model: 'local/test-model',
      tui: { theme: 'dark' },
      features: { x: true },
      model_providers: { gatehouse: { base_url: `${session.url}/v1`, experimental_bearer_token: secret } },
    });
    const backup = '.codex/config.toml.2026-09-21T14-13-20-000Z.bak';
    expect([await session.read(backup), err.includes(backup)]).toEqual([before, true]);
    const modes = await Promise.all(['.codex/config.toml', backup].map(async (name) => (await stat(join(session.dir, name))).mode & 0o777));
    expect(modes).toEqual([0o600, 0o600]);
    await session.run('codex', '--write');
    expect(await session.read('.codex/config.toml')).toBe(text);
  });

  test('merges JSON and YAML, and replaces only its own entries', async () => {
    await using session = await open();
    await session.put('.config/opencode/opencode.json', JSON.stringify({ theme: 'x', provider: { mine: {}, gatehouse: { models: { old: {} } } } }));
    await session.run('opencode', '--write');
    const json = JSON.parse(await session.read('.config/opencode/opencode.json'));
    expect([json.theme, Object.keys(json.provider), Object.keys(json.provider.gatehouse.models)[0]]).toEqual([
      'x',
      ['mine', 'gatehouse'],
      'local/test-model',
    ]);
    await session.put('.continue/config.yaml', '# mine\nname: Ada\nmodels:\n  # kept\n  - name: local one\n    model: x\n  - name: gatehouse old\n');
    await session.run('continue', '--write');
    const yaml = await session.read('.continue/config.yaml');
    expect(parseYaml(yaml).models.map(({ name }: { name: string }) => name)).toEqual([
      'gatehouse local/test-model',
      'gatehouse local/other',
      'gatehouse agent/default',
      'local one',
    ]);
    expect([parseYaml(yaml).name, yaml.includes('# mine'), yaml.includes('# kept')]).toEqual(['Ada', true, true]);
  });

  test('removes the MCP server whose token is gone', async () => {
    await using session = await open();
    for (const client of ['codex', 'opencode']) await session.run(client, '--write', '--mcp');
    expect(await session.read('.codex/config.toml')).toContain(`Authorization = "Bearer ${secret}"`);
    expect(JSON.parse(await session.read('.config/opencode/opencode.json')).mcp.gatehouse.url).toBe(`${session.url}/mcp`);
    for (const client of ['codex', 'opencode']) expect((await session.run(client, '--write')).code).toBe(0);
    expect(parseToml(await session.read('.codex/config.toml'))).not.toHaveProperty('mcp_servers');
    expect(JSON.parse(await session.read('.config/opencode/opencode.json'))).not.toHaveProperty('mcp');
  });

  test('creates new files, and writes through links to their targets', async () => {
    await using session = await open();
    await session.put('dotfiles/settings.json', '{"theme":"dark"}');
    await mkdir(join(session.dir, '.pi/agent'), { recursive: true });
    await symlink(join(session.dir, 'dotfiles/settings.json'), join(session.dir, '.pi/agent/settings.json'));
    await session.run('pi', '--write');
    expect(JSON.parse(await session.read('dotfiles/settings.json'))).toEqual({
      theme: 'dark',
      defaultProvider: 'gatehouse',
      defaultModel: 'local/test-model',
    });
    expect(JSON.parse(await session.read('.pi/agent/models.json')).providers.gatehouse.apiKey).toBe(secret);
  });

  test('writes the target of a link, even if it does not exist yet', async () => {
    await using session = await open();
    await mkdir(join(session.dir, '.codex'), { recursive: true });
    await symlink('../dotfiles/codex.toml', join(session.dir, '.codex/config.toml'));
    expect((await session.run('codex', '--write')).code).toBe(0);
    expect((await lstat(join(session.dir, '.codex/config.toml'))).isSymbolicLink()).toBe(true);
    expect(parseToml(await session.read('dotfiles/codex.toml'))).toMatchObject({ model: 'local/test-model' });
  });

  test('keeps numbers as written', async () => {
    await using session = await open();
    await session.put('.config/opencode/opencode.json', '{"big":12345678901234567890,"exact":1.10,"deep":[{"e":1E400}]}');
    await session.run('opencode', '--write');
    const json = await session.read('.config/opencode/opencode.json');
    for (const written of ['"big": 12345678901234567890', '"exact": 1.10', '"e": 1E400']) expect(json).toContain(written);
    await session.put('.continue/config.yaml', 'big: 12345678901234567890\nmodels: []\n');
    await session.run('continue', '--write');
    expect(await session.read('.continue/config.yaml')).toContain('big: 12345678901234567890\n');
  });

  test.each([
    ['continue', '.continue/config.yaml', 'models:\n  - &old\n    name: gatehouse old\n  - *old\nother: *old\n', 'an alias (*name) in it'],
    ['opencode', '.config/opencode/opencode.json', '{"provider":12345678901234567890}', '`provider` is not a map'],
    ['opencode', '.config/opencode/opencode.json', '{ // mine\n}', 'not plain JSON'],
    ['opencode', '.config/opencode/opencode.json', '{"provider":[]}', '`provider` is not a map'],
    ['continue', '.continue/config.yaml', 'models: {}', '`models` is not a list'],
    ['codex', '.codex/config.toml', 'model = ', 'not valid TOML'],
    ['codex', '.codex/config.toml', 'model_providers = { mine = { name = "x" } }', 'cannot be edited safely'],
    ['codex', '.codex/config.toml', 'note = """\nmodel = "in a text"\n[x.gatehouse]\n"""', 'cannot be edited safely'],
  ])('refuses unmergeable files before creating a token: %s, %s: %s', async (client, file, text, reason) => {
    await using session = await open();
    await session.put(file, text);
    expect(await session.run(client, '--write')).toMatchObject({ code: 2, err: expect.stringContaining(reason) });
    expect([session.changes(), await session.read(file)]).toEqual([[], text]);
  });
});

test.each([
  [['codx'], 'Did you mean `codex`?'],
  [['claude-code', '--mcp'], '--mcp is not available'],
  [['openai', '--write'], 'no configuration file'],
  [['pi', '--model', 'nothing'], 'no model "nothing"'],
  [['pi', '--agent', 'nobody'], 'no agent "nobody"'],
  [['pi', '--agent', 'default', '--model', 'other'], 'mutually exclusive'],
  [['pi', '--expires', 'soon'], 'such as 90d'],
])('%j is refused, and nothing is created', async (args, reason) => {
  await using session = await open();
  expect(await session.run(...args)).toMatchObject({ code: 2, err: expect.stringContaining(reason) });
  expect(session.changes()).toEqual([]);
});
