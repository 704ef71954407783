import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CronDeliveryTarget } from '@gatehouse/contract';
import {
  createStepClock,
  type FakeTelegram,
  startFakeTelegram,
  startTestServer,
  type StepClock,
  type TestServer,
  type TestServerOptions,
} from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createBell, createObeyingModel, follow } from '../access/approvals/testing/obeying-model.ts';
import { conversationRef } from '../conversations/sessions/conversation.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const ada = { id: 1001, first_name: 'Ada' };
const quietHours = { start: '22:00', end: '07:00', timeZone: 'Europe/Berlin' };

let telegram: FakeTelegram;
let clock: StepClock;
let homeDir: string;
let server: TestServer;
beforeEach(async () => {
  // 22:30 in Berlin.
  clock = createStepClock(Date.parse('2026-11-27T21:30:00Z'));
  telegram = await startFakeTelegram({ now: () => clock.now() });
  homeDir = mkdtempSync(join(tmpdir(), 'gatehouse-quiet-'));
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await telegram[Symbol.asyncDispose]();
  rmSync(homeDir, { recursive: true, force: true });
});

type Config = NonNullable<TestServerOptions['config']>;
async function start(more: Config = {}, options: TestServerOptions = {}): Promise<void> {
  const bot = { type: 'telegram' as const, token: telegram.token, apiUrl: telegram.url, owners: [String(ada.id)], quietHours };
  server = await startTestServer({
    clock,
    homeDir,
    provider: { answer: () => ({ text: 'Hello.' }) },
    config: {
      agents: { default: { model: 'mock/mock-fast' }, night: { model: 'mock/mock-fast' } },
      scheduler: { cron: { builtIn: { memoryLifecycle: { enabled: false } } } },
      channels: { bot },
      ...more,
    },
    ...options,
  });
  await connected();
}
const connected = () => expect.poll(async () => (await server.client.call('channels.get', { channel_type: 'telegram' })).state).toBe('healthy');
const said = () => telegram.chats.said(ada.id).map(({ text }) => text);
const later = <T>(read: () => T) =>
  expect.poll(() => {
    clock.advance(1_000);
    return read();
  });

/** Runs a job that delivers a text to ada. */
async function report(name: string, agentId = 'default'): Promise<void> {
  const deliveryTarget: CronDeliveryTarget = {
    conversation: {
      conversationScope: {
        tenantId: 'default',
        agentId,
        partition: { kind: 'principal-key', principalId: 'token:root', sessionKey: 'desk:gateway' },
      },
      conversationRef: conversationRef(agentId, 'token:root', { userId: 'desk', channelId: 'gateway' }),
    },
    destinationEndpoint: { channelType: 'telegram', channelInstanceId: 'bot', conversationId: String(ada.id), conversationKind: 'direct' },
  };
  await server.client.call('cron.add', {
    name,
    agentId,
    schedule: { kind: 'at', at: '2099-01-01T00:00:00Z' },
    payload: { kind: 'delivery', text: `Report ${name}` },
    deliveryTarget,
  });
  await server.client.call('cron.run', { jobName: name, mode: 'force' });
  await expect.poll(async () => (await deliveries()).some(({ text }) => text === `Report ${name}`)).toBe(true);
}
const deliveries = async () => (await server.client.call('delivery.list', { channel_instance_id: 'bot' })).deliveries;
/** Waits for the confirmation of what was sent: time that passes before it would be a time-out. */
const sent = (...texts: readonly string[]) =>
  expect.poll(async () => (await deliveries()).filter(({ state }) => state === 'accepted').map(({ text }) => text)).toEqual(texts.toReversed());
const states = async () => (await deliveries()).map(({ text, state }) => `${text} ${state}`).toReversed();

test('a report waits for the morning and is shown as held, while answers are sent and the channel stays connected', async () => {
  await start();
  await report('one');
  const until = Date.parse('2026-11-28T06:00:00Z');
  expect(await deliveries()).toMatchObject([{ state: 'held', errorKind: 'quiet_hours', notBefore: until }]);
  expect((await server.client.call('cron.runs', { jobName: 'one' })).runs).toMatchObject([{ deliveryStatus: 'unknown', deliveryPending: true }]);
  const health = async () => (await server.client.call('channels.health', {})).channels.find(({ channelInstanceId }) => channelInstanceId === 'bot');
  expect(await health()).toMatchObject({ state: 'healthy', held: 1 });
  expect(await server.client.call('delivery.queue.status', {})).toMatchObject({ pending: 1, held: 1 });
  telegram.chats.say(ada, 'are you there?');
  await sent('Hello.');
  // She is awake.
  await report('two');
  await sent('Hello.', 'Report two');
  expect(said()).toEqual(['Hello.', 'Report two']);
  clock.advance(hourMs);
  await report('three');
  await server[Symbol.asyncDispose]();
  await start();
  const disconnected = server.heard('channel:deregistered');
  await server.client.call('config.patch', { path: 'channels.bot.quietHours.end', value: '08:00', confirm: true });
  clock.step(until - clock.now() + minuteMs);
  clock.advance(minuteMs);
  await expect.poll(deliveries).toMatchObject([{ notBefore: until + hourMs }, { state: 'accepted' }, { state: 'accepted' }, { state: 'held' }]);
  await server.client.call('config.patch', { path: 'channels.bot.quietHours', value: null, confirm: true });
  await later(said).toEqual(['Hello.', 'Report two', 'Report one', 'Report three']);
  expect(disconnected).toEqual([]);
  expect((await server.client.call('cron.runs', { jobName: 'one' })).runs).toMatchObject([{ deliveryStatus: 'accepted' }]);
  expect(await health()).toMatchObject({ held: 0 });
});

test('what is held is not sent for a deleted agent, to somebody who was removed, or while its agent is suspended', async () => {
  await start();
  telegram.chats.say(ada, 'hello');
  await sent('Hello.');
  clock.advance(hourMs);
  await report('of night', 'night');
  await report('held');
  await server.client.call('agents.suspend', { agentId: 'default' });
  await server.client.call('agents.delete', { agentId: 'night' });
  clock.step(10 * hourMs);
  await later(async () => states()).toEqual(['Hello. accepted', 'Report of night rejected', 'Report held held']);
  await server.client.call('config.patch', { path: 'channels.bot.owners', value: [], confirm: true });
  await connected();
  await server.client.call('agents.resume', { agentId: 'default' });
  await later(async () => states()).toEqual(['Hello. accepted', 'Report of night rejected', 'Report held rejected']);
  expect((await deliveries()).map(({ errorKind }) => errorKind)).toEqual(['not_allowed', 'agent_deleted', null]);
  expect(said()).toEqual(['Hello.']);
});

test('a gate of a graph asks at once when it would end in the night, and nothing in the morning when it was answered elsewhere', async () => {
  await start();
  telegram.chats.say(ada, 'hello');
  await sent('Hello.');
  clock.advance(hourMs);
  const gateOf = (task: string, timeout_minutes: number) =>
    server.client.call('graph.execute', {
      nodes: [{ node_id: 'gate', task, type_id: 'approval-gate', type_config: { timeout_minutes } }],
      announceChannelType: 'telegram',
      announceChannelId: String(ada.id),
    });
  await gateOf('Now?', 60);
  await later(said).toEqual(['Hello.', expect.stringContaining('Now?')]);
  const { graphId } = await gateOf('Tomorrow?', 24 * 60);
  const questions = async () => (await states()).filter((state) => state.includes('Tomorrow?'));
  await expect.poll(questions).toEqual([expect.stringMatching(/ held$/)]);
  await server.client.call('graph.answer', { graphId, nodeId: 'gate', answer: 'yes' });
  await expect.poll(questions).toEqual([]);
  await gateOf('Stopped?', 24 * 60).then((stopped) => server.client.call('graph.cancel', { graphId: stopped.graphId }));
  await expect.poll(async () => (await states()).filter((state) => state.includes('Stopped?'))).toEqual([]);
  clock.step(10 * hourMs);
  await later(async () => (await deliveries()).some(({ state }) => state === 'held' || state === 'pending')).toBe(false);
  expect(said().join('\n')).not.toMatch(/Tomorrow\?|Stopped\?/);
});

test('what graphs, sub-agents, heartbeats and webhooks report is held, and sent in its order', async () => {
  const target = { channelType: 'telegram', channelInstanceId: 'bot', conversationId: String(ada.id), conversationKind: 'direct' as const };
  await start({
    agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' }, heartbeat: { enabled: true, intervalMs: 86_400_000, target } } },
    webhooks: { mappings: [{ id: 'hook', messageTemplate: '{{text}}', target }] },
  });
  telegram.chats.say(ada, 'hello');
  await sent('Hello.');
  clock.advance(hourMs);
  const held = async () => (await deliveries()).filter(({ state }) => state === 'held').map(({ text }) => text);
  const announce = { announceChannelType: 'telegram', announceChannelId: String(ada.id) };
  server.provider.setAnswer(() => ({ text: 'The result.' }));
  await server.client.call('graph.execute', { nodes: [{ node_id: 'only', task: 'Work.' }], ...announce });
  await later(async () => (await held()).length).toBe(1);
  await server.client.call('session.spawn', { task: 'Work.', ...announce });
  await later(async () => (await held()).length).toBe(2);
  server.provider.setAnswer(() => ({ text: 'The beat has something to say.' }));
  const payload = { kind: 'heartbeat_event', text: 'The oven is hot.', wakeMode: 'now' } as const;
  await server.client.call('cron.add', { name: 'oven', schedule: { kind: 'at', at: '2099-01-01T00:00:00Z' }, payload });
  await server.client.call('cron.run', { jobName: 'oven', mode: 'force' });
  await later(async () => (await held()).length).toBe(3);
  server.provider.setAnswer(() => ({ text: 'The hook was called.' }));
  await fetch(`${server.url}/hooks/x`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ text: 'Ring' }) });
  await later(async () => (await held()).length).toBe(4);
  const inOrder = [/^Graph gr_.*The result\.$/s, /^Sub-agent .*The result\.$/s, /^The beat/, /^The hook/].map((text) => expect.stringMatching(text));
  expect((await held()).toReversed()).toEqual(inOrder);
  expect(said()).toEqual(['Hello.']);
  clock.step(9 * hourMs);
  await later(said).toEqual(['Hello.', ...inOrder]);
});

test('an owner is asked about the work of others after quiet hours, unless it would be too late or was decided meanwhile', async () => {
  const eve = { id: 1002, first_name: 'Eve' };
  let rings = 0;
  const model = createObeyingModel();
  const bell = createBell(() => (rings += 1));
  const start_ = (timeoutMs: number) => {
    const bot = { type: 'telegram' as const, token: telegram.token, apiUrl: telegram.url, owners: [String(ada.id)], quietHours };
    const agent = { model: 'mock/mock-fast', tools: { profile: 'full' as const }, originTools: { webhook: ['bell'] } };
    return start(
      {
        approvals: { unattendedTimeoutMs: timeoutMs, approvalCacheMs: 0, rules: [{ tools: ['bell'], action: 'ask' }] },
        agents: { default: agent },
        channels: { bot: { ...bot, dm: { policy: 'open' } } },
      },
      { tools: [bell], provider: { answer: ({ body }) => model.answer(body) } },
    );
  };
  const toEve = () => telegram.chats.said(eve.id).map(({ text }) => text);
  const heldQuestions = async () =>
    (await deliveries()).filter(({ state, endpoint }) => state === 'held' && endpoint.conversationId === String(ada.id));
  await start_(20 * hourMs);
  telegram.chats.say(ada, 'hello');
  await later(said).toEqual(['Done']);
  clock.advance(hourMs);
  telegram.chats.say(eve, follow(['bell', {}]));
  await later(toEve).toEqual([expect.stringContaining('for an approval of the operator')]);
  expect(await heldQuestions()).toMatchObject([{ errorKind: 'quiet_hours', notBefore: Date.parse('2026-11-28T06:00:00Z') }]);
  await server.client.call('admin.approval.resolveAll', { approved: false, approvedBy: 'root' });
  await later(toEve).toHaveLength(3);
  expect(await heldQuestions()).toEqual([]);
  telegram.chats.say(eve, follow(['bell', {}]));
  await later(toEve).toHaveLength(4);
  expect(await heldQuestions()).toHaveLength(1);
  expect(said()).toEqual(['Done']);
  // The question survives a restart, and is sent in the morning alone: the first one is not needed any more.
  await server[Symbol.asyncDispose]();
  clock.step(Date.parse('2026-11-28T06:01:00Z') - clock.now());
  await start_(60_000);
  await later(() => said().at(-1)).toContain('waits for an approval for somebody else');
  expect(said()).toHaveLength(2);
  const code = /code (\w{8})/.exec(said().at(-1) ?? '')?.[1];
  telegram.chats.say(ada, `/approve ${code}`);
  await later(() => toEve().slice(4)).toEqual(['The approval was given.', 'Done']);
  expect(rings).toBe(1);
  await later(() => said().at(-1)).toContain('was given by');
  // In the next night, a question that expires in a minute does not wait.
  clock.step(Date.parse('2026-11-28T23:00:00Z') - clock.now());
  const before = said().length;
  telegram.chats.say(eve, follow(['bell', {}]));
  await later(() => said().slice(before).join()).toContain('waits for an approval for somebody else');
});
