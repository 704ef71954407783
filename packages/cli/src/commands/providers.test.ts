import { expect, test } from 'vitest';
import { rpcAnswers, startServer, token } from '../testing/servers.ts';
import { createUser } from '../testing/test-io.ts';

const listed = {
  providers: [
    {
      provider: 'openai',
      type: 'openai',
      state: 'ok',
      keys: [
        { id: 'apiKey', from: 'store', name: 'OPENAI_API_KEY', state: 'ok' },
        { id: 'apiKeys[0]', from: 'file', state: 'cooling' },
      ],
      models: [{}, {}],
      baseUrl: 'https://api.openai.com/v1',
    },
    { provider: 'box', type: 'vllm', state: 'unreachable', keys: [], models: [], baseUrl: 'http://127.0.0.1:8000/v1' },
  ],
};
const set = { provider: 'openai', key: 'OPENAI_API_KEY', addedKeys: ['OPENAI_2_API_KEY'], changed: ['providers.openai'], version: 2, digest: 'd' };
const good = { provider: 'openai', verdict: 'ok', message: 'The provider answered in 400 ms', model: 'gpt-5-mini', latencyMs: 400, models: [] };
const bad = { ...good, verdict: 'key_refused', message: 'The provider refused the key', cause: '401: Incorrect API key\u202e', nextStep: 'Check it' };

async function open(tested: object = good, refreshed: object = { provider: 'openai', models: ['gpt-9', 'gpt-8'] }) {
  const removed = { removed: true, provider: 'openai', version: 3, digest: 'e' };
  const answers = {
    'providers.list': listed,
    'providers.set': set,
    'providers.test': tested,
    'providers.remove': removed,
    'providers.retry': { state: 'ok' },
    'providers.refresh': refreshed,
  };
  const server = await startServer(rpcAnswers(answers));
  const user = await createUser();
  const env = { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: token };
  return {
    params: () => server.requests.map(({ body }) => JSON.parse(body).params),
    run: (args: string[], more: Partial<Parameters<typeof user.run>[0]> = {}) => user.run({ args: ['providers', ...args], env, ...more }),
    async [Symbol.asyncDispose]() {
      await user[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

test('the list is the default, with state and source of the key', async () => {
  await using session = await open();
  const { out } = await session.run([]);
  expect(out.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
    ['PROVIDER', 'TYPE', 'STATE', 'KEYS', 'MODELS', 'ADDRESS'],
    ['openai', 'openai', 'ok', 'OPENAI_API_KEY (store), apiKeys[0] (file, cooling)', '2', 'https://api.openai.com/v1'],
    ['box', 'vllm', 'unreachable', '-', '0', 'http://127.0.0.1:8000/v1'],
    [''],
  ]);
});

test('a test exits with 1 when the provider does not work, and says why', async () => {
  await using working = await open();
  expect(await working.run(['test', 'openai', '--model', 'gpt-5'])).toMatchObject({
    code: 0,
    out: 'openai/gpt-5-mini: ok. The provider answered in 400 ms.\n',
  });
  expect(working.params()).toEqual([{ provider: 'openai', model: 'gpt-5' }]);
  await using failing = await open(bad);
  const { code, out } = await failing.run(['test', 'openai']);
  expect(code).toBe(1);
  expect(out).toBe('openai/gpt-5-mini: key refused. The provider refused the key.\n401: Incorrect API key\\u202e\nCheck it.\n');
});

test('the key of a new provider comes from standard input, and the provider is tested', async () => {
  await using session = await open();
  const { code, out } = await session.run(['add', 'openai'], { input: 'sk-secret\n' });
  expect(code).toBe(0);
  expect(out).toMatch(/^Stored openai in config.yaml. Its key is the secret OPENAI_API_KEY.\nopenai\/gpt-5-mini: ok/);
  await session.run(['add', 'box', '--base-url', 'http://127.0.0.1:8000/v1', '--no-key']);
  expect(session.params()).toEqual([
    { id: 'openai', type: 'openai', key: 'sk-secret' },
    { provider: 'openai' },
    { id: 'box', type: 'openai-compatible', baseUrl: 'http://127.0.0.1:8000/v1' },
    { provider: 'box' },
  ]);
  expect(await session.run(['add', 'openai'], { input: '' })).toMatchObject({
    code: 2,
    err: expect.stringContaining('gatehouse providers add openai'),
  });
  expect((await session.run(['add', 'openai', '--type', 'nope'], { input: 'k' })).code).toBe(2);
  await using failing = await open(bad);
  expect((await failing.run(['add', 'openai'], { input: 'sk-secret' })).code).toBe(1);
});

test('a removal asks first', async () => {
  await using session = await open();
  expect((await session.run(['remove', 'openai'])).code).toBe(2);
  expect((await session.run(['remove', 'openai', '--yes'])).out).toBe('Removed openai.\n');
  expect(session.params()).toEqual([{ provider: 'openai' }]);
});

test('keys are added with a test, removed after a question, and tested or retried by their id or name', async () => {
  await using session = await open();
  const { code, out } = await session.run(['add-key', 'openai'], { input: 'sk-further\n' });
  expect([code, out]).toEqual([0, expect.stringMatching(/^Stored the key as the secret OPENAI_2_API_KEY.\nopenai\/gpt-5-mini: ok/)]);
  expect(session.params()).toEqual([{}, { id: 'openai', type: 'openai', addKeys: ['sk-further'] }, { provider: 'openai', key: 'OPENAI_2_API_KEY' }]);
  await using removing = await open();
  expect((await removing.run(['remove-key', 'openai', 'apiKeys[0]'])).code).toBe(2);
  expect((await removing.run(['remove-key', 'openai', 'apiKeys[0]', '--yes'])).out).toBe('Removed the key apiKeys[0] of openai.\n');
  expect(removing.params().at(-1)).toEqual({ id: 'openai', type: 'openai', removeKeys: ['apiKeys[0]'] });
  expect(await removing.run(['add-key', 'absent'], { input: 'k' })).toMatchObject({ code: 2, err: expect.stringContaining('openai, box') });
  await using testing = await open({ ...bad, key: 'apiKeys[0]' });
  const all = await testing.run(['test', 'openai', '--all-keys']);
  expect([all.code, all.out.match(/with apiKeys\[0\]: key refused/g)?.length]).toEqual([1, 2]);
  await testing.run(['retry', 'openai', '--key', 'OPENAI_API_KEY']);
  expect(testing.params().slice(1)).toEqual([
    { provider: 'openai', key: 'apiKey' },
    { provider: 'openai', key: 'apiKeys[0]' },
    { provider: 'openai', key: 'OPENAI_API_KEY' },
  ]);
});

test('models are requested, and prices set and removed', async () => {
  await using session = await open();
  expect(await session.run(['refresh', 'openai'])).toMatchObject({ code: 0, out: 'gpt-9\ngpt-8\n' });
  expect((await session.run(['set-price', 'openai', 'gpt-9', '--in', '1.5', '--out', '6'])).out).toBe('Set the price of openai/gpt-9.\n');
  await session.run(['set-price', 'openai', 'gpt-9', '--remove']);
  expect(session.params().filter((params) => params.prices !== undefined)).toEqual([
    { id: 'openai', type: 'openai', prices: { 'gpt-9': { input: 1.5, output: 6 } } },
    { id: 'openai', type: 'openai', prices: { 'gpt-9': null } },
  ]);
  for (const wrong of [[], ['--in', '1'], ['--in', 'x', '--out', '1'], ['--in', '1', '--out', '1', '--remove']])
    expect((await session.run(['set-price', 'openai', 'gpt-9', ...wrong])).code).toBe(2);
  await using failing = await open(good, { provider: 'openai', models: [], cause: 'status 404' });
  expect(await failing.run(['refresh', 'openai'])).toMatchObject({ code: 1, out: 'No models. status 404\n' });
});
