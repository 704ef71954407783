import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient, createSocket } from '@gatehouse/client';
import { copyHome, createStepClock, startTestServer, type TestServer, type TestServerOptions } from '@gatehouse/testkit';
import { describe, expect, test } from 'vitest';

type Config = NonNullable<TestServerOptions['config']>;
type Budgets = NonNullable<NonNullable<NonNullable<Config['agents']>[string]>['budgets']>;

/** Keeps the clock and the person out of the prompt, so that each first turn counts the same input. */
const message = 'Hello';
let peers = 0;
const fresh = () => ({ userId: 'u', channelId: 'c', peerId: `p${(peers += 1)}` });

function start(budgets: Budgets, more: Partial<Config> = {}, options: Omit<TestServerOptions, 'config'> = {}) {
  return startTestServer({ ...options, config: { agents: { default: { model: 'mock/mock-fast', maxTokens: 500, budgets } }, ...more } });
}

const say = (server: TestServer, agentId?: string) =>
  server.client.call('agent.execute', { message, sessionKey: fresh(), ...(agentId !== undefined && { agentId }) });

async function capOf(server: TestServer, key: string, scope: 'agent' | 'all' = 'agent') {
  const { budgets } = await server.client.call('capabilities.introspect', {});
  const found = budgets.find((one) => one.cap === key && one.scope === scope);
  if (found === undefined) throw new Error(`${key} is not listed`);
  return found;
}

function post(server: TestServer, path: string, body: object, token = server.token): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  return fetch(server.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
}

/** Reserve of one fresh turn, observed while it runs. */
async function heldByOneTurn(server: TestServer, key: string): Promise<number> {
  const answered = Promise.withResolvers<void>();
  server.provider.queue({ text: 'slow', after: answered.promise });
  const turn = say(server);
  await expect.poll(async () => (await capOf(server, key)).reserved).toBeGreaterThan(0);
  const { reserved } = await capOf(server, key);
  answered.resolve();
  await turn;
  return reserved;
}

describe('fifty turns at once', () => {
  test.each([
    ['perHourTokens', 1_000_000],
    ['perDayUsd', 1],
  ] as const)('with a cap for three under %s: three run, and usage never exceeds the cap', async (key, enough) => {
    const clock = createStepClock();
    await using server = await start({ [key]: enough }, {}, { clock });
    const held = await heldByOneTurn(server, key);
    const { used } = await capOf(server, key);
    await server.client.call('agents.update', { agentId: 'default', config: { budgets: { [key]: Number((used + 3 * held).toFixed(9)) } } });
    const before = server.provider.served();
    // Nothing is settled before all of them have asked.
    server.provider.setAnswer(() => ({ hang: true }));
    const results: Awaited<ReturnType<typeof say>>[] = [];
    const turns = Array.from({ length: 50 }, async () => results.push(await say(server)));
    await expect.poll(() => results.length, { timeout: 20_000 }).toBe(47);
    expect(results.every(({ finishReason }) => finishReason === 'budget_exceeded')).toBe(true);
    await expect.poll(() => server.provider.served() - before).toBe(3);
    const { reserved, remaining } = await capOf(server, key);
    expect(reserved).toBeCloseTo(3 * held, 8);
    expect(remaining).toBe(0);
    clock.advance(180_000);
    await Promise.all(turns);
    expect(results.filter(({ finishReason }) => finishReason === 'timeout').length).toBe(3);
    const after = await capOf(server, key);
    expect(after.reserved).toBe(0);
    // The provider received the questions but never answered.
    expect(after.used).toBeGreaterThan(used);
    expect(after.used).toBeLessThan(after.limit);
    const refused = results.find(({ finishReason }) => finishReason === 'budget_exceeded');
    expect(refused?.failure).toMatchObject({ kind: 'budget_exceeded', retryAfterMs: 1000 });
    expect(refused?.failure?.message).toContain(`The budget agents.default.budgets.${key} of `);
    expect(refused?.failure?.message).toContain('held by running calls; try again in 1 s');
  });
});

describe('a cap', () => {
  test('lowers the length that is requested from the provider, and an answer cut by it names the cap', async () => {
    await using server = await start({ perHourTokens: 1_000_000 });
    const held = await heldByOneTurn(server, 'perHourTokens');
    const { used } = await capOf(server, 'perHourTokens');
    await server.client.call('agents.update', { agentId: 'default', config: { budgets: { perHourTokens: used + held - 100 } } });
    server.provider.queue({ text: 'part', finishReason: 'length' });
    const result = await say(server);
    expect(server.provider.requests.at(-1)?.body).toMatchObject({ max_tokens: 400 });
    expect(result).toMatchObject({ response: 'part', finishReason: 'budget_exceeded' });
    expect(result.failure?.message).toContain('agents.default.budgets.perHourTokens');
  });

  test('on money refuses before any call when the price is not known, with 400 on /v1, because waiting does not help', async () => {
    const free = { type: 'openai-compatible' as const, baseUrl: 'http://127.0.0.1:9/v1', apiKey: 'k', models: [{ id: 'x' }] };
    await using server = await start({ perDayUsd: 5 }, { providers: { free } });
    const response = await post(server, '/v1/chat/completions', { model: 'free/x', messages: [{ role: 'user', content: message }] });
    expect([response.status, response.headers.get('x-gatehouse-error')]).toEqual([400, 'budget_exceeded']);
    const { error } = (await response.json()) as { error: { type: string; message: string } };
    expect(error.type).toBe('invalid_request_error');
    expect(error.message).toContain('The price of free/x is not known, and agents.default.budgets.perDayUsd is a cap in US dollars');
    expect(server.provider.served()).toBe(0);
  });

  test('over all agents refuses on every surface; under /v1 as what can never fit', async () => {
    const clock = createStepClock();
    await using server = await start({}, { budgets: { perHourTokens: 50 } }, { clock });
    for (const [path, body] of [
      ['/v1/chat/completions', { model: 'default', messages: [{ role: 'user', content: message }] }],
      ['/v1/chat/completions', { model: 'default', stream: true, messages: [{ role: 'user', content: message }] }],
      ['/v1/responses', { model: 'default', input: message }],
      ['/api/chat', { message }],
      ['/api/chat/stream', { message }],
    ] as const) {
      const response = await post(server, path, body);
      expect([response.status, await response.text()], path).toEqual([
        path.startsWith('/v1') ? 400 : 429,
        expect.stringContaining('budgets.perHourTokens of 50 tokens'),
      ]);
    }
    expect(server.provider.served()).toBe(0);
  });

  test('names when it has capacity again, and has it then', async () => {
    const clock = createStepClock();
    await using server = await start({ perHourTokens: 3000 }, {}, { clock });
    server.provider.queue({ text: 'x', usage: { input: 2900, output: 10 } });
    expect(await say(server)).toMatchObject({ finishReason: 'stop' });
    const refused = await say(server);
    const waitMs = refused.failure?.retryAfterMs ?? 0;
    expect(waitMs).toBeGreaterThan(3_500_000);
    const response = await post(server, '/v1/chat/completions', { model: 'default', messages: [{ role: 'user', content: message }] });
    expect([response.status, Number(response.headers.get('retry-after'))]).toEqual([429, Math.ceil(waitMs / 1000)]);
    clock.advance(waitMs);
    expect(await say(server)).toMatchObject({ finishReason: 'stop' });
  });

  test('covers embeddings, which are booked on the agent of the token', async () => {
    await using server = await start({ perHourTokens: 1000 }, { embedding: { provider: 'hashing' } });
    const token = await server.as(['api'], { agents: ['default'] });
    expect((await post(server, '/v1/embeddings', { model: 'hashing-384', input: 'some words to embed' }, token.token)).status).toBe(200);
    const { rows } = await server.client.call('usage.report', { groupBy: ['agent', 'operation'] });
    expect(rows).toMatchObject([{ keys: ['default', 'embedding'], calls: 1, costUsd: 0 }]);
    const { used } = await capOf(server, 'perHourTokens');
    expect(used).toBe(rows[0]?.inputTokens);
    const refused = await post(server, '/v1/embeddings', { model: 'hashing-384', input: 'word '.repeat(2000) }, token.token);
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('agents.default.budgets.perHourTokens')]);
    expect((await capOf(server, 'perHourTokens')).used).toBe(used);
  });

  test('counts usage before a restart, and the reserve of a turn that a crash interrupted', async () => {
    const crashed = await mkdtemp(join(tmpdir(), 'gatehouse-crash-'));
    try {
      let reserved: number;
      let used: number;
      {
        await using server = await start({ perDayUsd: 5 }, { gateway: { drainTimeoutMs: 0 } });
        await say(server);
        server.provider.queue({ hang: true });
        const turn = say(server).catch(() => undefined);
        // The call is in flight, so its reserve is on disk: a kill would leave the current files.
        await expect.poll(() => server.provider.served()).toBe(2);
        ({ reserved, used } = await capOf(server, 'perDayUsd'));
        await copyHome(server.homeDir, crashed);
        await server.server.drain();
        await turn;
      }
      await using again = await start({ perDayUsd: 5 }, {}, { homeDir: crashed });
      const cap = await capOf(again, 'perDayUsd');
      expect([reserved > 0, cap.reserved, cap.used]).toEqual([true, 0, Number((used + reserved).toFixed(9))]);
      const { totals } = await again.client.call('usage.report', { groupBy: ['day'] });
      expect(totals).toMatchObject({ calls: 2, costUsd: cap.used });
      const { rows } = await again.client.call('usage.report', { groupBy: ['model'] });
      expect(rows).toMatchObject([{ keys: ['mock/mock-fast'], calls: 2 }]);
    } finally {
      await rm(crashed, { recursive: true, force: true });
    }
  });

  test('on money is settled at the actual cost of a turn, whatever happened to its calls', async () => {
    await using server = await start({ perDayUsd: 5, perTurnUsd: 1 });
    server.provider.queue(
      { status: 529, headers: { 'retry-after': '0' }, error: { message: 'busy' } },
      { text: 'x', usage: { input: 1000, output: 10 } },
    );
    expect(await say(server)).toMatchObject({ finishReason: 'stop' });
    expect(await capOf(server, 'perDayUsd')).toMatchObject({ used: 0.00102, reserved: 0 });
    server.provider.queue({ status: 500, error: { message: 'broken' } });
    await say(server);
    expect(await capOf(server, 'perDayUsd')).toMatchObject({ used: 0.00102, reserved: 0, remaining: 4.99898 });
  });
});

describe('a warning', () => {
  test('is sent once, as an event and with the spend of the day; and the spend once an hour while calls are made', async () => {
    const clock = createStepClock();
    await using server = await start({ perDayTokens: 10_000 }, {}, { clock });
    const warnings = server.heard('security:warn');
    const snapshots = server.heard('diagnostic:billing_snapshot');
    server.provider.queue({ text: 'x', usage: { input: 8000, output: 100 } });
    await say(server);
    await say(server);
    expect(warnings).toEqual([
      {
        category: 'budget',
        agentId: 'default',
        message: 'The budget agents.default.budgets.perDayTokens of 10000 tokens is used to 81 %: 8100 tokens',
        timestamp: clock.now(),
      },
    ]);
    await expect.poll(() => snapshots.length).toBe(1);
    clock.advance(3_600_000);
    await expect.poll(() => snapshots.length).toBe(2);
    expect(snapshots[1]).toMatchObject({
      providers: [{ provider: 'mock', callCount: 2, totalTokens: 8125, totalCost: 0.00823 }],
      totalCost: 0.00823,
    });
    clock.advance(7_200_000);
    await say(server);
    clock.advance(3_600_000);
    await expect.poll(() => snapshots.length).toBe(3);
  });
});

describe.each(['http', 'websocket'] as const)('over %s', (transport) => {
  function connect({ url }: TestServer, token: string) {
    if (transport === 'websocket') return createSocket({ url, token });
    return { call: createClient({ url, token }).call, [Symbol.dispose]() {} };
  }

  test('an agent can be introspected by its users, and by nobody else', async () => {
    await using server = await start({ perHourTokens: 1000, perDayUsd: 2 }, { budgets: { perDayTokens: 5000 } });
    await server.client.call('agents.create', { agentId: 'helper', config: {} });
    using client = connect(server, server.token);
    expect(await client.call('capabilities.introspect', {})).toMatchObject({
      agentId: 'default',
      enabled: true,
      budgets: [
        { cap: 'perTurnTokens', scope: 'agent', limit: 2_000_000, resetsInMs: null },
        { cap: 'perHourTokens', scope: 'agent', window: 'hour', unit: 'tokens', limit: 1000, used: 0, reserved: 0, remaining: 1000, warnAt: 800 },
        { cap: 'perDayUsd', scope: 'agent', window: 'day', unit: 'usd', limit: 2, warnAt: 1.6 },
        { cap: 'perDayTokens', scope: 'all', limit: 5000 },
      ],
      concurrency: { running: 0, queued: 0, max: 64 },
    });
    const bound = await server.as(['rpc'], { agents: ['helper'] });
    using helper = connect(server, bound.token);
    expect(await helper.call('capabilities.introspect', {})).toMatchObject({ agentId: 'helper' });
    const foreign = await helper.call('capabilities.introspect', { agentId: 'default' }).catch((error: unknown) => error);
    const unknown = await helper.call('capabilities.introspect', { agentId: 'nobody' }).catch((error: unknown) => error);
    expect([foreign, unknown]).toMatchObject([
      { code: 'not_found', message: 'Agent not found: default' },
      { code: 'not_found', message: 'Agent not found: nobody' },
    ]);
    const api = await server.as(['api']);
    await expect(createClient({ url: server.url, token: api.token }).call('capabilities.introspect', {})).rejects.toMatchObject({
      code: 'insufficient_scope',
    });
  });

  test('usage is reported to its own principal, and all of it to an operator', async () => {
    await using server = await start({});
    await server.client.call('agents.create', { agentId: 'helper', config: { model: 'mock/mock-other' } });
    const ada = await server.as(['rpc']);
    await ada.call('agent.execute', { message });
    await say(server, 'helper');
    using own = connect(server, ada.token);
    using root = connect(server, server.token);
    expect(await own.call('usage.report', { groupBy: ['agent'], timeZone: 'UTC' })).toMatchObject({
      timeZone: 'UTC',
      rows: [{ keys: ['default'], calls: 1 }],
      totals: { calls: 1 },
      truncated: false,
    });
    expect((await root.call('usage.report', { groupBy: ['agent'] })).totals.calls).toBe(2);
    expect(await root.call('usage.report', { groupBy: ['day', 'model'], agentId: 'helper', limit: 1 })).toMatchObject({
      rows: [{ keys: [expect.stringMatching(/^\d{4}-\d{2}-\d{2}$/), 'mock/mock-other'], calls: 1 }],
    });
    const bound = await server.as(['admin'], { agents: ['helper'] });
    using some = connect(server, bound.token);
    expect((await some.call('usage.report', { groupBy: ['agent'] })).rows.map(({ keys }) => keys[0])).toEqual(['helper']);
    await expect(some.call('usage.report', { agentId: 'default' })).rejects.toMatchObject({ code: 'not_found' });
    for (const params of [
      { groupBy: [] },
      { groupBy: ['day' as const, 'day' as const] },
      { timeZone: 'Mars/Olympus' },
      { limit: 0 },
      { sinceMs: 5, untilMs: 5 },
      { sinceMs: 0, untilMs: 367 * 86_400_000 },
      { untilMs: Number.MAX_SAFE_INTEGER },
    ])
      await expect(root.call('usage.report', params), JSON.stringify(params)).rejects.toMatchObject({ code: 'invalid_params' });
  });
});

test('a suspended agent is shown as such', async () => {
  await using server = await start({});
  await server.client.call('agents.create', { agentId: 'helper', config: {} });
  await server.client.call('agents.suspend', { agentId: 'helper' });
  expect(await server.client.call('capabilities.introspect', { agentId: 'helper' })).toMatchObject({ enabled: false });
});
