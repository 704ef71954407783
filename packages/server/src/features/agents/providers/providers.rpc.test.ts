import { createStepClock, type FakeAnswer, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const clock = createStepClock();
const variables = { ENV_KEY: 'sk-of-the-environment' };
let server: TestServer;

beforeEach(async () => {
  server = await startTestServer({
    clock,
    env: variables,
    config: {
      providers: {
        vendor: { type: 'openai', baseUrl: 'http://127.0.0.1:9/v1', apiKey: '${ENV_KEY}' },
        open: { type: 'openai-compatible', baseUrl: 'http://user:page-password@127.0.0.1:9/v1', models: [{ id: 'plain' }] },
      },
    },
  });
});
afterEach(() => server[Symbol.asyncDispose]());

const testMock = (model?: string) => server.client.call('providers.test', { provider: 'mock', ...(model !== undefined && { model }) });
const stateOfMock = async () => (await server.client.call('providers.list', {})).providers.find(({ provider }) => provider === 'mock');

test('lists providers with models, prices and where the key comes from, never the key', async () => {
  await server.client.call('env.set', { key: 'STORED_KEY', value: 'sk-of-the-store' });
  await server.client.call('config.patch', { path: 'providers.stored', value: { type: 'openai', apiKey: '${STORED_KEY}' }, confirm: true });
  const { providers } = await server.client.call('providers.list', {});
  expect(providers).toMatchObject([
    {
      provider: 'mock',
      type: 'openai-compatible',
      source: 'config',
      state: 'ok',
      keys: [{ id: 'apiKey', from: 'file', state: 'ok' }],
      models: [
        { modelId: 'mock-fast', source: 'config', cost: { input: 1, output: 2 }, costSource: 'config' },
        { modelId: 'mock-other', costSource: 'config' },
      ],
    },
    {
      provider: 'vendor',
      keys: [{ from: 'environment', name: 'ENV_KEY' }],
      models: expect.arrayContaining([
        expect.objectContaining({
          modelId: 'gpt-5-mini',
          source: 'built_in',
          costSource: 'built_in',
          costAsOf: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
          costUrl: expect.stringContaining('openai.com'),
        }),
      ]),
    },
    { provider: 'open', keys: [], models: [{ modelId: 'plain', cost: null, costSource: null }] },
    { provider: 'stored', keys: [{ from: 'store', name: 'STORED_KEY' }] },
  ]);
  expect(JSON.stringify(providers)).not.toMatch(/sk-of|mock-key/);
});

test('a test is one short call, charged to the default agent, and ends a pause', async () => {
  server.provider.queue({ status: 401, error: { message: 'Incorrect API key provided' } });
  expect(await server.client.call('agent.execute', { message: 'Go' })).toMatchObject({ failure: { kind: 'auth' } });
  expect(await stateOfMock()).toMatchObject({ state: 'refused', keys: [{ state: 'refused', untilMs: expect.any(Number) }] });
  const before = server.provider.requests.length;
  expect(await testMock()).toEqual({
    provider: 'mock',
    verdict: 'ok',
    message: expect.stringMatching(/^The provider answered in \d+ ms$/),
    key: 'apiKey',
    model: 'mock-fast',
    latencyMs: 0,
    models: ['mock-fast', 'mock-p10'],
  });
  const asked = server.provider.requests.slice(before).filter(({ method }) => method === 'POST');
  expect(asked).toMatchObject([{ body: { model: 'mock-fast', max_tokens: 16 } }]);
  expect(await stateOfMock()).toMatchObject({ state: 'ok' });
  const { rows } = await server.client.call('usage.report', { groupBy: ['agent'] });
  expect(rows).toMatchObject([{ keys: ['default'], calls: 2 }]);
});

test.for<[string, FakeAnswer, RegExp]>([
  ['key_refused', { status: 401, error: { message: 'Incorrect API key provided: mock-key' } }, /Incorrect API key/],
  ['key_refused', { status: 403, error: { message: 'Project has no access' } }, /no access/],
  ['no_credit', { status: 429, error: { message: 'You exceeded your quota', code: 'insufficient_quota' } }, /quota/],
  ['no_credit', { status: 402, error: { message: 'Add more credits' } }, /credits/],
  ['rate_limited', { status: 429, headers: { 'retry-after': '20' }, error: { message: 'Slow down' } }, /Slow down/],
  ['model_unknown', { status: 404, error: { message: 'The model `gone` does not exist', code: 'model_not_found' } }, /does not exist/],
  ['model_unknown', { status: 400, error: { message: 'Model Not Exist' } }, /Not Exist/],
  ['failed', { status: 500, error: { message: 'Broken' } }, /Broken/],
  ['failed', { body: '<html>', contentType: 'text/html' }, /JSON/],
])('says %s with the sentence of the provider, and pauses nothing', async ([verdict, answer, sentence]) => {
  server.provider.queue(answer);
  const tested = await testMock('gone');
  expect(tested).toMatchObject({ verdict, cause: expect.stringMatching(sentence), nextStep: expect.any(String), model: 'gone' });
  expect(JSON.stringify(tested)).not.toContain('mock-key');
  expect(await stateOfMock()).toMatchObject({ state: 'ok' });
});

test('says that a provider is slow or cannot be reached', async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  server.provider.setAnswer(() => {
    clock.advance(12_000);
    release();
    return { text: 'OK', after: released };
  });
  expect(await testMock()).toMatchObject({ verdict: 'slow', latencyMs: 12_000, message: expect.stringContaining('12.0 s') });
  expect(await server.client.call('providers.test', { provider: 'vendor' })).toMatchObject({
    verdict: 'unreachable',
    model: 'gpt-5-mini',
    cause: expect.stringContaining('ECONNREFUSED'),
    models: [],
  });
  const open = await server.client.call('providers.test', { provider: 'open' });
  expect(JSON.stringify(open)).not.toContain('page-password');
  await expect(server.client.call('providers.test', { provider: 'absent' })).rejects.toMatchObject({ code: 'not_found' });
});

test('a candidate is tested with its own key alone, and not stored', async () => {
  const { url } = server.provider;
  const before = server.configuration.readText();
  server.provider.setAnswer(({ headers }) =>
    headers.authorization === 'Bearer sk-candidate'
      ? undefined
      : { status: 401, error: { message: `Incorrect API key provided: ${headers.authorization}` } },
  );
  const candidate = { type: 'openai-compatible' as const, baseUrl: url };
  expect(await server.client.call('providers.test', { candidate: { ...candidate, key: 'sk-candidate' } })).toMatchObject({
    provider: 'openai-compatible',
    verdict: 'ok',
    model: 'mock-fast',
    models: ['mock-fast', 'mock-p10'],
  });
  const refused = await server.client.call('providers.test', { candidate: { ...candidate, key: 'sk-mistyped-key' } });
  expect(refused).toMatchObject({ verdict: 'key_refused' });
  expect(JSON.stringify(refused)).not.toContain('sk-mistyped-key');
  expect(await server.client.call('providers.test', { candidate })).toMatchObject({ verdict: 'key_refused' });
  expect(server.provider.requests.some(({ headers }) => headers.authorization === 'Bearer mock-key')).toBe(false);
  expect(server.configuration.readText()).toBe(before);
});

test('only owners choose an address, and a test needs a provider', async () => {
  const admin = await server.as(['admin']);
  const before = server.provider.served();
  const candidate = { type: 'openai-compatible' as const, baseUrl: server.provider.url };
  await expect(admin.call('providers.test', { candidate })).rejects.toMatchObject({ code: 'denied' });
  expect(server.provider.served()).toBe(before);
  expect(await admin.call('providers.test', { provider: 'mock' })).toMatchObject({ verdict: 'ok' });
  await expect(server.client.call('providers.test', {})).rejects.toMatchObject({ code: 'invalid_params' });
  await expect(server.client.call('providers.test', { provider: 'mock', candidate })).rejects.toMatchObject({ code: 'invalid_params' });
  await expect(server.client.call('providers.test', { candidate: { type: 'azure' } })).rejects.toMatchObject({ code: 'invalid_params' });
});

test('a test stays within the budgets', async () => {
  await server.client.call('config.patch', { path: 'budgets.perDayUsd', value: 0.00001, confirm: true });
  const before = server.provider.requests.filter(({ method }) => method === 'POST').length;
  await expect(testMock()).rejects.toMatchObject({ code: 'rate_limited' });
  expect(server.provider.requests.filter(({ method }) => method === 'POST')).toHaveLength(before);
});

test('a provider that is set answers at once with its stored key, and its address can change alone', async () => {
  server.provider.setAnswer(({ headers }) => (headers.authorization === 'Bearer sk-new-secret' ? { text: 'Hello' } : { status: 401 }));
  const { url } = server.provider;
  const set = await server.client.call('providers.set', {
    id: 'my-box',
    type: 'openai-compatible',
    baseUrl: url,
    key: 'sk-new-secret',
    models: [{ id: 'mock-fast', cost: { input: 1, output: 2 } }],
  });
  expect(set).toMatchObject({ provider: 'my-box', key: 'MY_BOX_API_KEY', changed: ['providers.my-box'] });
  expect(await server.client.call('providers.test', { provider: 'my-box' })).toMatchObject({ verdict: 'ok' });
  const listed = async () => (await server.client.call('providers.list', {})).providers.find(({ provider }) => provider === 'my-box');
  expect(await listed()).toMatchObject({ keys: [{ from: 'store', name: 'MY_BOX_API_KEY' }], models: [{ modelId: 'mock-fast' }] });
  expect(server.configuration.readText()).not.toContain('sk-new-secret');
  expect((await server.client.call('config.history', { limit: 1 })).entries).toMatchObject([{ metadata: { section: 'providers', key: 'my-box' } }]);
  const other = url.replace('127.0.0.1', 'localhost');
  expect(await server.client.call('providers.set', { id: 'my-box', type: 'openai-compatible', baseUrl: other })).toMatchObject({
    changed: ['providers.my-box.baseUrl'],
  });
  expect(await listed()).toMatchObject({ baseUrl: other, keys: [{ name: 'MY_BOX_API_KEY' }], models: [{ modelId: 'mock-fast' }] });
});

test('an id that the configuration refuses is refused before its key is stored', async () => {
  const provider = { id: 'my.box', type: 'openai-compatible' as const, baseUrl: server.provider.url, key: 'sk-of-the-box' };
  await expect(server.client.call('providers.set', provider)).rejects.toMatchObject({
    code: 'invalid_params',
    message: expect.stringMatching(/^id: /),
  });
  expect((await server.client.call('env.list', {})).secrets).toEqual([]);
});

test('what cannot be set leaves the configuration as it was', async () => {
  const before = server.configuration.readText();
  await expect(server.client.call('providers.set', { id: 'azure', type: 'azure', key: 'sk-new-secret' })).rejects.toMatchObject({
    code: 'invalid_params',
    message: expect.stringContaining('providers.azure.baseUrl'),
  });
  await expect(server.client.call('providers.set', { id: 'Bad Id', type: 'openai' })).rejects.toMatchObject({ code: 'invalid_params' });
  const admin = await server.as(['admin']);
  await expect(admin.call('providers.set', { id: 'mine', type: 'openai', key: 'sk-new-secret' })).rejects.toMatchObject({ code: 'denied' });
  await expect(admin.call('providers.remove', { provider: 'open' })).rejects.toMatchObject({ code: 'denied' });
  expect(server.configuration.readText()).toBe(before);
  expect((await server.client.call('env.list', {})).secrets.map(({ name }) => name)).toEqual(['AZURE_API_KEY']);
});

test('a key never replaces a variable of the environment, or a secret that other keys use', async () => {
  expect(await server.client.call('providers.set', { id: 'vendor', type: 'openai', key: 'sk-own-secret' })).toMatchObject({ key: 'VENDOR_API_KEY' });
  await server.client.call('config.patch', { path: 'providers.open.apiKey', value: '${VENDOR_API_KEY}', confirm: true });
  await expect(server.client.call('providers.set', { id: 'vendor', type: 'openai', key: 'sk-other' })).rejects.toMatchObject({
    code: 'precondition_failed',
    message: expect.stringContaining('VENDOR_API_KEY'),
  });
});

test('a provider is removed unless something uses it, which is named', async () => {
  await expect(server.client.call('providers.remove', { provider: 'mock' })).rejects.toMatchObject({
    code: 'precondition_failed',
    message: expect.stringContaining('agents.default.model'),
  });
  await server.client.call('config.patch', { path: 'models.default', value: 'plain', confirm: true });
  await expect(server.client.call('providers.remove', { provider: 'open' })).rejects.toMatchObject({
    message: expect.stringContaining('models.default'),
  });
  expect(await server.client.call('providers.remove', { provider: 'vendor' })).toMatchObject({ removed: true });
  expect((await server.client.call('providers.list', {})).providers.map(({ provider }) => provider)).toEqual(['mock', 'open']);
  await expect(server.client.call('providers.remove', { provider: 'vendor' })).rejects.toMatchObject({ code: 'not_found' });
});

describe('several keys', () => {
  const box = async () => (await server.client.call('providers.list', {})).providers.find(({ provider }) => provider === 'box');
  const set = (more: object) => server.client.call('providers.set', { id: 'box', type: 'openai-compatible', ...more });
  const secrets = async () => (await server.client.call('env.list', {})).secrets.map(({ name }) => name);
  beforeEach(async () => {
    await set({ baseUrl: server.provider.url, key: 'sk-first-key', addKeys: ['sk-second-key', 'sk-third-key'], models: [{ id: 'mock-fast' }] });
  });

  test('are all kept when several are added at once', async () => {
    await Promise.all(['sk-a', 'sk-b'].map((key) => set({ addKeys: [`${key}-of-the-parallel-calls`] })));
    expect((await box())?.keys.map(({ name }) => name)).toEqual(['BOX_API_KEY', 'BOX_2_API_KEY', 'BOX_3_API_KEY', 'BOX_4_API_KEY', 'BOX_5_API_KEY']);
  });

  test('are stored each under its own name, and removed by id or name', async () => {
    expect((await box())?.keys).toMatchObject([
      { id: 'apiKey', from: 'store', name: 'BOX_API_KEY', state: 'ok' },
      { id: 'apiKeys[0]', from: 'store', name: 'BOX_2_API_KEY' },
      { id: 'apiKeys[1]', from: 'store', name: 'BOX_3_API_KEY' },
    ]);
    expect(await set({ addKeys: ['sk-fourth-key'], removeKeys: ['BOX_2_API_KEY', 'apiKey'] })).toMatchObject({
      addedKeys: ['BOX_4_API_KEY'],
      changed: ['providers.box.apiKey', 'providers.box.apiKeys'],
    });
    expect((await box())?.keys.map(({ id, name }) => [id, name])).toEqual([
      ['apiKeys[0]', 'BOX_3_API_KEY'],
      ['apiKeys[1]', 'BOX_4_API_KEY'],
    ]);
    await expect(set({ removeKeys: ['BOX_API_KEY'] })).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringContaining('BOX_3_API_KEY'),
    });
    expect(await secrets()).toEqual(['BOX_2_API_KEY', 'BOX_3_API_KEY', 'BOX_4_API_KEY', 'BOX_API_KEY']);
    expect(await set({ removeKeys: ['apiKeys[0]', 'apiKeys[1]'] })).toMatchObject({ changed: ['providers.box.apiKeys'] });
    expect((await box())?.keys).toEqual([]);
    expect(server.configuration.readText()).not.toMatch(/sk-|apiKeys/);
  });

  test('have a state each, can be retried and tested alone, and none of them is shown', async () => {
    const refusing = new Set(['sk-first-key', 'sk-third-key']);
    server.provider.setAnswer(({ headers }) => {
      const key = String(headers.authorization).replace('Bearer ', '');
      return refusing.has(key) ? { status: 401, error: { message: `Incorrect API key provided: ${key}` } } : { text: 'Hello' };
    });
    await server.client.call('config.patch', { path: 'agents.default.model', value: 'box/mock-fast' });
    expect(await server.client.call('agent.execute', { message: 'Go' })).toMatchObject({ response: 'Hello' });
    expect(await box()).toMatchObject({
      state: 'ok',
      keys: [{ state: 'refused', cause: expect.stringContaining('Incorrect') }, { state: 'ok' }, { state: 'ok' }],
    });
    expect(await server.client.call('providers.test', { provider: 'box' })).toMatchObject({ verdict: 'ok', key: 'apiKeys[0]' });
    expect(await server.client.call('providers.test', { provider: 'box', key: 'BOX_3_API_KEY' })).toMatchObject({
      verdict: 'key_refused',
      key: 'apiKeys[1]',
    });
    refusing.add('sk-second-key');
    expect(await server.client.call('agent.execute', { message: 'Go' })).toMatchObject({ failure: { kind: 'auth' } });
    const refused = await box();
    expect(refused).toMatchObject({ state: 'refused', keys: [{ state: 'refused' }, { state: 'refused' }, { state: 'refused' }] });
    expect(JSON.stringify(refused)).not.toMatch(/sk-\w+-key/);
    expect(await server.client.call('providers.retry', { provider: 'box', key: 'apiKeys[1]' })).toMatchObject({ state: 'ok' });
    expect(await box()).toMatchObject({ keys: [{ state: 'refused' }, { state: 'refused' }, { state: 'ok' }] });
    const retried = server.client.call('providers.retry', { provider: 'box', key: 'apiKeys[7]' });
    await expect(retried).rejects.toMatchObject({ code: 'not_found', message: expect.stringContaining('BOX_2_API_KEY') });
    await expect(server.client.call('providers.test', { candidate: { type: 'openai' }, key: 'apiKey' })).rejects.toMatchObject({
      code: 'invalid_params',
    });
  });
});

test('a provider that was found by a key of the environment keeps its key and address when it is set', async () => {
  await using found = await startTestServer({
    clock,
    env: { OPENAI_API_KEY: 'sk-of-the-vendor', OPENAI_BASE_URL: 'http://127.0.0.1:9/proxy' },
  });
  const openai = async () => (await found.client.call('providers.list', {})).providers.find(({ provider }) => provider === 'openai');
  expect(await openai()).toMatchObject({ source: 'environment', keys: [{ id: 'apiKey', from: 'environment', name: 'OPENAI_API_KEY' }] });
  await found.client.call('providers.set', { id: 'openai', type: 'openai', addKeys: ['sk-further-key'] });
  expect(await openai()).toMatchObject({
    source: 'config',
    baseUrl: 'http://127.0.0.1:9/proxy',
    keys: [
      { from: 'environment', name: 'OPENAI_API_KEY' },
      { from: 'store', name: 'OPENAI_2_API_KEY' },
    ],
  });
});

test('models are requested from a provider, and own prices are set and removed without naming its models', async () => {
  const { url } = server.provider;
  const set = (more: object) => server.client.call('providers.set', { id: 'vendor', type: 'openai', ...more });
  await set({ baseUrl: url, prices: { 'mock-fast': { input: 3, output: 4 }, 'gpt-5-mini': { input: 1, output: 1 } } });
  expect(await server.client.call('providers.refresh', { provider: 'vendor' })).toEqual({ provider: 'vendor', models: ['mock-fast', 'mock-p10'] });
  const listed = async (id: string) => {
    const { providers } = await server.client.call('providers.list', {});
    return providers.find(({ provider }) => provider === 'vendor')?.models.find(({ modelId }) => modelId === id);
  };
  expect(await listed('mock-fast')).toMatchObject({ source: 'listed', cost: { input: 3, output: 4 }, costSource: 'config' });
  expect(await listed('mock-p10')).toMatchObject({ source: 'listed', costSource: 'local' });
  expect(await listed('gpt-5-mini')).toMatchObject({ cost: { input: 1 }, costSource: 'config' });
  await set({ prices: { 'gpt-5-mini': null } });
  expect(await listed('gpt-5-mini')).toMatchObject({ cost: { input: 0.25 }, costSource: 'built_in' });
  await expect(server.client.call('providers.refresh', { provider: 'absent' })).rejects.toMatchObject({ code: 'not_found' });
  expect(await server.client.call('providers.refresh', { provider: 'open' })).toMatchObject({
    models: [],
    cause: expect.stringContaining('ECONNREFUSED'),
  });
});

test('a provider is not removed while webhooks, jobs or graphs name a model of it', async () => {
  const remove = () => server.client.call('providers.remove', { provider: 'open' });
  const refusal = (text: string) => ({ code: 'precondition_failed', message: expect.stringContaining(text) });
  const change = (path: string, value: unknown) => server.client.call('config.patch', { path, value, confirm: true });
  const mapping = { id: 'build', match: { path: 'build' }, action: 'agent', model: 'plain', messageTemplate: 'Built', allowUnauthenticated: true };
  await change('webhooks.mappings', [mapping]);
  await expect(remove()).rejects.toMatchObject(refusal('webhooks.mappings[build].model'));
  await change('webhooks.mappings', []);
  await change('gateway.compat.models', { 'gpt-*': 'open/plain' });
  await expect(remove()).rejects.toMatchObject(refusal('gateway.compat.models.gpt-*'));
  await change('gateway.compat.models', { 'gpt-*': null });
  const payload = { kind: 'agent_turn' as const, message: 'Look at "model":"mock/mock-fast"', model: 'open/plain' };
  const schedule = { kind: 'every' as const, everyMs: 86_400_000 };
  await server.client.call('cron.add', { name: 'nightly', schedule, payload });
  await expect(remove()).rejects.toMatchObject(refusal('the job "nightly" of default'));
  await server.client.call('cron.remove', { jobName: 'nightly' });
  const saved = await server.client.call('graph.save', { nodes: [{ node_id: 'facts', task: 'Collect facts.', model: 'plain' }], label: 'Research' });
  await expect(remove()).rejects.toMatchObject(refusal('the saved graph "Research"'));
  await server.client.call('graph.delete', { id: saved.id });
  expect(await remove()).toMatchObject({ removed: true });
});

test('models are requested in the background: after the start, after a change, and where there was no answer, hourly', async () => {
  const asked: string[] = [];
  let lists = false;
  await using listing = await startTestServer({
    clock,
    env: { OPENAI_API_KEY: 'sk-of-the-vendor', OPENAI_BASE_URL: 'http://127.0.0.1:9/proxy' },
    async probe(url) {
      asked.push(url);
      if (!lists) throw new Error('status 500');
      return { data: [{ id: 'listed' }] };
    },
  });
  const names = async () => {
    const { providers } = await listing.client.call('providers.list', {});
    return providers.find(({ provider }) => provider === 'openai')?.models.map(({ modelId }) => modelId);
  };
  expect(asked).toEqual([]);
  clock.advance(3_000);
  await expect.poll(() => asked).toEqual(['http://127.0.0.1:9/proxy/models']);
  lists = true;
  clock.advance(3_600_000);
  await expect.poll(names).toContain('listed');
  clock.advance(3_600_000);
  await listing.client.call('config.patch', { path: 'providers.other', value: { type: 'groq', apiKey: 'k' }, confirm: true });
  clock.advance(0);
  await expect.poll(() => asked.slice(2)).toEqual(['https://api.groq.com/openai/v1/models']);
  await listing.client.call('config.patch', { path: 'models.fetch', value: false, confirm: true });
  clock.advance(86_400_000);
  expect(await names()).toContain('listed');
  expect(asked).toHaveLength(3);
});
