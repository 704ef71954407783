import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, sql, startFakeProvider, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterEach, expect, test } from 'vitest';
import * as z from 'zod';

const at = (text: string) => Temporal.Instant.from(text).epochMilliseconds;
const nano = (usd: number | null) => Math.round((usd ?? 0) * 1e9);
const prices = { input: 3.0003, output: 15.0007, cacheRead: 0.3001, cacheWrite: 3.7503 };

const servers: TestServer[] = [];
const closing: (() => Promise<void>)[] = [];
async function start(options: Parameters<typeof startTestServer>[0] = {}): Promise<TestServer> {
  const { config = {} } = options;
  const server = await startTestServer({
    ...options,
    config: {
      ...config,
      agents: { default: { model: 'mock/mock-fast' }, other: { model: 'odd/priced', budgets: { perHourTokens: 1_000_000 } }, ...config.agents },
    },
  });
  servers.push(server);
  return server;
}
afterEach(async () => {
  for (const server of servers.splice(0)) await server[Symbol.asyncDispose]();
  for (const close of closing.splice(0)) await close();
});

/** A server with a second provider whose prices leave remainders; both are the same fake. */
async function startPriced(options: Parameters<typeof startTestServer>[0] = {}): Promise<TestServer> {
  const odd = await startFakeProvider();
  closing.push(() => odd.close());
  queueOdd = (...answers) => odd.queue(...answers);
  return start({
    ...options,
    config: {
      ...options.config,
      providers: { odd: { type: 'anthropic', baseUrl: odd.url, apiKey: 'k', models: [{ id: 'priced', cost: prices }] } },
    },
  });
}
let queueOdd: TestServer['provider']['queue'] = () => undefined;

test('every view agrees with usage.report and the model calls to the last 1e-9 dollar, rolled up or not, and after a restart', async () => {
  const homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-test-'));
  closing.push(() => rm(homeDir, { recursive: true }));
  const clock = createStepClock();
  const server = await startPriced({ homeDir, clock });
  const { client, provider } = server;
  const say = (message: string, agentId: string, channelId: string) =>
    client.call('agent.execute', { message, agentId, sessionKey: { userId: 'ada', channelId } });
  provider.queue({ text: 'one', usage: { input: 1001, output: 17, cacheRead: 333 } });
  const { sessionKey, conversationRef } = await say('first', 'default', 'a');
  queueOdd({ text: 'two', usage: { input: 3753, output: 7, cacheRead: 1999, cacheWrite: 1703 } });
  await say('second', 'other', 'a');
  provider.queue({ text: 'three', usage: { input: 77, output: 3 } });
  await say('third', 'default', 'b');

  async function compare({ client }: TestServer) {
    const report = (groupBy: 'provider' | 'agent' | 'model' | 'conversation') => client.call('usage.report', { groupBy: [groupBy] });
    const [byProvider, byAgent, byModel, byConversation] = await Promise.all((['provider', 'agent', 'model', 'conversation'] as const).map(report));
    const total = await client.call('obs.billing.total', {});
    expect(total).toMatchObject({ callCount: 3, totalTokens: 1001 + 17 + 3753 + 7 + 77 + 3, unpriced: 0 });
    expect([nano(total.totalCost), nano(total.totalCacheSaved)]).toEqual([
      nano(byProvider?.totals.costUsd ?? null),
      nano(byProvider?.totals.savedUsd ?? null),
    ]);
    const { providers } = await client.call('obs.billing.byProvider', {});
    expect(providers.map(({ provider: name, totalCost, callCount }) => [name, nano(totalCost), callCount])).toEqual(
      byProvider?.rows.map(({ keys, costUsd, calls }) => [keys[0], nano(costUsd), calls]),
    );
    expect(providers.flatMap(({ provider: name, models }) => models.map(({ model, cost }) => [`${name}/${model}`, nano(cost)])).toSorted()).toEqual(
      byModel?.rows.map(({ keys, costUsd }) => [keys[0], nano(costUsd)]).toSorted(),
    );
    for (const { keys, costUsd, calls } of byAgent?.rows ?? []) {
      const agent = await client.call('obs.billing.byAgent', { agentId: keys[0] ?? '' });
      expect([nano(agent.totalCost), agent.callCount]).toEqual([nano(costUsd), calls]);
    }
    const ofRef = byConversation?.rows.find(({ keys }) => keys[0] === conversationRef);
    expect(nano((await client.call('obs.billing.bySession', { conversationRef })).totalCost)).toBe(nano(ofRef?.costUsd ?? null));
    // Both agents have a conversation of this key.
    const ofKey = await client.call('obs.billing.bySession', { sessionKey });
    expect(ofKey.callCount).toBe(2);
    expect(await client.call('obs.billing.bySession', { sessionKey: 'nobody:here' })).toMatchObject({ callCount: 0, totalCost: 0 });
    return total;
  }
  const before = await compare(server);
  const rows = z.array(z.object({ nano: z.number() })).parse(await sql(homeDir, 'SELECT cost_nano AS nano FROM model_call'));
  expect(nano(before.totalCost)).toBe(rows.reduce((sum, row) => sum + row.nano, 0));
  const stats = await client.call('obs.getCacheStats', {});
  expect(stats.cacheHitRate).toBeCloseTo((333 + 1999) / (1001 + 3753 + 77), 10);
  expect(stats.cacheEffectiveness).toBeCloseTo((333 + 1999) / (333 + 1999 + 1703), 10);
  const other = await client.call('obs.billing.byAgent', { agentId: 'other' });
  expect(other.budgetUsed).toEqual({
    perExecution: { limit: 2_000_000 },
    perHour: { used: 3760, limit: 1_000_000 },
    perDay: { used: 3760 },
  });
  expect(await client.call('obs.billing.byAgent', { agentId: 'unknown' })).toEqual({
    totalCost: 0,
    totalTokens: 0,
    callCount: 0,
    totalCacheSaved: 0,
    unpriced: 0,
  });
  clock.advance(360_000);
  await expect.poll(async () => sql(homeDir, 'SELECT 1 FROM model_call WHERE rolled_up = 0')).toEqual([]);
  expect(await compare(server)).toEqual(before);
  await server[Symbol.asyncDispose]();
  servers.length = 0;
  expect(await compare(await startPriced({ homeDir, clock }))).toEqual(before);
});

test('sums count from a duration ago, and survive a deleted conversation and a clock that is set back', async () => {
  const clock = createStepClock(at('2026-06-10T09:20:00Z'));
  const { client, provider } = await start({ clock });
  const sessionKey = { userId: 'ada', channelId: 'a' };
  provider.queue({ text: 'one', usage: { input: 100, output: 10 } }, { text: 'two', usage: { input: 1000, output: 10 } });
  const { conversationRef } = await client.call('agent.execute', { message: 'first', sessionKey });
  clock.advance(7_200_000);
  await client.call('agent.execute', { message: 'second', sessionKey });
  const tokens = async (sinceMs?: number) => (await client.call('obs.billing.total', sinceMs === undefined ? {} : { sinceMs })).totalTokens;
  expect([await tokens(), await tokens(3_600_000), await tokens(0)]).toEqual([1120, 1010, 1010]);
  await client.call('session.delete', { conversationRef });
  expect((await client.call('obs.billing.bySession', { sessionKey: 'ada:a' })).totalTokens).toBe(1120);
  expect((await client.call('obs.billing.bySession', { conversationRef, sinceMs: 60_000 })).totalTokens).toBe(1010);
  // Calls that are dated in the future by now are counted once the clock is there again.
  clock.step(-3_600_000);
  expect(await tokens()).toBe(110);
  clock.step(3_600_000);
  expect(await tokens()).toBe(1120);
});

test.each([
  ['of 23 hours', '2026-03-28T23:30:00Z', 23],
  ['of 25 hours', '2026-10-24T22:30:00Z', 25],
])('a day %s has 24 entries, and each token is counted once', async (_name, begin, hours) => {
  const clock = createStepClock(at(begin));
  const { client, provider } = await start({ clock, config: { scheduler: { cron: { defaultTimezone: 'Europe/Berlin' } } } });
  for (let n = 0; n < hours; n += 1) {
    provider.queue({ text: 'x', usage: { input: 99, output: 1 } });
    await client.call('agent.execute', { message: 'x' });
    if (n < hours - 1) clock.advance(3_600_000);
  }
  const entries = await client.call('obs.billing.usage24h', {});
  expect(entries.map(({ hour }) => hour)).toEqual(Array.from({ length: 24 }, (_, hour) => hour));
  expect(entries.map(({ tokens }) => tokens)).toEqual(entries.map(({ hour }) => (hour === 2 ? (hours - 23) * 100 : 100)));
});

test('synthetic turns are left out unless asked for, but usage.report counts what they cost', async () => {
  const { client, provider, heard } = await start({ config: { webhooks: { mappings: [{ id: 'hook', messageTemplate: '{{text}}' }] } } });
  const ended = heard('webhook:delivery');
  provider.queue({ text: 'tried', usage: { input: 500, output: 5 } });
  await client.call('webhooks.test', { mapping: 'hook', payload: {}, run: true });
  await expect.poll(() => ended.some(({ state }) => state === 'done')).toBe(true);
  provider.queue({ text: 'real', usage: { input: 100, output: 1 } });
  await client.call('agent.execute', { message: 'x' });
  const { rows } = await client.call('usage.report', { groupBy: ['operation'] });
  expect(rows.map(({ keys, calls }) => [keys[0], calls]).toSorted()).toEqual([
    ['evaluation', 1],
    ['interactive', 1],
  ]);
  expect((await client.call('obs.billing.total', {})).totalTokens).toBe(101);
  expect((await client.call('obs.billing.total', { includeSynthetic: true })).totalTokens).toBe(606);
  const sum = async (params: { includeSynthetic?: boolean }) =>
    (await client.call('obs.billing.usage24h', params)).reduce((total, { tokens }) => total + tokens, 0);
  expect([await sum({}), await sum({ includeSynthetic: true })]).toEqual([101, 606]);
  expect((await client.call('obs.billing.byAgent', { agentId: 'default' })).budgetUsed?.perHour).toEqual({ used: 606 });
});

test('a token limited to some agents sees their sums only; one without admin none', async () => {
  const server = await start({ config: { agents: { other: { model: 'mock/mock-fast' } } } });
  const { client, provider } = server;
  provider.queue({ text: 'a', usage: { input: 10, output: 1 } }, { text: 'b', usage: { input: 100, output: 1 } });
  const { conversationRef } = await client.call('agent.execute', { message: 'x', agentId: 'default' });
  await client.call('agent.execute', { message: 'x', agentId: 'other' });
  const limited = await server.as(['admin'], { agents: ['other'] });
  expect((await limited.call('obs.billing.total', {})).totalTokens).toBe(101);
  expect((await limited.call('obs.billing.byProvider', {})).providers).toMatchObject([{ totalTokens: 101 }]);
  expect((await limited.call('obs.billing.bySession', { conversationRef })).totalTokens).toBe(0);
  await expect(limited.call('obs.billing.byAgent', { agentId: 'default' })).rejects.toMatchObject({ code: 'not_found' });
  const rpc = await server.as(['rpc']);
  await expect(rpc.call('obs.billing.total', {})).rejects.toMatchObject({ code: 'insufficient_scope' });
  await expect(client.call('obs.billing.bySession', {})).rejects.toMatchObject({ code: 'invalid_params' });
});
