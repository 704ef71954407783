import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, type StepClock, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';

const canary = 'CANARY-7f3a';
const config = {
  agents: { default: { model: 'mock/mock-fast' }, other: { model: 'mock/mock-fast' } },
  webhooks: { mappings: [{ id: 'hook', match: { path: 'hook' }, messageTemplate: '{{text}}' }] },
};

let clock: StepClock;
let homeDir: string;
let server: TestServer;
async function start(): Promise<void> {
  server = await startTestServer({ clock, homeDir, config });
}
beforeEach(async () => {
  clock = createStepClock();
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-test-'));
  await start();
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await rm(homeDir, { recursive: true });
});
async function restart(): Promise<void> {
  await server[Symbol.asyncDispose]();
  await start();
}

const say = (channelId: string, agentId = 'default') =>
  server.client.call('agent.execute', { message: `${canary} question`, agentId, sessionKey: { userId: 'ada', channelId } });
const counts = async (client = server.client) =>
  (await client.call('obs.channels.all', {})).channels
    .map(({ channelType, channelId, messagesReceived, messagesSent }) => [channelType, channelId, messagesReceived, messagesSent])
    .toSorted();

test('channels count messages of clients, over a restart, and show which are quiet', async () => {
  await say('desk');
  await say('desk', 'other');
  await say('phone');
  const { channel } = await server.client.call('obs.channels.get', { channelId: 'desk' });
  expect(channel).toEqual({ channelType: 'gateway', channelId: 'desk', lastActiveAt: clock.now(), messagesSent: 2, messagesReceived: 2 });
  const before = await counts();
  expect(before).toEqual([
    ['gateway', 'desk', 2, 2],
    ['gateway', 'phone', 1, 1],
  ]);
  await restart();
  expect(await counts()).toEqual(before);
  clock.advance(400_000);
  await say('phone');
  expect((await server.client.call('obs.channels.stale', {})).stale.map(({ channelId }) => channelId)).toEqual(['desk']);
  expect((await server.client.call('obs.channels.stale', { thresholdMs: 0 })).stale).toHaveLength(2);
  // The clock goes back: nothing is quiet, and nothing fails.
  clock.step(-7_200_000);
  expect((await server.client.call('obs.channels.stale', {})).stale).toEqual([]);
  expect((await server.client.call('obs.channels.get', { channelId: 'phone' })).channel?.messagesReceived).toBe(2);
  const limited = await server.as(['admin'], { agents: ['other'] });
  expect(await counts(limited)).toEqual([['gateway', 'desk', 1, 1]]);
});

test('a channel counts the deliveries of a webhook once each, without tests', async () => {
  const ended = server.heard('webhook:delivery');
  await server.client.call('webhooks.test', { mapping: 'hook', payload: { text: 'x' }, run: true });
  await expect.poll(() => ended.filter(({ state }) => state === 'done').length).toBe(1);
  expect(await counts()).toEqual([]);
  const { deliveryId } = await server.client.call('webhooks.test', { mapping: 'hook', payload: { text: 'x' }, run: true });
  await server.client.call('webhooks.replay', { deliveryId: deliveryId ?? '' });
  await expect.poll(() => ended.filter(({ state }) => state === 'done').length).toBe(3);
  expect(await counts()).toEqual([['webhook', 'hook', 1, 0]]);
  // The turn is a part of its delivery.
  const { deliveries } = await server.client.call('obs.delivery.recent', {});
  expect(deliveries.map(({ channelType, channelId, status }) => [channelType, channelId, status])).toEqual([['webhook', 'hook', 'success']]);
  expect((await server.client.call('obs.delivery.stats', { includeSynthetic: true })).total).toBe(3);
});

test("diagnostics show a caller's own conversations without content, and admins all", async () => {
  const ada = await server.as(['rpc']);
  const eve = await server.as(['rpc']);
  const { conversationRef } = await ada.call('agent.execute', { message: `${canary} one`, sessionKey: { userId: 'ada', channelId: 'desk' } });
  await eve.call('agent.execute', { message: `${canary} two`, agentId: 'other' });
  const look = (client: typeof ada, params: { category?: 'usage' | 'message'; sinceMs?: number; limit?: number } = {}) =>
    client.call('obs.diagnostics', params);
  clock.advance(2000);
  await expect.poll(async () => (await look(ada)).counts).toEqual({ usage: 1, webhook: 0, message: 2, session: 1 });
  const { events } = await look(ada);
  expect(new Set(events.map((event) => event.conversationRef))).toEqual(new Set([conversationRef]));
  expect(events.find(({ eventType }) => eventType === 'message:sent')?.data).toMatchObject({ origin: 'rpc', finishReason: 'stop' });
  expect(events.find(({ category }) => category === 'usage')?.data).toMatchObject({ provider: 'mock', model: 'mock-fast' });
  expect(JSON.stringify(events)).not.toContain(canary);
  expect((await look(ada, { category: 'usage' })).events).toHaveLength(1);
  expect((await look(ada, { limit: 1 })).events).toHaveLength(1);
  expect((await look(ada, { sinceMs: 1000 })).counts.message).toBe(0);
  const all = await server.client.call('obs.diagnostics', {});
  expect(all.counts).toMatchObject({ usage: 2, message: 4, session: 2 });
  expect(JSON.stringify(all)).not.toContain(canary);
  const limited = await server.as(['admin'], { agents: ['other'] });
  expect((await look(limited)).counts.message).toBe(2);
  await restart();
  expect((await server.client.call('obs.diagnostics', {})).counts.message).toBe(4);
});

test('a reset begins the views from zero and leaves reports, budgets and the audit alone', async () => {
  const heard = server.heard('observability:reset');
  await say('desk');
  clock.advance(2000);
  const cost = async () => (await server.client.call('usage.report', {})).totals.costUsd;
  const before = await cost();
  const audit = async () => (await server.client.call('obs.audit.query', { actionType: 'obs.reset' })).rows;
  expect(await server.client.call('obs.reset.table', { table: 'channels' })).toEqual({ reset: true, table: 'channels', rowsDeleted: 1 });
  expect(await counts()).toEqual([]);
  expect((await server.client.call('obs.billing.total', {})).callCount).toBe(1);
  expect((await server.client.call('obs.diagnostics', {})).counts.message).toBe(2);
  const { rowsDeleted } = await server.client.call('obs.reset', {});
  expect(rowsDeleted).toMatchObject({ tokenUsage: 0, diagnostics: 0, channels: 0 });
  expect((await server.client.call('obs.billing.total', {})).callCount).toBe(0);
  expect((await server.client.call('obs.getCacheStats', {})).cacheHitRate).toBe(0);
  expect((await server.client.call('obs.diagnostics', {})).counts).toEqual({ usage: 0, webhook: 0, message: 0, session: 0 });
  expect((await server.client.call('obs.delivery.stats', {})).total).toBe(0);
  expect(await cost()).toBe(before);
  expect((await audit()).map(({ target, classification }) => [target, classification])).toEqual([
    ['all', 'destructive'],
    ['channels', 'destructive'],
  ]);
  expect(heard.map(({ table }) => table)).toEqual(['channels', 'all']);
  await restart();
  expect((await server.client.call('obs.billing.total', {})).callCount).toBe(0);
  clock.advance(1000);
  await say('desk');
  expect((await server.client.call('obs.billing.total', {})).callCount).toBe(1);
  expect((await server.client.call('obs.delivery.stats', {})).total).toBe(1);
  // After the clock went back, what follows is still counted.
  clock.step(-3_600_000);
  await say('desk');
  expect((await server.client.call('obs.billing.total', {})).callCount).toBe(1);
  clock.advance(3_600_000);
  expect((await server.client.call('obs.billing.total', {})).callCount).toBeGreaterThan(0);
});

test('a reset while a turn runs loses nothing of the turn', async () => {
  server.provider.queue({ text: 'slow', delayMs: 300 });
  const turn = say('desk');
  await expect.poll(() => server.provider.requests.length).toBe(1);
  await server.client.call('obs.reset', {});
  await turn;
  expect(await counts()).toEqual([['gateway', 'desk', 0, 1]]);
});

test('resets are for administrators of all agents', async () => {
  const limited = await server.as(['admin'], { agents: ['other'] });
  await expect(limited.call('obs.reset', {})).rejects.toMatchObject({ code: 'denied' });
  const rpc = await server.as(['rpc']);
  await expect(rpc.call('obs.reset.table', { table: 'traces' })).rejects.toMatchObject({ code: 'insufficient_scope' });
  await expect(server.client.call('obs.reset.table', { table: 'audit' as 'traces' })).rejects.toMatchObject({ code: 'invalid_params' });
});

test('deliveries show how turns of clients ended, with cost and latency, over a restart', async () => {
  await say('desk');
  server.provider.queue({ status: 400, error: { message: `${canary} refused` } });
  await say('phone').catch(() => undefined);
  const { deliveries } = await server.client.call('obs.delivery.recent', {});
  expect(deliveries.map(({ channelType, channelId, status }) => [channelType, channelId, status])).toEqual([
    ['gateway', 'phone', 'error'],
    ['gateway', 'desk', 'success'],
  ]);
  expect(deliveries[1]).toMatchObject({ agentId: 'default', sessionKey: 'ada:desk', llmCalls: 1, toolCalls: 0 });
  const total = await server.client.call('obs.billing.total', {});
  expect(deliveries.reduce((sum, { costTotal }) => sum + Math.round((costTotal ?? 0) * 1e9), 0)).toBe(Math.round(total.totalCost * 1e9));
  const stats = { total: 2, attempted: 2, success: 1, error: 1, timeout: 0, filtered: 0, cancelled: 0 };
  expect(await server.client.call('obs.delivery.stats', {})).toMatchObject(stats);
  clock.advance(3_600_000);
  expect(await server.client.call('obs.delivery.stats', { sinceMs: 60_000 })).toMatchObject({ total: 0, avgLatencyMs: 0 });
  expect((await server.client.call('obs.delivery.recent', { channelId: 'desk', channelType: 'gateway' })).deliveries).toHaveLength(1);
  const limited = await server.as(['admin'], { agents: ['other'] });
  expect((await limited.call('obs.delivery.stats', {})).total).toBe(0);
  await restart();
  expect(await server.client.call('obs.delivery.stats', {})).toMatchObject(stats);
  // A deleted conversation leaves its counts.
  await server.client.call('session.delete', { sessionKey: 'ada:desk' });
  expect(await server.client.call('obs.delivery.stats', {})).toMatchObject(stats);
  expect((await server.client.call('obs.reset.table', { table: 'traces' })).rowsDeleted).toBe(2);
  expect((await server.client.call('obs.delivery.stats', {})).total).toBe(0);
});

test('contexts and summaries of conversations are counted, never shown', async () => {
  for (let n = 0; n < 8; n += 1)
    await server.client.call('agent.execute', { message: `${canary} ${n} ${'many words '.repeat(200)}`, sessionKey: 'ada:desk' });
  const pipeline = await server.client.call('obs.context.pipeline', { limit: 3 });
  expect(pipeline).toHaveLength(3);
  expect(pipeline[0]).toMatchObject({ agentId: 'default', sessionKey: 'ada:desk', verdict: 'fits' });
  expect(pipeline[0]?.budgetUtilization).toBeGreaterThan(0);
  server.provider.queue(...Array.from({ length: 8 }, () => ({ text: `${canary} summary` })));
  await server.client.call('session.compact', { sessionKey: 'ada:desk' });
  const dag = await server.client.call('obs.context.dag', {});
  expect(dag).toMatchObject([{ agentId: 'default', sessionKey: 'ada:desk', maxDepth: 0 }]);
  expect(dag[0]?.leafSummaries).toBeGreaterThan(0);
  expect(JSON.stringify([pipeline, dag])).not.toContain(canary);
  expect(await server.client.call('obs.context.dag', { agentId: 'other' })).toEqual([]);
});
