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
import { conversationRef as refOf } from '../conversations/sessions/conversation.ts';
import { AppError } from '../../kernel/app-error.ts';
import type { Db } from '../../kernel/db/db.ts';
import { answering, call } from '../delegation/subagents/run/testing/delegation-model.ts';
import { mortal } from './testing/mortal-db.ts';

const ada = { id: 1001, first_name: 'Ada' };
const bob = { id: 1002, first_name: 'Bob' };
const endpoint = { channelType: 'telegram', channelInstanceId: 'bot', conversationId: String(ada.id), conversationKind: 'direct' as const };
const quietHours = { start: '22:00', end: '07:00', timeZone: 'Europe/Berlin' };

let telegram: FakeTelegram;
let clock: StepClock;
let homeDir: string;
let server: TestServer;
beforeEach(async () => {
  // 21:30 in Berlin.
  clock = createStepClock(Date.parse('2026-11-27T20:30:00Z'));
  telegram = await startFakeTelegram({ now: () => clock.now() });
  homeDir = mkdtempSync(join(tmpdir(), 'gatehouse-removed-'));
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await telegram[Symbol.asyncDispose]();
  rmSync(homeDir, { recursive: true, force: true });
});

type Channels = NonNullable<NonNullable<TestServerOptions['config']>['channels']>;
type Telegram = Extract<Channels[string], { readonly type: 'telegram' }>;
async function start(more: Partial<Telegram> = {}, options: TestServerOptions = {}): Promise<void> {
  const bot: Telegram = { type: 'telegram', token: telegram.token, apiUrl: telegram.url, ...more };
  server = await startTestServer({
    clock,
    homeDir,
    provider: { answer: () => ({ text: 'Hello.' }) },
    config: {
      approvals: { rules: [{ tools: ['message'], action: 'auto', tainted: true }] },
      agents: Object.fromEntries(['default', 'night'].map((id) => [id, { model: 'mock/mock-fast', tools: { profile: 'full' as const } }])),
      scheduler: { cron: { builtIn: { memoryLifecycle: { enabled: false } } } },
      channels: { bot },
    },
    ...options,
  });
  await connected();
}
const connected = () => expect.poll(async () => (await server.client.call('channels.get', { channel_type: 'telegram' })).state).toBe('healthy');
const said = () => telegram.chats.said(ada.id).map(({ text }) => text);
const deliveries = async () => (await server.client.call('delivery.list', { channel_instance_id: 'bot' })).deliveries;
const states = async () => (await deliveries()).map(({ text, state, errorKind }) => [text, state, errorKind]).toReversed();
const later = <T>(read: () => T) =>
  expect.poll(() => {
    clock.advance(1_000);
    return read();
  });
const refOfAda = async (): Promise<string> => (await server.client.call('channels.messages', {})).messages[0]?.conversationRef ?? '';

/** Runs a job that delivers a text to ada. */
async function report(name: string, agentId = 'default'): Promise<void> {
  const conversation = refOf(agentId, 'token:root', { userId: 'desk', channelId: 'gateway' });
  const deliveryTarget: CronDeliveryTarget = {
    conversation: {
      conversationScope: {
        tenantId: 'default',
        agentId,
        partition: { kind: 'principal-key', principalId: 'token:root', sessionKey: 'desk:gateway' },
      },
      conversationRef: conversation,
    },
    destinationEndpoint: endpoint,
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

/** Runs a job; returns the record of the run when it has ended. */
async function runOf(jobName: string) {
  const { client } = server;
  const started = await client.call('cron.run', { jobName, mode: 'force' });
  const last = async () =>
    (await client.call('cron.runs', { jobName })).runs.find((run) => 'executionId' in started && run.executionId === started.executionId);
  await later(async () => (await last())?.terminalAtMs).toBeDefined();
  return last();
}
const ended = (why: string) => ({
  status: 'skipped',
  errorKind: 'authority',
  reason: `The authority that the job was added with has ended: ${why}.`,
});

test('a reset or deletion of a conversation ends what waits of it, that of an agent what is held, and nothing else', async () => {
  await start({ owners: [String(ada.id)], quietHours });
  telegram.chats.say(ada, 'hello');
  await expect.poll(said).toEqual(['Hello.']);
  // The channel is down: answers and reports queue up.
  const held = Promise.withResolvers<void>();
  server.provider.setAnswer(() => ({ text: 'Late.', after: held.promise }));
  telegram.chats.say(ada, 'and?');
  await expect.poll(() => server.provider.served()).toBe(2);
  await server.client.call('channels.disable', { channel_type: 'telegram' });
  held.resolve();
  await expect.poll(async () => (await states()).at(-1)).toEqual(['Late.', 'pending', null]);
  await report('queued');
  await report('queued of night', 'night');
  // 22:15: before the hourly pass, which ends answers that waited too long.
  clock.advance(45 * 60_000);
  await report('held');
  await report('held of night', 'night');
  const health = async () => {
    const { channels, bounds } = await server.client.call('channels.health', {});
    const { held: isHeld, queued } = channels.find(({ channelInstanceId }) => channelInstanceId === 'bot') ?? {};
    return { held: isHeld, queued, bounds };
  };
  expect(await health()).toEqual({ held: 2, queued: 3, bounds: { queued: 10_000, queuedOfConversation: 1_000, heldOfConversation: 100 } });
  const conversationRef = await refOfAda();
  await server.client.call('session.reset', { conversationRef });
  expect((await states()).map(([text]) => text)).toEqual([
    'Hello.',
    'Report queued',
    'Report queued of night',
    'Report held',
    'Report held of night',
  ]);
  await server.client.call('session.delete', { conversationRef });
  expect((await states()).map(([text]) => text)).toEqual(['Report queued', 'Report queued of night', 'Report held', 'Report held of night']);
  await server.client.call('agents.delete', { agentId: 'night' });
  await server.client.call('channels.enable', { channel_type: 'telegram' });
  await connected();
  await expect.poll(async () => (await states()).map(([, state]) => state)).toEqual(['held', 'held', 'held', 'rejected']);
  // The next morning.
  clock.step(10 * 60 * 60_000);
  await later(states).toEqual([
    ['Report queued', 'accepted', null],
    // It was held when the channel connected within the quiet hours.
    ['Report queued of night', 'rejected', 'agent_deleted'],
    ['Report held', 'accepted', null],
    ['Report held of night', 'rejected', 'agent_deleted'],
  ]);
  expect(said()).toEqual(['Hello.', 'Report queued', 'Report held']);
});

test('nobody writes to somebody whose pairing has ended, by any method, job or announcement', async () => {
  await start();
  telegram.chats.say(ada, 'hello');
  await expect.poll(said).toEqual([expect.stringMatching(/: [A-Z2-9]{8}$/)]);
  await server.client.call('channels.pair', { code: said()[0]?.slice(-8) ?? '' });
  await later(said).toHaveLength(2);
  telegram.chats.say(ada, 'hi');
  await later(said).toHaveLength(3);
  const conversationRef = await refOfAda();
  const [pairing] = (await server.client.call('channels.pairings', {})).pairings;
  await server.client.call('channels.unpair', { pairingId: pairing?.pairingId ?? '' });
  const refused = { code: 'precondition_failed', message: expect.stringContaining('may write') };
  const methods: readonly (() => Promise<unknown>)[] = [
    () => server.client.call('message.send', { endpoint, text: 'x' }),
    () => server.client.call('message.reply', { endpoint, text: 'x', message_id: '1' }),
    () => server.client.call('message.react', { endpoint, emoji: '👍', message_id: '1' }),
    () => server.client.call('message.edit', { endpoint, text: 'x', message_id: '1' }),
    () => server.client.call('message.attach', { endpoint, attachment_url: 'media:none' }),
    () => server.client.call('telegram.action', { action: 'sendTyping', endpoint }),
  ];
  for (const method of methods) await expect(method()).rejects.toMatchObject(refused);
  for (const to of [{ channel_type: 'telegram', channel_id: endpoint.conversationId }, {}])
    expect(
      await server.client.call('notification.send', { message: 'x', priority: 'critical', ...to }).then(
        ({ success }) => success,
        () => false,
      ),
    ).toBe(false);
  await report('of a job');
  await later(async () => (await states()).at(-1)).toEqual(['Report of a job', 'rejected', 'not_allowed']);
  // An agent that works in the conversation, as a token had it do.
  server.provider.setAnswer(
    answering(({ results }) => (results.length === 0 ? call('message', { action: 'send', text: 'x', to: endpoint }) : { text: results[0] ?? '' })),
  );
  await server.client.call('session.send', { conversationRef, text: 'Write to her.', mode: 'wait' }).then(
    ({ response }) => expect(response).toMatch(/may write|not found/i),
    () => undefined,
  );
  const announce = { announceChannelType: 'telegram', announceChannelId: endpoint.conversationId };
  server.provider.setAnswer(() => ({ text: 'The result.' }));
  await server.client.call('graph.execute', { nodes: [{ node_id: 'only', task: 'Work.' }], ...announce });
  await later(async () => (await states()).filter(([, state]) => state !== 'accepted').length).toBeGreaterThan(1);
  await later(async () => (await states()).some(([, state]) => state === 'pending' || state === 'sending')).toBe(false);
  expect(telegram.chats.said(ada.id)).toHaveLength(3);
});

test('an approval is given while the channel is away, and withdrawn when the pairing of its requester ends', async () => {
  await start();
  telegram.chats.say(ada, 'hello');
  await expect.poll(said).toHaveLength(1);
  await server.client.call('channels.pair', { code: said()[0]?.slice(-8) ?? '' });
  const schedule = { kind: 'at', at: '2099-01-01T00:00:00Z' } as const;
  server.provider.setAnswer(
    answering(({ question, results }) => {
      const name = /job-\w+/.exec(question)?.[0];
      return results.length > 0 ? { text: 'Well.' } : call('cron', { action: 'add', name, schedule, payload: { kind: 'delivery', text: 'Tea' } });
    }),
  );
  const pending = async () => (await server.client.call('admin.approval.pending', {})).total;
  const jobs = async () => (await server.client.call('cron.list', {})).jobs.map(({ name }) => name);
  const lastState = async () => (await server.client.call('channels.messages', {})).messages[0]?.state;

  telegram.chats.say(ada, 'job-approved');
  await later(pending).toBe(1);
  await server.client.call('channels.disable', { channel_type: 'telegram' });
  await server.client.call('admin.approval.resolveAll', { approved: true });
  await later(jobs).toContain('job-approved');
  await server.client.call('channels.enable', { channel_type: 'telegram' });
  await connected();
  await later(() => said().at(-1)).toBe('Well.');

  telegram.chats.say(ada, 'job-withdrawn');
  await later(pending).toBe(1);
  const [pairing] = (await server.client.call('channels.pairings', {})).pairings;
  await server.client.call('channels.unpair', { pairingId: pairing?.pairingId ?? '' });
  await later(pending).toBe(0);
  await later(lastState).toBe('done');
  expect(await jobs()).not.toContain('job-withdrawn');
  expect(await runOf('job-approved')).toMatchObject(ended(`${ada.id} is not paired with the channel "bot" any more`));
});

test('a job that an owner adds in a group runs while the owner, the group and its channel remain', async () => {
  const group = -1;
  await start({ owners: [String(ada.id)] });
  telegram.chats.addGroup({ id: group, title: 'Lab', members: [ada, bob] });
  const payload = { kind: 'agent_turn', message: 'Think of the tea.' };
  const answer = answering(({ question, results }) => {
    if (results.length > 0 || !question.includes('job-tea')) return { text: 'Well.' };
    if (question.includes('change')) return call('cron', { action: 'update', jobName: 'job-tea', payload });
    return call('cron', { action: 'add', name: 'job-tea', schedule: { kind: 'at', at: '2099-01-01T00:00:00Z' }, payload });
  });
  const saidThere = () => telegram.chats.said(group).map(({ text }) => text);
  server.provider.setAnswer(answer);
  telegram.chats.say(ada, `@${telegram.bot.username} job-tea`, { chat: group });
  await later(saidThere).toEqual(['Well.']);
  expect(await runOf('job-tea')).toMatchObject({ status: 'completed' });

  await server[Symbol.asyncDispose]();
  await start({ owners: [String(ada.id)] });
  expect(await runOf('job-tea')).toMatchObject({ status: 'completed' });

  const set = (key: string, value: unknown) => server.client.call('config.patch', { path: `channels.bot.${key}`, value, confirm: true });
  await set('owners', [String(bob.id)]);
  expect(await runOf('job-tea')).toMatchObject(ended(`${ada.id} is not an owner of the channel "bot" any more`));
  await connected();
  server.provider.setAnswer(answer);
  telegram.chats.say(bob, `@${telegram.bot.username} change job-tea`, { chat: group });
  await later(saidThere).toEqual(['Well.', 'Well.']);
  expect(await runOf('job-tea')).toMatchObject({ status: 'completed' });
  await set('groups.policy', 'disabled');
  expect(await runOf('job-tea')).toMatchObject(ended(`the group ${group} of the channel "bot" is not answered any more`));
  await server.client.call('channels.disable', { channel_type: 'telegram' });
  expect(await runOf('job-tea')).toMatchObject(ended('the channel "bot" was disabled, removed or replaced'));
});

test('the author of a job is checked once that is possible: after a failure of the storage, and by the next process', async () => {
  let failsAt: string | undefined;
  let failures = 0;
  const failing = (db: Db): Db => {
    const check = (name: string) => {
      if (name !== failsAt) return;
      failures += 1;
      throw new AppError('unavailable', 'The disk is full');
    };
    return {
      ...db,
      async read(one, input) {
        check(one.name);
        return db.read(one, input);
      },
      async write(one, input) {
        check(one.name);
        return db.write(one, input);
      },
      telemetry: (one, input) => db.telemetry(one, input),
      [Symbol.asyncDispose]: () => db[Symbol.asyncDispose](),
    };
  };
  const owners = [String(ada.id)];
  const dm = { policy: 'pairing' as const };
  await start({ owners }, { db: failing });
  const addJob = answering(({ question, results }) => {
    const name = /job-\w+/.exec(question)?.[0];
    if (results.length > 0 || name === undefined) return { text: results[0]?.includes('full') === true ? 'Not now.' : 'Well.' };
    return call('cron', {
      action: 'add',
      name,
      schedule: { kind: 'at', at: '2099-01-01T00:00:00Z' },
      payload: { kind: 'delivery', text: `Text of ${name}` },
    });
  });
  const names = async () => (await server.client.call('cron.list', {})).jobs.map(({ name }) => name);
  const lastRun = async (jobName: string) => (await server.client.call('cron.runs', { jobName })).runs[0];
  server.provider.setAnswer(addJob);
  // A job that cannot be stored does not exist, and its author is notified.
  failsAt = 'cron.add';
  telegram.chats.say(ada, 'job-first');
  await later(said).toHaveLength(1);
  expect([failures > 0, await names()]).toEqual([true, []]);
  failsAt = undefined;
  for (const [index, name] of ['job-second', 'job-third'].entries()) {
    telegram.chats.say(ada, name);
    await later(said).toHaveLength(2 + index);
  }
  expect((await names()).toSorted()).toEqual(['job-second', 'job-third']);
  // The process ends within a run, and the next one continues it when Ada has ceased to be an owner.
  await server[Symbol.asyncDispose]();
  const dying = mortal('cron.finish', false);
  await start({ owners }, { db: dying.wrap });
  await server.client.call('cron.run', { jobName: 'job-second', mode: 'force' });
  await dying.died;
  await Promise.allSettled([server[Symbol.asyncDispose]()]);
  await start({ dm }, { db: failing });
  await later(async () => (await lastRun('job-second'))?.terminalAtMs).toBeDefined();
  expect(await lastRun('job-second')).toMatchObject(ended(`${ada.id} is not an owner of the channel "bot" any more`));
  expect(said()).toHaveLength(3);
  await server[Symbol.asyncDispose]();
  await start({ owners }, { db: failing });
  expect(await runOf('job-third')).toMatchObject({ status: 'completed' });
  expect((await server.client.call('inbox.list', {})).messages).toMatchObject([{ text: 'Text of job-third' }]);
});
