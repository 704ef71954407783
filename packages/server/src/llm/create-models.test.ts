import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { EventKind, EventPayload } from '@gatehouse/contract';
import { createStepClock, type FakeAnswer, type FakeProvider, startFakeProvider } from '@gatehouse/testkit';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type BusEvent, createEventBus } from '../kernel/event-bus.ts';
import { type Log, silentLog } from '../kernel/log.ts';
import { ModelsConfig, ProvidersConfig } from './config.ts';
import { createModels, type CreateModelsOptions } from './create-models.ts';
import { type Probe, probeHttp } from './discover.ts';
import { ModelError, type ModelInfo } from './model.ts';
import type { Attempt, Models } from './models.ts';
import { offlineText } from './offline/offline.ts';
import { collectingSink } from './testing.ts';

const clock = createStepClock();
let heard: BusEvent[] = [];
const bus = createEventBus(() => undefined);
bus.listen('all', (event) => heard.push(event));
const opened: AsyncDisposable[] = [];

beforeEach(() => {
  heard = [];
});
afterEach(async () => {
  for (const one of opened.splice(0)) await one[Symbol.asyncDispose]();
});

async function build(providers: Record<string, unknown>, more: { config?: object } & Partial<CreateModelsOptions> = {}) {
  const { config, ...options } = more;
  const models = await createModels({
    providers: ProvidersConfig.parse(providers),
    modelsConfig: ModelsConfig.parse(config ?? {}),
    env: {},
    probe: undefined,
    bus,
    clock,
    log: silentLog,
    ...options,
  });
  opened.push(models);
  return models;
}

async function fake(): Promise<FakeProvider> {
  const provider = await startFakeProvider({ deltas: 3 });
  opened.push({ [Symbol.asyncDispose]: () => provider.close() });
  return provider;
}

const kinds = () => heard.map((event) => event.kind);
function payloads<K extends EventKind>(kind: K): EventPayload<K>[] {
  return heard.filter((event): event is BusEvent<K> => event.kind === kind).map((event) => event.payload);
}
const names = (list: readonly ModelInfo[]) => list.map((model) => `${model.provider}/${model.modelId}`);

describe('the catalog', () => {
  test('configured providers come first, in their order, with prices', async () => {
    const models = await build(
      {
        b: {
          type: 'openai-compatible',
          baseUrl: 'http://127.0.0.1:9/v1',
          models: [
            { id: 'm', cost: { input: 1, output: 2 } },
            { id: 'org/n', contextWindow: 9000, maxTokens: 100 },
          ],
        },
        a: { type: 'openai' },
      },
      { env: { GROQ_API_KEY: 'k' } },
    );
    expect(models.providers().map(({ id, source, apiKeyConfigured }) => [id, source, apiKeyConfigured])).toEqual([
      ['b', 'config', false],
      ['a', 'config', false],
      ['groq', 'environment', true],
    ]);
    expect(names(models.list()).slice(0, 3)).toEqual(['b/m', 'b/org/n', 'a/gpt-5-mini']);
    expect(models.list()[0]).toMatchObject({
      contextWindow: 128_000,
      maxTokens: 8192,
      price: { input: 1, output: 2, cacheRead: 1, cacheWrite: 1 },
      validated: true,
    });
    expect(models.list()[1]).toMatchObject({ contextWindow: 9000, maxTokens: 100, price: null });
    expect(models.defaultModel()).toBe(models.list()[0]);
    expect(payloads('model:catalog_loaded')).toMatchObject([{ providerCount: 3, modelCount: models.list().length }]);
  });

  test('keys of the environment whose vendor, or which themselves, are configured count as used', async () => {
    const proxied = { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:9/v1', apiKey: 'for-the-proxy', models: [{ id: 'm' }] };
    const env = { OPENAI_API_KEY: 'for-the-proxy', ANTHROPIC_API_KEY: 'k', GROQ_API_KEY: 'g' };
    const configured = { proxied, claude: { type: 'anthropic', apiKey: 'other' } };
    const found = async (more: object) => (await build(configured, { env, ...more })).providers().map(({ id }) => id);
    expect(await found({})).toEqual(['proxied', 'claude', 'groq']);
    expect(await found({ config: { discover: false } })).toEqual(['proxied', 'claude']);
    expect((await build(configured, { env })).defaultModel()).toMatchObject({ provider: 'proxied' });
  });

  test('resolves a full name, a bare id in the preferred provider, then in catalog order', async () => {
    const models = await build({
      one: { type: 'vllm', models: [{ id: 'm' }, { id: 'two/m' }] },
      two: { type: 'vllm', models: [{ id: 'm' }, { id: 'x' }] },
    });
    const resolved = (name: string, preferred?: string) => {
      const model = models.resolve(name, preferred);
      return model === undefined ? undefined : `${model.provider}/${model.modelId}`;
    };
    expect(resolved('two/m')).toBe('two/m');
    expect(resolved('one/two/m')).toBe('one/two/m');
    expect(resolved('m')).toBe('one/m');
    expect(resolved('m', 'two')).toBe('two/m');
    expect(resolved('x', 'one')).toBe('two/x');
    expect(resolved('two/m', 'one')).toBe('two/m');
    expect(resolved('nothing')).toBeUndefined();
  });

  test('finds keys in the environment, follows an overridden base URL and reports where it found them', async () => {
    const models = await build(
      {},
      { env: { ANTHROPIC_API_KEY: 'k1', OPENAI_API_KEY: ' k2 ', OPENAI_BASE_URL: 'http://127.0.0.1:9/proxy/', GROQ_API_KEY: '' } },
    );
    expect(models.providers().map(({ id, baseUrl, source }) => [id, baseUrl, source])).toEqual([
      ['openai', 'http://127.0.0.1:9/proxy', 'environment'],
      ['anthropic', 'https://api.anthropic.com/v1', 'environment'],
    ]);
    expect(models.describeDiscovery()).toMatchObject({
      providers: [
        { id: 'openai', name: 'OpenAI', from: 'OPENAI_API_KEY' },
        { id: 'anthropic', from: 'ANTHROPIC_API_KEY' },
      ],
      defaultModel: 'openai/gpt-5-mini',
    });
    expect(JSON.stringify(models.describeDiscovery())).not.toContain('k1');
  });

  test.each(['nonsense', 'localhost:9/v1', 'ftp://127.0.0.1/v1'])(
    'an invalid overridden base URL (%s) sends no key to the vendor instead, and is reported',
    async (moved) => {
      const warnings: string[] = [];
      const log: Log = { ...silentLog, warn: (_fields, message) => void warnings.push(message) };
      const models = await build({}, { env: { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: moved, GROQ_API_KEY: 'g' }, log });
      expect(models.providers().map(({ id }) => id)).toEqual(['groq']);
      expect(warnings).toEqual(['OPENAI_API_KEY is not used: OPENAI_BASE_URL must begin with http:// or https://']);
    },
  );

  test('does not search when disabled', async () => {
    const models = await build({}, { env: { OPENAI_API_KEY: 'k' }, config: { discover: false } });
    expect(names(models.list())).toEqual(['offline/offline']);
  });

  test('finds local servers by their list of models', async () => {
    const probe: Probe = async (url) =>
      url === 'http://127.0.0.1:8000/v1/models'
        ? { data: [{ id: 'qwen', max_model_len: 32_768 }, { id: 'nomic-embed-text' }] }
        : url.includes('8080')
          ? { hello: 1 }
          : Promise.reject(new Error('refused'));
    const models = await build({}, { probe });
    expect(models.list()).toMatchObject([{ provider: 'vllm', modelId: 'qwen', contextWindow: 32_768, price: { input: 0 }, validated: true }]);
    expect(models.describeDiscovery().providers).toMatchObject([{ source: 'local_server', from: 'http://127.0.0.1:8000' }]);
  });

  test('the probe reads a list over HTTP and gives up in time', async () => {
    const provider = await fake();
    expect(await probeHttp(`${provider.url}/models`, {}, AbortSignal.timeout(15_000))).toMatchObject({
      data: [{ id: 'mock-fast' }, { id: 'mock-p10' }],
    });
    const silent = createServer(() => undefined);
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    opened.push({
      async [Symbol.asyncDispose]() {
        silent.close();
        silent.closeAllConnections();
      },
    });
    const { port } = silent.address() as AddressInfo;
    await expect(probeHttp(`http://127.0.0.1:${port}/v1/models`, {}, AbortSignal.timeout(30))).rejects.toThrow();
  });

  test('adds models that agents name to providers that list none themselves', async () => {
    const models = await build(
      { openai: { type: 'openai', apiKey: 'k' }, own: { type: 'vllm', models: [{ id: 'm' }] } },
      { named: ['openai/gpt-9', 'openai/gpt-5', 'own/other'] },
    );
    expect(models.resolve('openai/gpt-9')).toMatchObject({ price: null, validated: false });
    expect(models.list().filter(({ modelId }) => modelId === 'gpt-5')).toHaveLength(1);
    expect(models.resolve('own/other')).toBeUndefined();
  });

  test('knows what models accept in addition to text, as far as their vendor’s API supports it', async () => {
    const models = await build({
      openai: { type: 'openai', apiKey: 'k' },
      azure: { type: 'azure', baseUrl: 'http://127.0.0.1:1/v1', models: [{ id: 'gpt-4o' }] },
      claude: { type: 'anthropic', apiKey: 'k' },
      google: { type: 'google', apiKey: 'k' },
      own: { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:1/v1', models: [{ id: 'a' }, { id: 'b', input: ['text', 'pdf'] }] },
    });
    const inputOf = (name: string) => models.resolve(name)?.input;
    expect(inputOf('openai/gpt-5-mini')).toEqual(['text', 'image', 'pdf']);
    expect(inputOf('claude/claude-sonnet-4-5')).toEqual(['text', 'image', 'pdf']);
    expect(inputOf('azure/gpt-4o')).toEqual(['text', 'image']);
    expect(inputOf('google/gemini-2.5-pro')).toEqual(['text', 'image']);
    expect(inputOf('own/a')).toEqual(['text']);
    expect(inputOf('own/b')).toEqual(['text', 'pdf']);
  });

  test('reports unsupported options by provider, for the offline answer too', async () => {
    const asked = { options: { seed: 1, responseFormat: { type: 'json_object' as const } }, tools: false };
    const models = await build({ openai: { type: 'openai', apiKey: 'k' }, claude: { type: 'anthropic', apiKey: 'k' } });
    const unsupported = (name: string) => models.unsupported(models.resolve(name) ?? models.defaultModel(), asked)?.option;
    expect(unsupported('openai/gpt-5-mini')).toBeUndefined();
    expect(unsupported('claude/claude-sonnet-4-5')).toBe('seed');
    const none = await build({}, { config: { discover: false } });
    expect(none.unsupported(none.defaultModel(), asked)).toMatchObject({ option: 'responseFormat', message: expect.stringContaining('offline') });
  });

  test('refuses a provider without address and a default that is not a model, naming the key', async () => {
    await expect(build({ x: { type: 'azure', apiKey: 'k' } })).rejects.toThrow('providers.x.baseUrl');
    await expect(build({ x: { type: 'vllm', models: [{ id: 'm' }] } }, { config: { default: 'nope' } })).rejects.toThrow('models.default');
  });
});

describe('models that providers list', () => {
  const list = (...ids: readonly string[]) => ({ data: ids.map((id) => ({ id })) });
  const never = new AbortController().signal;

  test('are added to the built-in ones on request, with their prices where known, and the default stays', async () => {
    const asked: [string, unknown][] = [];
    const probe: Probe = async (url, headers) => {
      asked.push([url, headers['x-api-key']]);
      return list('claude-haiku-4-5', 'claude-haiku-4-5-20251001', 'claude-9');
    };
    const models = await build(
      { claude: { type: 'anthropic', apiKey: 'k', apiKeys: ['l'], prices: { 'claude-9': { input: 9, output: 90 } } } },
      { probe },
    );
    expect(asked).toEqual([]);
    expect(await models.refresh('claude', never)).toEqual({ listed: ['claude-haiku-4-5', 'claude-haiku-4-5-20251001', 'claude-9'] });
    expect(asked).toEqual([['https://api.anthropic.com/v1/models?limit=1000', 'k']]);
    expect(models.defaultModel().modelId).toBe('claude-sonnet-4-5');
    expect(models.resolve('claude-haiku-4-5')).toMatchObject({ validated: true, price: { input: 1 } });
    expect(models.resolve('claude-sonnet-4-5')).toMatchObject({ validated: false });
    expect(models.resolve('claude/claude-haiku-4-5-20251001')).toMatchObject({ validated: true, price: { output: 5 } });
    expect(models.resolve('claude-9')).toMatchObject({ price: { input: 9, output: 90, cacheRead: 9 } });
    const [provider] = models.describeProviders();
    const origin = (id: string) => provider?.models.find(({ modelId }) => modelId === id)?.origin;
    expect(provider?.listedAtMs).toBe(clock.now());
    expect(origin('claude-9')).toEqual({ source: 'listed', cost: { source: 'config' } });
    expect(origin('claude-haiku-4-5')).toMatchObject({
      source: 'listed',
      cost: { source: 'built_in', asOf: expect.any(String), url: expect.any(String) },
    });
    expect(origin('claude-opus-4-5')).toMatchObject({ source: 'built_in' });
  });

  test('stay with changes of other parts, keep pauses, and go with their provider', async () => {
    const provider = await fake();
    const probe: Probe = async () => list('listed');
    const config = ProvidersConfig.parse({ one: { type: 'openai', baseUrl: provider.url, apiKey: 'k' } });
    const models = await build({}, { providers: config, probe });
    provider.queue({ status: 401 });
    await expect(run(models, ['one/gpt-5'])).rejects.toMatchObject({ kind: 'auth' });
    await models.refresh('one', never);
    expect(models.states()[0]?.state).toBe('refused');
    const modelsConfig = ModelsConfig.parse({ default: 'one/listed' });
    await models.reconfigure({ providers: { ...config }, modelsConfig });
    expect(models.defaultModel().modelId).toBe('listed');
    expect((await run(models, ['one/listed'])).model.modelId).toBe('listed');
    await models.reconfigure({
      providers: ProvidersConfig.parse({ one: { type: 'vllm', baseUrl: 'http://10.0.0.1:9/v1', apiKey: 'k' } }),
      modelsConfig: ModelsConfig.parse({}),
    });
    expect(models.resolve('listed')).toBeUndefined();
  });

  test('are not added to a provider whose entry names its models, and a list that does not come changes nothing and says why', async () => {
    const closed = await fake();
    await closed.close();
    const models = await build({
      own: { type: 'openai-compatible', baseUrl: (await fake()).url, models: [{ id: 'm' }] },
      gone: { type: 'openai', baseUrl: closed.url, apiKey: 'sk-of-the-gone-one' },
      azure: { type: 'azure', baseUrl: closed.url },
    });
    const before = names(models.list());
    expect(await models.refresh('own', never)).toEqual({ listed: ['mock-fast', 'mock-p10'] });
    expect(await models.refresh('gone', never)).toMatchObject({ listed: [], fault: expect.stringContaining('ECONNREFUSED') });
    expect(await models.refresh('azure', never)).toEqual({ listed: [] });
    expect(await models.refresh('absent', never)).toBeUndefined();
    expect(names(models.list())).toEqual(before);
  });

  test('are requested once a day, and again where there was no answer', async () => {
    const asked: string[] = [];
    const probe: Probe = async (url) => {
      asked.push(url);
      if (url.includes('groq')) throw new Error('status 500');
      return list('new');
    };
    const more = { probe, env: { OPENAI_API_KEY: 'k', GROQ_API_KEY: 'g', PERPLEXITY_API_KEY: 'p' } };
    const own = { own: { type: 'openai-compatible', baseUrl: 'http://10.0.0.1:9/v1', models: [{ id: 'm' }] } };
    const models = await build(own, more);
    await models.refreshStale(never);
    expect(asked).toEqual(['https://api.openai.com/v1/models', 'https://api.groq.com/openai/v1/models']);
    await models.refreshStale(never);
    expect(asked.slice(2)).toEqual(['https://api.groq.com/openai/v1/models']);
    clock.advance(86_400_000);
    await models.refreshStale(never);
    expect(asked.slice(3)).toHaveLength(2);
    const silent = await build(own, { ...more, config: { fetch: false } });
    await silent.refreshStale(never);
    expect(asked).toHaveLength(5);
  });
});

describe('the offline model', () => {
  test('says plainly that there is no model, streams in several deltas and repeats nothing of the prompt', async () => {
    const models = await build({});
    const sink = collectingSink();
    const attempts: Attempt[] = [];
    const call = {
      models: [models.defaultModel()],
      agentId: 'default',
      request: requestOf('my password is hunter2'),
      onAttempt: (attempt: Attempt) => void attempts.push(attempt),
    };
    const { result } = await models.generate(call, sink);
    expect(result.text).toBe(offlineText.join(''));
    expect(result.text).toContain('No language model is connected');
    expect(result.text).toContain('OPENAI_API_KEY');
    expect(result.text).not.toContain('hunter2');
    expect(sink.fragments.length).toBeGreaterThan(2);
    expect(sink.fragments.join('')).toBe(result.text);
    expect(result.usage.output).toBeGreaterThan(50);
    expect((await models.generate(call)).result).toEqual(result);
    expect(attempts).toHaveLength(2);
    expect(models.providers()).toMatchObject([{ id: 'offline', source: 'built_in' }]);
  });

  test('never replaces a configured model that fails', async () => {
    const provider = await fake();
    const models = await build({ p: { type: 'vllm', baseUrl: provider.url, models: [{ id: 'm' }] } });
    provider.queue({ status: 401 });
    await expect(run(models, ['p/m'])).rejects.toMatchObject({ kind: 'auth' });
    expect(models.resolve('offline/offline')).toBeUndefined();
  });
});

function requestOf(content: string) {
  return {
    system: [],
    messages: [{ role: 'user' as const, content }],
    tools: [],
    cacheRetention: 'none' as const,
    timeoutMs: 5000,
    signal: new AbortController().signal,
  };
}

async function run(
  models: Models,
  list: readonly string[],
  options: { attempts?: Attempt[]; sink?: ReturnType<typeof collectingSink>; agentId?: string; isExplicit?: boolean } = {},
) {
  const chosen = list.map((name) => models.resolve(name)).filter((model) => model !== undefined);
  return models.generate(
    {
      models: chosen,
      agentId: options.agentId ?? 'default',
      request: requestOf('hi'),
      onAttempt: (attempt) => void options.attempts?.push(attempt),
      isExplicit: options.isExplicit === true,
    },
    options.sink,
  );
}

describe('several keys of a provider', () => {
  async function withKeys(...keys: readonly string[]) {
    const provider = await fake();
    const other = await fake();
    const models = await build({
      one: { type: 'vllm', baseUrl: provider.url, apiKey: keys[0], apiKeys: keys.slice(1), models: [{ id: 'm' }, { id: 'n' }] },
      two: { type: 'vllm', baseUrl: other.url, models: [{ id: 'm' }] },
    });
    heard = [];
    const described = () => models.describeProviders().find(({ id }) => id === 'one');
    return {
      provider,
      models,
      used: () => provider.requests.map(({ headers }) => headers.authorization?.replace('Bearer ', '')),
      state: () => described()?.state.state,
      states: () => described()?.keys.map(({ id, state }) => [id, state.state]),
    };
  }
  const refusals: Record<string, FakeAnswer> = {
    limited: { status: 429, headers: { 'retry-after': '20' } },
    refused: { status: 401 },
    poor: { status: 429, error: { message: 'pay', code: 'insufficient_quota' } },
    unclear: { status: 403 },
  };

  test.each(Object.entries(refusals))('a key that is %s is followed by the next one, and the call succeeds', async (_name, refusal) => {
    const { provider, models, used, state } = await withKeys('a', 'b');
    provider.queue(refusal);
    const attempts: Attempt[] = [];
    expect((await run(models, ['one/m', 'two/m'], { attempts })).model.provider).toBe('one');
    expect(attempts.map(({ model, outcome }) => [model.provider, outcome])).toEqual([
      ['one', 'error'],
      ['one', 'ok'],
    ]);
    await run(models, ['one/m']);
    expect(used()).toEqual(['a', 'b', 'b']);
    expect(state()).toBe('ok');
    expect(kinds().filter((kind) => kind !== 'model:auth_cooldown')).toEqual([]);
  });

  test('calls stay with a key until it is refused; then the one whose refusal is longest ago is used', async () => {
    const { provider, models, used, states } = await withKeys('a', 'b', 'c');
    const refuse = async (...names: string[]) => {
      provider.queue(...names.map((name) => refusals[name] ?? {}));
      await run(models, ['one/m']);
    };
    await run(models, ['one/m']);
    await refuse('limited');
    await refuse('limited');
    expect(used()).toEqual(['a', 'a', 'b', 'b', 'c']);
    expect(states()).toEqual([
      ['apiKey', 'cooling'],
      ['apiKeys[0]', 'cooling'],
      ['apiKeys[1]', 'ok'],
    ]);
    clock.advance(20_000);
    await refuse('refused');
    expect(used().slice(5)).toEqual(['c', 'a']);
    expect(payloads('model:auth_cooldown').map(({ keyName }) => keyName)).toEqual([
      'providers.one.apiKey',
      'providers.one.apiKeys[0]',
      'providers.one.apiKeys[1]',
    ]);
  });

  test('the provider is paused when all of its keys are, until the first pause ends', async () => {
    const { provider, models, used, state } = await withKeys('a', 'b');
    provider.queue({ status: 429, headers: { 'retry-after': '60' } }, { status: 429, headers: { 'retry-after': '20' } });
    await expect(run(models, ['one/m'])).rejects.toMatchObject({ kind: 'rate_limit', retryAfterMs: 20_000 });
    expect(state()).toBe('cooling');
    expect(models.states()[0]).toMatchObject({ untilMs: clock.now() + 20_000 });
    await expect(run(models, ['one/m'])).rejects.toMatchObject({ kind: 'rate_limit', retryAfterMs: 20_000 });
    expect((await run(models, ['one/n'])).model.modelId).toBe('n');
    clock.advance(20_000);
    await run(models, ['one/m']);
    expect(used()).toEqual(['a', 'b', 'a', 'b']);
  });

  test('refused keys are tried again by an explicit call alone, each once, and before other models', async () => {
    const { provider, models, used, state } = await withKeys('a', 'b');
    provider.queue({ status: 401 }, { status: 401 }, { status: 401 }, { status: 401 }, { status: 401 });
    expect((await run(models, ['one/m', 'two/m'])).model.provider).toBe('two');
    expect(state()).toBe('refused');
    await expect(run(models, ['one/m'])).rejects.toMatchObject({ kind: 'auth' });
    expect(used()).toEqual(['a', 'b']);
    await expect(run(models, ['one/m'], { isExplicit: true })).rejects.toMatchObject({ kind: 'auth' });
    expect(used()).toEqual(['a', 'b', 'a', 'b']);
    expect((await run(models, ['one/m'], { isExplicit: true })).model.provider).toBe('one');
    expect(used().slice(4)).toEqual(['a', 'b']);
    expect(state()).toBe('ok');
  });

  test('a failure that is not about the key, or after text, is not repeated with another key', async () => {
    const { provider, models, used } = await withKeys('a', 'b');
    provider.queue({ status: 400 }, { status: 500 }, { text: ['half '], breakAfter: { deltas: 1, by: 'cut' } });
    for (const _ of [1, 2, 3]) await expect(run(models, ['one/m'], { sink: collectingSink() })).rejects.toBeInstanceOf(ModelError);
    expect(used()).toEqual(['a', 'a', 'a']);
  });

  test('one key can be cleared, which wakes waiting work, and the others stay paused', async () => {
    const { provider, models, used, states } = await withKeys('a', 'b');
    const recovered: string[] = [];
    models.onRecovered((model) => recovered.push(model));
    provider.queue({ status: 401 }, { status: 401 });
    await expect(run(models, ['one/m'])).rejects.toMatchObject({ kind: 'auth' });
    models.clearKey('one', 'apiKeys[0]');
    expect(recovered).toEqual(['one/m']);
    expect(states()).toEqual([
      ['apiKey', 'refused'],
      ['apiKeys[0]', 'ok'],
    ]);
    await run(models, ['one/m']);
    expect(used()).toEqual(['a', 'b', 'b']);
    models.clearState('one');
    expect(states()?.map(([, state]) => state)).toEqual(['ok', 'ok']);
  });

  test('calls that are refused together count as one refusal', async () => {
    const { provider, models } = await withKeys('a');
    const together = Promise.withResolvers<void>();
    provider.queue(...[1, 2, 3].map(() => ({ status: 429, after: together.promise })));
    const running = [1, 2, 3].map(() => run(models, ['one/m']));
    await expect.poll(() => provider.served()).toBe(3);
    together.resolve();
    await Promise.allSettled(running);
    expect(payloads('model:auth_cooldown').map(({ cooldownMs, failureCount }) => [cooldownMs, failureCount])).toEqual([
      [60_000, 1],
      [60_000, 1],
      [60_000, 1],
    ]);
  });

  test('a turn that began before the keys changed ends with its own, and says nothing of the new ones', async () => {
    const provider = await fake();
    const entry = (...apiKeys: readonly string[]) =>
      ProvidersConfig.parse({ one: { type: 'vllm', baseUrl: provider.url, apiKeys, models: [{ id: 'm' }] } });
    const models = await build({}, { providers: entry('old-a', 'old-b') });
    const known = models.resolve('one/m');
    await models.reconfigure({ providers: entry('new'), modelsConfig: ModelsConfig.parse({}) });
    provider.queue({ status: 401 });
    await run({ ...models, resolve: () => known }, ['one/m']);
    expect(models.describeProviders()[0]?.keys).toMatchObject([{ id: 'apiKeys[0]', state: { state: 'ok' } }]);
    await run(models, ['one/m']);
    expect(provider.requests.map(({ headers }) => headers.authorization)).toEqual(['Bearer old-a', 'Bearer old-b', 'Bearer new']);
  });

  test('a key that is named twice is one key', async () => {
    const { models } = await withKeys('a', 'b', 'a');
    expect(models.describeProviders()[0]?.keys.map(({ id }) => id)).toEqual(['apiKey', 'apiKeys[0]']);
    expect(JSON.stringify(models.describeProviders())).not.toContain('"a"');
  });
});

describe('fallback', () => {
  async function pair() {
    const first = await fake();
    const second = await fake();
    const models = await build({
      one: { type: 'vllm', baseUrl: first.url, models: [{ id: 'm' }, { id: 'n' }] },
      two: { type: 'vllm', baseUrl: second.url, models: [{ id: 'm' }] },
    });
    heard = [];
    return { first, second, models };
  }

  test.for([
    [401, 'auth'],
    [402, 'bad_request'],
    [403, 'bad_request'],
    [429, 'rate_limit'],
    [500, 'server'],
  ] as const)('%i goes on to the next model, with an event and every attempt booked once', async ([status, error]) => {
    const { first, second, models } = await pair();
    first.queue({ status });
    const attempts: Attempt[] = [];
    const { model } = await run(models, ['one/m', 'two/m'], { attempts });
    expect(model.provider).toBe('two');
    expect(attempts.map(({ model: { provider }, outcome }) => [provider, outcome])).toEqual([
      ['one', 'error'],
      ['two', 'ok'],
    ]);
    expect(attempts[1]?.usage).toMatchObject({ input: 20, output: 3 });
    expect(payloads('model:fallback_attempt')).toEqual([
      { agentId: 'default', fromProvider: 'one', fromModel: 'm', toProvider: 'two', toModel: 'm', error, attemptNumber: 1, timestamp: clock.now() },
    ]);
    expect([first.served(), second.served()]).toEqual([1, 1]);
  });

  test.for([
    [{ status: 400 }, 'bad_request'],
    [{ status: 400, error: { message: 'maximum context length is 8' } }, 'context_length'],
  ] as const)('%o stays where it is: another model would refuse it too', async ([answer, kind]) => {
    const { first, second, models } = await pair();
    first.queue(answer);
    await expect(run(models, ['one/m', 'two/m'])).rejects.toMatchObject({ kind });
    expect([first.served(), second.served()]).toEqual([1, 0]);
    expect(kinds()).toEqual([]);
  });

  test('no other model takes over once text was sent', async () => {
    const { first, second, models } = await pair();
    first.queue({ text: ['half '], breakAfter: { deltas: 1, by: 'cut' } });
    const attempts: Attempt[] = [];
    const sink = collectingSink();
    await expect(run(models, ['one/m', 'two/m'], { sink, attempts })).rejects.toMatchObject({ partial: { text: 'half ' } });
    expect([first.served(), second.served()]).toEqual([1, 0]);
    expect(attempts).toMatchObject([{ outcome: 'error', usage: { estimated: true } }]);
    expect(attempts[0]?.usage.input).toBeGreaterThan(0);
  });

  test('after an attempt that cost something the caller decides whether there is another one', async () => {
    const { first, second, models } = await pair();
    const chosen = ['one/m', 'two/m'].map((name) => models.resolve(name)).filter((model) => model !== undefined);
    for (const may of [false, true]) {
      first.queue({ toolCalls: [{ id: 'c', name: 'look', arguments: '{"at": 1}' }], breakAfter: { deltas: 2, by: 'cut' } });
      const attempts: Attempt[] = [];
      const asked: number[] = [];
      const call = {
        models: chosen,
        agentId: 'default',
        request: requestOf('hi'),
        onAttempt: (attempt: Attempt) => void attempts.push(attempt),
        mayContinue: async () => (asked.push(attempts.length), may),
      };
      const ended = await models.generate(call, collectingSink()).catch((error: unknown) => error);
      expect(ended).toMatchObject(may ? { model: { provider: 'two' } } : { name: 'ModelError', usage: { estimated: true } });
      expect(attempts[0]?.usage.input).toBeGreaterThan(0);
      expect([asked, second.served()]).toEqual([[1], may ? 1 : 0]);
    }
  });

  test('a fallback is asked for an answer within its own limit', async () => {
    const first = await fake();
    const second = await fake();
    const models = await build({
      one: { type: 'vllm', baseUrl: first.url, models: [{ id: 'm', maxTokens: 50 }] },
      two: { type: 'vllm', baseUrl: second.url, models: [{ id: 'm', maxTokens: 60 }] },
    });
    first.queue({ status: 500 });
    const chosen = ['one/m', 'two/m'].map((name) => models.resolve(name)).filter((model) => model !== undefined);
    await models.generate({ models: chosen, agentId: 'default', request: { ...requestOf('hi'), maxTokens: 100 }, onAttempt: () => undefined });
    expect([first, second].map((provider) => provider.requests.at(-1)?.body)).toMatchObject([{ max_tokens: 100 }, { max_tokens: 60 }]);
  });

  test('a network error is retried once with the same model, then with the next', async () => {
    const { first, models } = await pair();
    await first.close();
    const attempts: Attempt[] = [];
    expect((await run(models, ['one/m', 'two/m'], { attempts })).model.provider).toBe('two');
    expect(attempts.map(({ model, outcome }) => [model.provider, outcome])).toEqual([
      ['one', 'error'],
      ['one', 'error'],
      ['two', 'ok'],
    ]);
  });

  test('an overloaded provider is retried after a short pause', async () => {
    const { first, models } = await pair();
    first.queue({ status: 529 });
    const answer = run(models, ['one/m', 'two/m']);
    await expect.poll(() => (clock.advance(500), first.served()), { interval: 50 }).toBe(2);
    expect((await answer).model.provider).toBe('one');
    expect(kinds()).toEqual([]);
  });

  test('failure of all models is announced and fails with the last error', async () => {
    const { first, second, models } = await pair();
    first.queue({ status: 500 });
    second.queue({ status: 401 });
    await expect(run(models, ['one/m', 'two/m'])).rejects.toMatchObject({ kind: 'auth' });
    expect(payloads('model:fallback_exhausted')).toMatchObject([{ agentId: 'default', provider: 'two', model: 'm', totalAttempts: 2 }]);
  });

  test('a model that a provider refused is paused, longer each time', async () => {
    const { first, second, models } = await pair();
    first.queue({ status: 401 }, { status: 401 });
    await run(models, ['one/m', 'two/m']);
    expect(first.served()).toBe(1);
    await run(models, ['one/m', 'two/m']);
    expect([first.served(), second.served()]).toEqual([1, 2]);
    clock.advance(60_000);
    await run(models, ['one/m', 'two/m']);
    expect(first.served()).toBe(2);
    clock.advance(299_000);
    await run(models, ['one/m', 'two/m']);
    expect(first.served()).toBe(2);
    clock.advance(1000);
    expect((await run(models, ['one/m', 'two/m'])).model.provider).toBe('one');
    expect(payloads('model:auth_cooldown')).toMatchObject([
      { provider: 'one', keyName: 'providers.one.apiKey', cooldownMs: 60_000, failureCount: 1 },
      { provider: 'one', cooldownMs: 300_000, failureCount: 2 },
    ]);
  });

  test('Retry-After is the pause; meanwhile a call with no other model says when to retry', async () => {
    const { first, models } = await pair();
    first.queue({ status: 429, headers: { 'retry-after': '20' } });
    await expect(run(models, ['one/m'])).rejects.toMatchObject({ kind: 'rate_limit', retryAfterMs: 20_000 });
    clock.advance(5000);
    const attempts: Attempt[] = [];
    await expect(run(models, ['one/m'], { attempts })).rejects.toMatchObject({ kind: 'rate_limit', retryAfterMs: 15_000 });
    expect(attempts).toEqual([]);
    expect(first.served()).toBe(1);
    clock.advance(15_000);
    expect((await run(models, ['one/m'])).model.modelId).toBe('m');
  });

  test.each([401, 402, 403, 429, 500])('a model that answers %i makes no other model of its provider refuse', async (status) => {
    const { first, models } = await pair();
    for (let index = 0; index < 6; index += 1) {
      first.queue({ status });
      await expect(run(models, ['one/m'])).rejects.toBeInstanceOf(ModelError);
      clock.advance(3_600_000);
    }
    first.queue({ status });
    await expect(run(models, ['one/m'])).rejects.toBeInstanceOf(ModelError);
    expect((await run(models, ['one/n'])).model.modelId).toBe('n');
  });

  test.each([404, 413])('a request that a provider refuses with %i is tried with the next model, and the last verdict holds', async (status) => {
    const { first, second, models } = await pair();
    first.queue({ status });
    expect((await run(models, ['one/m', 'two/m'])).model.provider).toBe('two');
    first.queue({ status });
    second.queue({ status: 400 });
    await expect(run(models, ['one/m', 'two/m'])).rejects.toMatchObject({ kind: 'bad_request', status: 400 });
    first.queue({ status: 422 });
    await expect(run(models, ['one/m', 'two/m'])).rejects.toMatchObject({ status: 422 });
    expect(second.served()).toBe(2);
  });

  test('the state of a provider follows its answers, and clearing it lets the next call through', async () => {
    const { first, models } = await pair();
    const recovered: string[] = [];
    models.onRecovered((model) => recovered.push(model));
    const state = () => models.states().find(({ provider }) => provider === 'one');
    expect(state()).toMatchObject({ state: 'ok' });
    first.queue({ status: 401, error: { message: 'Incorrect API key' } });
    await expect(run(models, ['one/m'])).rejects.toMatchObject({ kind: 'auth' });
    clock.advance(10_000);
    expect(state()).toMatchObject({ state: 'refused', untilMs: clock.now() + 50_000, cause: expect.stringContaining('Incorrect API key') });
    await expect(run(models, ['one/m'])).rejects.toMatchObject({ retryAfterMs: 50_000, message: expect.stringContaining('Incorrect API key') });
    expect(first.served()).toBe(1);
    // An owner who waits for the answer gets a separate call.
    first.queue({ status: 401 });
    await expect(run(models, ['one/m'], { isExplicit: true })).rejects.toMatchObject({ kind: 'auth' });
    expect(first.served()).toBe(2);
    models.clearState('one');
    expect(state()).toMatchObject({ state: 'ok' });
    expect((await run(models, ['one/m'])).model.provider).toBe('one');
    first.queue({ status: 429, headers: { 'retry-after': '20' } });
    await expect(run(models, ['one/m'])).rejects.toMatchObject({ kind: 'rate_limit' });
    expect(state()).toMatchObject({ state: 'cooling', untilMs: clock.now() + 20_000 });
    await expect(run(models, ['one/m'], { isExplicit: true })).rejects.toMatchObject({ kind: 'rate_limit', retryAfterMs: 20_000 });
    clock.advance(20_000);
    first.queue({ status: 500 }, { status: 500 }, { status: 500 });
    for (let index = 0; index < 3; index += 1) await expect(run(models, ['one/m'])).rejects.toMatchObject({ kind: 'server' });
    expect(state()).toMatchObject({ state: 'unreachable' });
    await run(models, ['one/m']);
    expect(state()).toMatchObject({ state: 'ok' });
    expect(recovered).toEqual(['one/m', 'one/m']);
  });

  test('a watched model is reported once, with its next answer or when the state of its provider is cleared, unlike any other success', async () => {
    const { models } = await pair();
    const recovered: string[] = [];
    models.onRecovered((model) => recovered.push(model));
    await run(models, ['one/m']);
    expect(recovered).toEqual([]);
    models.watch('one/m');
    await run(models, ['one/n']);
    await run(models, ['one/m']);
    await run(models, ['one/m']);
    expect(recovered).toEqual(['one/m']);
    models.watch('one/n');
    models.clearState('two');
    models.clearState('one');
    models.clearState('one');
    expect(recovered).toEqual(['one/m', 'one/n']);
  });

  test.each([
    [401, 'auth', {}],
    [402, 'billing', { error: { message: 'pay', code: 'insufficient_credits' } }],
  ])('a call that only finds providers which refused with %i fails as %s, not as a rate limit', async (status, kind, more) => {
    const { first, second, models } = await pair();
    first.queue({ status, ...more });
    await expect(run(models, ['one/m'])).rejects.toMatchObject({ kind });
    await expect(run(models, ['one/m'])).rejects.toMatchObject({ kind, retryAfterMs: 60_000 });
    expect(first.served()).toBe(1);
    second.queue({ status: 429, headers: { 'retry-after': '20' } });
    await expect(run(models, ['two/m'])).rejects.toMatchObject({ kind: 'rate_limit' });
    await expect(run(models, ['one/m', 'two/m'])).rejects.toMatchObject({ kind: 'rate_limit', retryAfterMs: 20_000 });
  });

  test('three consecutive failures degrade a provider, the next answer recovers it', async () => {
    const { first, models } = await pair();
    first.queue({ status: 500 }, { status: 500 }, { status: 400 }, { status: 500 });
    for (const agentId of ['a', 'b', 'b', 'a']) await run(models, ['one/m'], { agentId }).catch(() => undefined);
    expect(payloads('provider:degraded')).toMatchObject([{ provider: 'one', failingAgents: 2 }]);
    await run(models, ['one/m']);
    await run(models, ['one/m']);
    expect(payloads('provider:recovered')).toMatchObject([{ provider: 'one' }]);
  });

  test('another catalog keeps running calls, the providers of turns that know them, and the states of those that stay the same', async () => {
    const [first, second, replacement] = [await fake(), await fake(), await fake()];
    const entry = ({ url }: FakeProvider) => ({ type: 'vllm', baseUrl: url, models: [{ id: 'm' }] });
    const providers = ProvidersConfig.parse({ one: entry(first), two: entry(second) });
    const models = await build({}, { providers });
    const known = models.resolve('two/m');
    const held = Promise.withResolvers<void>();
    first.queue({ status: 401 });
    second.queue({ status: 401 }, { text: 'held', after: held.promise });
    for (const name of ['one/m', 'two/m']) await expect(run(models, [name])).rejects.toMatchObject({ kind: 'auth' });
    const running = run(models, ['two/m'], { isExplicit: true });
    await expect.poll(() => second.served()).toBe(2);
    const changed = { ...providers, ...ProvidersConfig.parse({ two: entry(replacement) }) };
    await models.reconfigure({ providers: changed, modelsConfig: ModelsConfig.parse({}) });
    expect(models.states().map(({ state }) => state)).toEqual(['refused', 'ok']);
    await run(models, ['two/m']);
    expect([second.served(), replacement.served()]).toEqual([2, 1]);
    held.resolve();
    expect(await running).toMatchObject({ result: { text: 'held' } });
    const { resolve } = models;
    await run({ ...models, resolve: (name) => (name === 'known' ? known : resolve(name)) }, ['known']);
    expect([second.served(), replacement.served()]).toEqual([3, 1]);
    await expect(models.reconfigure({ providers, modelsConfig: ModelsConfig.parse({ default: 'three/m' }) })).rejects.toThrow('models.default');
    expect(models.resolve('two/m')).not.toBe(known);
  });

  test('an aborted call is not retried', async () => {
    const { first, second, models } = await pair();
    const controller = new AbortController();
    first.queue({ hang: true });
    const chosen = models.list().filter((model) => model.modelId === 'm');
    const answer = models.generate({
      models: chosen,
      agentId: 'default',
      request: { ...requestOf('hi'), signal: controller.signal },
      onAttempt: () => undefined,
    });
    await expect.poll(() => first.served()).toBe(1);
    controller.abort();
    await expect(answer).rejects.toBeInstanceOf(ModelError);
    await expect(answer).rejects.toMatchObject({ kind: 'aborted' });
    expect(second.served()).toBe(0);
    expect(kinds()).toEqual([]);
  });
});
