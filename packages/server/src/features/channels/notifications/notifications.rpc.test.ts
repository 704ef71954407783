import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AgentConfigInput, ParamsInput } from '@gatehouse/contract';
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
} from '@gatehouse/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';

const hourMs = 3_600_000;
/** 21:30 in Berlin. */
/** Id of ada. */
const ownId = 'ada!~ada@127.0.0.1';
const evening = Date.parse('2026-11-27T20:30:00Z');
const quietHours = { start: '22:00', end: '07:00', timeZone: 'Europe/Berlin' };

describe.skipIf(!hasIrcServer('ngircd'))('notifications', () => {
  let ircd: IrcServer;
  let server: TestServer;
  let ada: IrcPerson;
  let clock: StepClock;
  let homeDir: string;
  beforeAll(async () => {
    ircd = await startIrcServer('ngircd');
  });
  afterAll(() => ircd[Symbol.asyncDispose]());
  beforeEach(async () => {
    homeDir = mkdtempSync(join(tmpdir(), 'gatehouse-notifications-'));
    clock = createStepClock(evening);
    ada = await joinIrc(ircd.port, 'ada');
  });
  afterEach(async () => {
    ada[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
    rmSync(homeDir, { recursive: true, force: true });
  });

  async function start(notification: AgentConfigInput['notification'] = {}, agents: Record<string, AgentConfigInput> = {}) {
    const net = {
      type: 'irc' as const,
      host: '127.0.0.1',
      port: ircd.port,
      tls: false,
      nick: 'gate',
      dm: { policy: 'open' as const },
      owners: [ownId],
    };
    server = await startTestServer({
      clock,
      homeDir,
      provider: { answer: () => ({ text: 'Hello.' }) },
      config: { agents: { default: { model: 'mock/mock-fast', notification }, ...agents }, channels: { net } },
    });
    await isConnected();
  }
  /** Lets short timers run until the channel is connected. */
  const isConnected = () =>
    expect
      .poll(async () => {
        clock.advance(1_000);
        return (await server.client.call('channels.get', { channel_type: 'irc' })).state;
      })
      .toBe('healthy');
  /** Has ada begin a conversation. */
  async function talk() {
    ada.say('PRIVMSG gate :hello');
    await heard('Hello.');
  }
  const texts = () => ada.messages.map((line) => line.replace(/^gate_* ada /, ''));
  const heard = (...expected: readonly string[]) =>
    expect
      .poll(() => {
        clock.advance(1_000);
        return texts();
      })
      .toEqual(expected);
  const notify = (message: string, params: Partial<ParamsInput<'notification.send'>> = {}) =>
    server.client.call('notification.send', { message, ...params });
  const endpoint = { channelType: 'irc', channelInstanceId: 'net', conversationId: 'ada', conversationKind: 'direct' as const };

  test('go to the newest conversation, to a named one, or to nobody, and are announced', async () => {
    await start();
    const [enqueued, suppressed, delivered] = [
      server.heard('notification:enqueued'),
      server.heard('notification:suppressed'),
      server.heard('notification:delivered'),
    ];
    expect(await notify('Too early.')).toEqual({ success: false, error: expect.stringMatching(/^no_channel: /) });
    await talk();
    const first = await notify('The backup is done.');
    expect(first).toEqual({ success: true, entryId: expect.stringMatching(/^ob_.*-01$/) });
    expect(await notify('Explicit.', { channel_type: 'irc', channel_id: 'ada', destination_endpoint: endpoint, priority: 'high' })).toMatchObject({
      success: true,
    });
    await heard('Hello.', 'The backup is done.', 'Explicit.');
    await expect.poll(() => delivered.length).toBe(2);
    const about = { agentId: 'default', channelType: 'irc', channelId: 'ada', timestamp: expect.any(Number) };
    expect(enqueued).toEqual([
      { ...about, priority: 'normal', origin: 'program', entryId: first.entryId, notBefore: null },
      { ...about, priority: 'high', origin: 'program', entryId: expect.any(String), notBefore: null },
    ]);
    expect(delivered[0]).toEqual({ ...about, priority: 'normal', entryId: first.entryId, messageId: null, durationMs: expect.any(Number) });
    expect(suppressed).toEqual([{ agentId: 'default', priority: 'normal', reason: 'no_channel', timestamp: expect.any(Number) }]);
    // Only people who wrote to an agent are notified.
    expect(await notify('Psst.', { channel_type: 'irc', channel_id: 'eve' })).toMatchObject({ success: false });
    for (const change of [
      { conversationId: 'eve' },
      { channelInstanceId: 'other' },
      { threadId: 't' },
      { conversationKind: 'shared' as const },
      { channelType: 'email' },
    ]) {
      await expect(notify('x', { destination_endpoint: { ...endpoint, ...change } })).rejects.toMatchObject({ code: 'precondition_failed' });
      const named = { channel_type: 'irc', channel_id: 'ada', destination_endpoint: { ...endpoint, ...change } };
      await expect(notify('x', named)).rejects.toMatchObject({ code: expect.stringMatching(/^(?:precondition_failed|not_found)$/) });
    }
    await expect(notify('x', { channel_id: 'ada' })).rejects.toMatchObject({ code: 'invalid_params' });
    expect((await server.client.call('delivery.list', { channel_instance_id: 'net' })).total).toBe(3);
    // Another token has no conversation.
    const guest = await server.as(['rpc']);
    expect(await guest.call('notification.send', { message: 'x' })).toEqual({ success: false, error: expect.stringMatching(/^no_channel: /) });
  });

  test('a token that is limited to other agents notifies nobody of the default one', async () => {
    await start({}, { keeper: { model: 'mock/mock-fast' } });
    await talk();
    const limited = await server.as(['rpc', 'admin'], { agents: ['keeper'] });
    await expect(limited.call('notification.send', { message: 'Psst.' })).rejects.toMatchObject({ code: 'not_found' });
    expect(await notify('Noticed.')).toMatchObject({ success: true });
    await heard('Hello.', 'Noticed.');
  });

  test('are limited by the policy of the agent, also after a restart', async () => {
    await start({ maxPerHour: 2 });
    await talk();
    expect(await notify('One.')).toMatchObject({ success: true });
    expect(await notify('One.')).toEqual({ success: false, error: 'duplicate: the same text was sent within 300 s' });
    await heard('Hello.', 'One.');
    await server[Symbol.asyncDispose]();
    await start({ maxPerHour: 2 });
    expect(await notify('One.')).toMatchObject({ success: false });
    clock.step(300_000);
    expect(await notify('One.')).toMatchObject({ success: true });
    expect(await notify('Two.')).toEqual({ success: false, error: 'rate_limited: agent default has had 2 notifications in the last hour' });
    expect(await notify('Again.', { origin: 'notification' })).toMatchObject({ success: false, error: expect.stringMatching(/^chain: /) });
    await heard('Hello.', 'One.', 'One.');
    clock.step(hourMs);
    await server.client.call('agents.update', { agentId: 'default', config: { notification: { maxChainDepth: 1 } } });
    expect(await notify('Two.', { origin: 'notification' })).toMatchObject({ success: true });
    await server.client.call('agents.update', { agentId: 'default', config: { notification: { enabled: false } } });
    expect(await notify('Three.')).toMatchObject({ success: false, error: expect.stringMatching(/^disabled: /) });
    await heard('Hello.', 'One.', 'One.', 'Two.');
  });

  test('are kept until quiet hours end, over a restart, and delay no answer', async () => {
    await start({ quietHours });
    await talk();
    clock.step(hourMs);
    const suppressed = server.heard('notification:suppressed');
    const { entryId } = await notify('In the morning.');
    expect(await notify('Now.', { priority: 'critical' })).toMatchObject({ success: true });
    await heard('Hello.', 'Now.');
    expect(suppressed).toMatchObject([{ reason: 'quiet_hours' }]);
    ada.say('PRIVMSG gate :hello?');
    await heard('Hello.', 'Now.', 'Hello.');
    await server[Symbol.asyncDispose]();
    await start({ quietHours });
    const delivered = server.heard('notification:delivered');
    const entry = async () =>
      (await server.client.call('delivery.list', { channel_instance_id: 'net' })).deliveries.find(({ deliveryId }) => deliveryId === entryId);
    clock.step(8 * hourMs);
    for (let seconds = 0; seconds < 70; seconds += 10) {
      clock.advance(10_000);
      await isConnected();
    }
    expect(await entry()).toMatchObject({ state: 'held' });
    clock.step(hourMs);
    await heard('Hello.', 'Now.', 'Hello.', 'In the morning.');
    await expect.poll(() => delivered).toMatchObject([{ entryId }]);
    expect(await entry()).toMatchObject({ state: 'accepted' });
  });

  test('that are kept are not sent when their agent is deleted meanwhile', async () => {
    const talker = { model: 'mock/mock-fast', notification: { quietHours } };
    await start({}, { talker });
    await server.client.call('config.patch', { path: 'channels.net.agent', value: 'talker', confirm: true });
    await isConnected();
    await talk();
    clock.step(hourMs);
    expect(await notify('In the morning.', { agent_id: 'talker' })).toMatchObject({ success: true });
    await server.client.call('config.patch', { path: 'channels.net.agent', value: 'default', confirm: true });
    await server.client.call('agents.delete', { agentId: 'talker' });
    clock.step(12 * hourMs);
    for (let seconds = 0; seconds < 130; seconds += 10) {
      clock.advance(10_000);
      await isConnected();
    }
    await heard('Hello.');
    expect((await server.client.call('delivery.list', { channel_instance_id: 'net' })).deliveries.map(({ state }) => state)).not.toContain('pending');
  });

  test('that are kept are sent soon after quiet hours were taken out of the configuration', async () => {
    await start({ quietHours: { ...quietHours, criticalBypass: false } });
    await talk();
    clock.step(hourMs);
    expect(await notify('Later.', { priority: 'critical' })).toMatchObject({ success: true });
    await expect
      .poll(() => server.client.call('delivery.list', { channel_instance_id: 'net' }))
      .toMatchObject({ deliveries: [{ state: 'held' }, { state: 'accepted' }] });
    await server.client.call('agents.update', { agentId: 'default', config: { notification: { quietHours: null } } });
    await heard('Hello.', 'Later.');
  });

  test('go to nobody whom the operator did not approve, or does not any more, unless a conversation is named', async () => {
    await start();
    await talk();
    const eve = await joinIrc(ircd.port, 'eve');
    eve.say('PRIVMSG gate :hello');
    await expect.poll(() => eve.messages.length).toBe(1);
    expect(await notify('For the owner.')).toMatchObject({ success: true });
    await heard('Hello.', 'For the owner.');
    await server.client.call('config.patch', { path: 'channels.net.owners', value: [], confirm: true });
    await isConnected();
    expect(await notify('For nobody.')).toMatchObject({ success: false, error: expect.stringMatching(/^no_channel: /) });
    expect(await notify('For eve.', { channel_type: 'irc', channel_id: 'eve' })).toMatchObject({ success: true });
    await expect.poll(() => (clock.advance(1_000), eve.messages.length)).toBe(2);
    eve[Symbol.dispose]();
  });

  test('go to the primary channel of the agent', async () => {
    const primaryChannel = { channelType: 'irc', channelId: 'ada' };
    await start({}, { keeper: { model: 'mock/mock-fast', notification: { primaryChannel } } });
    await talk();
    const eve = await joinIrc(ircd.port, 'eve');
    eve.say('PRIVMSG gate :hello');
    await expect.poll(() => eve.messages.length).toBe(1);
    // The conversation of ada is with another agent.
    expect(await notify('For ada.', { agent_id: 'keeper' })).toMatchObject({ success: false, error: expect.stringMatching(/^no_channel: /) });
    await server.client.call('agents.update', { agentId: 'default', config: { notification: { primaryChannel } } });
    expect(await notify('For ada.')).toMatchObject({ success: true });
    await heard('Hello.', 'For ada.');
    await expect(notify('x', { agent_id: 'nobody' })).rejects.toMatchObject({ code: 'not_found' });
    eve[Symbol.dispose]();
  });
});
