import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CronDeliveryTarget } from '@gatehouse/contract';
import {
  createStepClock,
  hasIrcServer,
  type IrcPerson,
  type IrcServer,
  joinIrc,
  startIrcServer,
  startTestServer,
  type StepClock,
  type TestServer,
  type TestServerOptions,
} from '@gatehouse/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { conversationRef } from '../conversations/sessions/conversation.ts';
import { answering, call } from '../delegation/subagents/run/testing/delegation-model.ts';
import { mortal } from './testing/mortal-db.ts';

type Config = NonNullable<TestServerOptions['config']>;
type Endpoint = CronDeliveryTarget['destinationEndpoint'];

let ircd: IrcServer;
let homeDir: string;
let clock: StepClock;
let ada: IrcPerson;
const servers: TestServer[] = [];

/** What ngIRCd vouches for. */
const adaId = 'ada!~ada@127.0.0.1';
const lab: Endpoint = { channelType: 'irc', channelInstanceId: 'net', conversationId: '#lab', conversationKind: 'shared' };

function configOf(more: Config = {}): Config {
  const net = {
    type: 'irc' as const,
    host: '127.0.0.1',
    port: ircd.port,
    tls: false,
    nick: 'gate',
    channels: ['#lab'],
    dm: { policy: 'open' as const },
  };
  return {
    gateway: { drainTimeoutMs: 20 },
    agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' } } },
    scheduler: { cron: { builtIn: { memoryLifecycle: { enabled: false } } } },
    channels: { net },
    ...more,
  };
}

const ownedBy = (owners: string[]): Config['channels'] => {
  const { net } = configOf().channels ?? {};
  return net === undefined ? {} : { net: { ...net, owners } };
};

async function start(options: TestServerOptions = {}): Promise<TestServer> {
  const server = await startTestServer({ homeDir, clock, ...options, config: configOf(options.config) });
  servers.push(server);
  if (options.config?.channels === undefined)
    await expect.poll(async () => (await server.client.call('channels.get', { channel_type: 'irc' })).state).toBe('healthy');
  return server;
}
const stop = async (server: TestServer | undefined) => {
  try {
    await server?.[Symbol.asyncDispose]();
  } catch {}
};
/** Polls while time passes, as IRC takes a line a second. */
const later = <T>(read: () => T | Promise<T>) =>
  expect.poll(() => {
    clock.advance(200);
    return read();
  });
/** A nick that a dead process still has is followed by another one. */
const heard = () => ada.messages.map((line) => line.replace(/^gate_* /, 'gate '));
const targetTo = (destinationEndpoint: Endpoint, principalId = 'token:root'): CronDeliveryTarget => ({
  conversation: {
    conversationScope: { tenantId: 'default', agentId: 'default', partition: { kind: 'principal-key', principalId, sessionKey: 'desk:gateway' } },
    conversationRef: conversationRef('default', principalId, { userId: 'desk', channelId: 'gateway' }),
  },
  destinationEndpoint,
});
const never = { kind: 'at', at: '2099-01-01T00:00:00Z' } as const;
const add = (server: TestServer, endpoint = lab) =>
  server.client.call('cron.add', {
    name: 'report',
    schedule: never,
    payload: { kind: 'agent_turn', message: 'Report.' },
    deliveryTarget: targetTo(endpoint),
  });
const run = (server: TestServer) => server.client.call('cron.run', { jobName: 'report', mode: 'force' });
const statusOf = async (server: TestServer) => {
  const [last] = (await server.client.call('cron.runs', { jobName: 'report' })).runs;
  return [last?.status, last?.deliveryPending === true ? 'pending' : last?.deliveryStatus];
};
const alerts = async (server: TestServer) => (await server.client.call('inbox.list', {})).messages.map(({ text }) => text);

describe.skipIf(!hasIrcServer('ngircd'))('chats as destinations', () => {
  beforeAll(async () => {
    ircd = await startIrcServer('ngircd');
  });
  afterAll(() => ircd[Symbol.asyncDispose]());
  beforeEach(async () => {
    clock = createStepClock(Date.UTC(2026, 8, 21, 12));
    homeDir = mkdtempSync(join(tmpdir(), 'gatehouse-deliveries-'));
    ada = await joinIrc(ircd.port, 'ada', { channels: ['#lab'] });
  });
  afterEach(async () => {
    ada[Symbol.dispose]();
    for (const server of servers.splice(0)) await stop(server);
    rmSync(homeDir, { recursive: true, force: true });
  });

  test('a job delivers to a channel, and its run says so', async () => {
    const server = await start();
    server.provider.setAnswer(() => ({ text: 'All is well.' }));
    await add(server);
    await run(server);
    await later(heard).toEqual(['gate #lab All is well.']);
    await later(() => statusOf(server)).toEqual(['completed', 'accepted']);
    expect((await server.client.call('cron.list', {})).jobs[0]?.lastRun).toMatchObject({ deliveryStatus: 'accepted' });
    expect(await alerts(server)).toEqual([]);
    // Silence is not sent.
    server.provider.setAnswer(() => ({ text: 'NO_REPLY' }));
    await run(server);
    await later(() => statusOf(server)).toEqual(['completed', 'suppressed']);
    expect((await server.client.call('delivery.list', { channel_instance_id: 'net' })).total).toBe(1);
  });

  test('an endpoint is checked in all its fields, and by who names it', async () => {
    const server = await start();
    for (const wrong of [{ channelType: 'email' }, { channelInstanceId: 'other' }, { threadId: 't1' }, { channelInstanceId: '__proto__' }])
      await expect(add(server, { ...lab, ...wrong })).rejects.toMatchObject({ code: 'invalid_params' });
    const other = await server.as(['rpc']);
    const job = { name: 'theirs', schedule: never, payload: { kind: 'delivery', text: 'Hi' } } as const;
    const theirs = (endpoint: Endpoint) => other.call('cron.add', { ...job, deliveryTarget: targetTo(endpoint, `token:${other.tokenId}`) });
    await expect(theirs(lab)).rejects.toMatchObject({ code: 'not_found' });
    await add(server);
    await run(server);
    await later(() => statusOf(server)).toEqual(['completed', 'accepted']);
    // Known to others is not known to all, and the kind must agree from now on.
    await expect(theirs(lab)).rejects.toMatchObject({ code: 'not_found' });
    await expect(theirs({ ...lab, conversationKind: 'direct' })).rejects.toMatchObject({ code: 'invalid_params' });
    await expect(
      server.client.call('cron.update', { jobName: 'report', deliveryTarget: targetTo({ ...lab, conversationKind: 'direct' }) }),
    ).rejects.toMatchObject({
      code: 'invalid_params',
    });
    await expect(server.client.call('session.spawn', { task: 'x', announceChannelType: 'email', announceChannelId: 'a@b.c' })).rejects.toMatchObject({
      code: 'invalid_params',
    });
    await expect(other.call('session.spawn', { task: 'x', announceChannelType: 'irc', announceChannelId: '#lab' })).rejects.toMatchObject({
      code: 'not_found',
    });
  });

  test('what is delivered to a disabled channel waits for it', async () => {
    const server = await start();
    server.provider.setAnswer(() => ({ text: 'Later.' }));
    await add(server);
    await server.client.call('channels.disable', { channel_type: 'irc' });
    await run(server);
    await later(() => statusOf(server)).toEqual(['completed', 'pending']);
    await server.client.call('channels.enable', { channel_type: 'irc' });
    await later(heard).toEqual(['gate #lab Later.']);
    await later(() => statusOf(server)).toEqual(['completed', 'accepted']);
  });

  test('a channel that was removed gets nothing, and the owner of the job is alerted', async () => {
    await add(await start());
    await stop(servers.pop());
    const server = await start({ config: { channels: {} } });
    server.provider.setAnswer(() => ({ text: 'For nobody.' }));
    await run(server);
    await later(() => statusOf(server)).toEqual(['completed', 'pre_send_failed']);
    expect(await alerts(server)).toEqual([expect.stringMatching(/^For nobody\.[^]*"net" \(irc\) is not configured any more/)]);
  });

  test('what a process stored and did not send is sent once by the next', async () => {
    const { wrap, died } = mortal('delivery.begin', false);
    const first = await start({ db: wrap });
    first.provider.setAnswer(() => ({ text: 'Once.' }));
    await add(first);
    await run(first);
    await died;
    await stop(servers.pop());
    const second = await start();
    await later(heard).toEqual(['gate #lab Once.']);
    await later(() => statusOf(second)).toEqual(['completed', 'accepted']);
  });

  test('what may have been sent is unknown, until a person decides', async () => {
    const { wrap, died } = mortal('delivery.finish', false);
    const first = await start({ db: wrap });
    first.provider.setAnswer(() => ({ text: 'Perhaps.' }));
    await add(first);
    await run(first);
    await died;
    await stop(servers.pop());
    const second = await start();
    await later(() => statusOf(second)).toEqual(['completed', 'unknown']);
    expect(await alerts(second)).toEqual([expect.stringContaining('may have been sent')]);
    const [left] = (await second.client.call('delivery.list', { state: 'unknown' })).deliveries;
    await second.client.call('delivery.settle', { deliveryId: left?.deliveryId ?? '', as: 'rejected' });
    expect(await statusOf(second)).toEqual(['completed', 'rejected']);
    await second.client.call('delivery.resend', { deliveryId: left?.deliveryId ?? '' });
    await later(() => statusOf(second)).toEqual(['completed', 'accepted']);
    expect(heard()).toEqual(['gate #lab Perhaps.', 'gate #lab Perhaps.']);
  });

  test('graphs, sub-agents, heartbeats and webhooks report to a chat', async () => {
    const server = await start({
      config: {
        agents: {
          default: { model: 'mock/mock-fast', tools: { profile: 'full' }, heartbeat: { enabled: true, intervalMs: 86_400_000, target: lab } },
        },
        webhooks: { mappings: [{ id: 'hook', messageTemplate: '{{text}}', target: lab }] },
      },
    });
    const announce = { announceChannelType: 'irc', announceChannelId: '#lab' };
    server.provider.setAnswer(() => ({ text: 'The result.' }));
    const { graphId } = await server.client.call('graph.execute', { nodes: [{ node_id: 'only', task: 'Work.' }], ...announce });
    await later(() => heard().join('\n')).toMatch(/1 of 1 nodes completed[^]*The result\./);
    expect(graphId).toMatch(/^gr_/);
    const before = heard().length;
    const { runId } = await server.client.call('session.spawn', { task: 'Work.', announceChannelType: 'irc', announceChannelId: 'net/#lab' });
    await later(() => heard().slice(before).join('\n')).toContain(runId);
    server.provider.setAnswer(() => ({ text: 'The beat has something to say.' }));
    const event = { kind: 'heartbeat_event', text: 'The oven is hot.', wakeMode: 'now' } as const;
    await server.client.call('cron.add', { name: 'oven', schedule: never, payload: event });
    await server.client.call('cron.run', { jobName: 'oven', mode: 'force' });
    await later(heard).toContain('gate #lab The beat has something to say.');
    server.provider.setAnswer(() => ({ text: 'The hook was called.' }));
    await fetch(`${server.url}/hooks/x`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ text: 'Ring' }) });
    await later(heard).toContain('gate #lab The hook was called.');
    expect(await alerts(server)).toEqual([]);
  });

  test('what an agent delegates in a chat is answered there, and its jobs deliver there', async () => {
    const server = await start({ config: { channels: ownedBy([adaId]) } });
    server.provider.setAnswer(
      answering(({ question, results, messages }) => {
        if (messages.some(({ text }) => text.includes('Its task and its report'))) return { text: 'The worker counted seven.' };
        if (question.includes('Count the apples')) return { text: 'Seven apples.' };
        if (question.includes('remind')) return results.length === 0 ? call('cron', reminder) : { text: 'I will.' };
        if (question.includes('the tea')) return { text: 'Your tea is ready.' };
        return results.length === 0 ? call('sessions_spawn', { task: 'Count the apples' }) : { text: 'It works on it.' };
      }),
    );
    const payload = { kind: 'agent_turn', message: 'Think of the tea.' };
    const reminder = { action: 'add', name: 'report', schedule: never, payload, tell: 'conversation' };
    ada.say('PRIVMSG gate :please remind me');
    await later(heard).toEqual(['gate ada I will.']);
    await run(server);
    await later(heard).toEqual(['gate ada I will.', 'gate ada Your tea is ready.']);
    await later(() => statusOf(server)).toEqual(['completed', 'accepted']);
    expect((await server.client.call('cron.list', {})).jobs[0]?.deliveryTarget?.destinationEndpoint).toEqual({
      channelType: 'irc',
      channelInstanceId: 'net',
      conversationId: 'ada',
      conversationKind: 'direct',
    });
    ada.say('PRIVMSG gate :delegate it');
    await later(() => heard().slice(2)).toEqual(['gate ada It works on it.', 'gate ada The worker counted seven.']);
    expect((await server.client.call('inbox.list', {})).messages).toEqual([]);
  });

  test('session.send answers into the chat of the agent that sent, or of the conversation that a token wrote to', async () => {
    const server = await start({ config: { channels: ownedBy([adaId]) } });
    const readRef = async () => (await server.client.call('channels.messages', {})).messages[0]?.conversationRef ?? '';
    let ownRef = '';
    server.provider.setAnswer(
      answering(({ question, results }) => {
        if (question.includes('a message here')) return { text: 'Three pears.' };
        if (question.includes('the bread')) return { text: 'Ada, the bread is done.' };
        if (question === 'pears')
          return results.length === 0 ? call('sessions_send', { conversationRef: ownRef, text: 'Count the pears.' }) : { text: 'I ask.' };
        return { text: 'Hello.' };
      }),
    );
    ada.say('PRIVMSG gate :hi');
    await later(heard).toEqual(['gate ada Hello.']);
    ownRef = await readRef();
    ada.say('PRIVMSG gate :pears');
    await later(heard).toEqual(['gate ada Hello.', 'gate ada I ask.', 'gate ada Three pears.']);
    await server.client.call('session.send', { conversationRef: ownRef, text: 'Let Ada know about the bread.' });
    await later(() => heard().slice(3)).toEqual(['gate ada Ada, the bread is done.']);
    // A conversation without a chat answers into the inbox, as before.
    const { conversationRef } = await server.client.call('agent.execute', { message: 'hi', sessionKey: { userId: 'ada', channelId: 'desk' } });
    await server.client.call('session.send', { conversationRef, text: 'And the bread?' });
    await later(() => alerts(server)).toEqual(['Ada, the bread is done.']);
    expect(heard().length).toBe(4);
  });

  test('a job that somebody added in a chat ends with the permission to write there', async () => {
    const remind = { action: 'add', name: 'report', schedule: never, payload: { kind: 'agent_turn', message: 'Now.' } };
    const answer = answering(({ results }) => (results.length === 0 ? call('cron', remind) : { text: 'I will.' }));
    await start({ config: { channels: ownedBy([adaId]) }, provider: { answer } });
    ada.say('PRIVMSG gate :remind me');
    await later(heard).toEqual(['gate ada I will.']);
    await stop(servers.pop());
    const second = await start({ config: { channels: ownedBy([]) } });
    await run(second);
    await later(async () => (await second.client.call('cron.runs', { jobName: 'report' })).runs[0]).toMatchObject({
      status: 'skipped',
      errorKind: 'authority',
    });
    expect(second.provider.served()).toBe(0);
  });
});
