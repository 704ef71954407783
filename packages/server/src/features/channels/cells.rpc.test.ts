import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  hasIrcServer,
  type IrcPerson,
  type IrcServer,
  joinIrc,
  startIrcServer,
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from '@gatehouse/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { AppError } from '../../kernel/app-error.ts';
import type { Db } from '../../kernel/db/db.ts';
import { mortal } from './testing/mortal-db.ts';

let ircd: IrcServer;
let homeDir: string;
let ada: IrcPerson;
const servers: TestServer[] = [];

async function start(options: TestServerOptions = {}): Promise<TestServer> {
  const net = { type: 'irc' as const, host: '127.0.0.1', port: ircd.port, tls: false, nick: 'gate', dm: { policy: 'open' as const } };
  const server = await startTestServer({
    homeDir,
    ...options,
    config: { gateway: { drainTimeoutMs: 20 }, agents: { default: { model: 'mock/mock-fast' } }, channels: { net }, ...options.config },
  });
  servers.push(server);
  await expect.poll(async () => (await server.client.call('channels.get', { channel_type: 'irc' })).state).toBe('healthy');
  return server;
}
const stop = async (server: TestServer | undefined) => {
  try {
    await server?.[Symbol.asyncDispose]();
  } catch {}
};
/** Texts for ada; a nick that a dead process still has is followed by another one. */
const answers = () => ada.messages.map((line) => line.replace(/^gate_* ada /, 'gate ada '));
const deliveries = async (server: TestServer) =>
  (await server.client.call('delivery.list', { channel_instance_id: 'net' })).deliveries.map(({ state }) => state);

describe.skipIf(!hasIrcServer('ngircd'))('messages of channels', () => {
  beforeAll(async () => {
    ircd = await startIrcServer('ngircd');
  });
  afterAll(() => ircd[Symbol.asyncDispose]());
  beforeEach(async () => {
    homeDir = mkdtempSync(join(tmpdir(), 'gatehouse-cells-'));
    ada = await joinIrc(ircd.port, 'ada');
  });
  afterEach(async () => {
    ada[Symbol.dispose]();
    for (const server of servers.splice(0)) await stop(server);
    rmSync(homeDir, { recursive: true, force: true });
  });

  test.each([
    ['channels.accept', true],
    ['turns.openDurable', true],
    ['turns.commitDurable', false],
    ['turns.commitDurable', true],
    ['delivery.begin', false],
  ] as const)('are answered once by the next process when one dies at %s (committed: %s)', async (operation, committed) => {
    const { wrap, died } = mortal(operation, committed);
    const first = await start({ db: wrap });
    first.provider.setAnswer(() => ({ text: 'Once.' }));
    ada.say('PRIVMSG gate :hello');
    await died;
    await stop(servers.pop());
    const second = await start({ provider: { answer: () => ({ text: 'Once.' }) } });
    await expect.poll(answers).toEqual(['gate ada Once.']);
    await expect.poll(() => deliveries(second)).toEqual(['accepted']);
    const { messages } = await second.client.call('channels.messages', {});
    expect(messages.map(({ verdict, state }) => [verdict, state])).toEqual([['turn', 'done']]);
    const { deliveries: parts } = await second.client.call('delivery.list', {});
    const shown = async () => (await second.client.call('obs.trace.get', { ref: parts[0]?.turnId ?? '' })).records;
    await expect
      .poll(async () => (await shown()).map(({ kind, parentId, refs }) => [kind, parentId, refs['deliveryId']]))
      .toContainEqual(['delivery', parts[0]?.turnId, parts[0]?.deliveryId]);
  });

  test.each([
    ['delivery.begin', true, []],
    ['delivery.finish', false, ['gate ada Once.']],
  ] as const)('may have been sent when the process dies at %s (committed: %s): a person decides', async (operation, committed, seen) => {
    const { wrap, died } = mortal(operation, committed);
    const first = await start({ db: wrap });
    first.provider.setAnswer(() => ({ text: 'Once.' }));
    ada.say('PRIVMSG gate :hello');
    await died;
    await stop(servers.pop());
    const second = await start();
    await expect.poll(() => deliveries(second)).toEqual(['unknown']);
    const { messages } = await second.client.call('inbox.list', {});
    expect(messages).toMatchObject([{ source: 'channel', level: 'alert', text: expect.stringContaining('may have been sent') }]);
    expect(answers()).toEqual(seen);
    expect(await second.client.call('delivery.queue.status', {})).toMatchObject({ unknown: 1, pending: 0, inFlight: 0 });
    const [left] = (await second.client.call('delivery.list', { state: 'unknown' })).deliveries;
    await second.client.call('delivery.settle', { deliveryId: left?.deliveryId ?? '', as: 'accepted' });
    expect(await deliveries(second)).toEqual(['accepted']);
  });

  test('are sent although the database failed for a moment', async () => {
    let fails = 2;
    const wrap = (db: Db): Db => ({
      ...db,
      read: (one, input) => db.read(one, input),
      telemetry: (one, input) => db.telemetry(one, input),
      write(one, input) {
        if (one.name !== 'delivery.recover' || fails === 0) return db.write(one, input);
        fails -= 1;
        return Promise.reject(new Error('busy'));
      },
      [Symbol.asyncDispose]: () => db[Symbol.asyncDispose](),
    });
    const server = await start({ db: wrap });
    server.provider.setAnswer(() => ({ text: 'Anyway.' }));
    ada.say('PRIVMSG gate :hello');
    await expect.poll(answers).toEqual(['gate ada Anyway.']);
    expect(fails).toBe(0);
  });

  test('are unknown, and let later ones pass, when the channel is restarted while what became of them cannot be stored', async () => {
    let isFull = true;
    let fails = 0;
    const wrap = (db: Db): Db => ({
      ...db,
      read: (one, input) => db.read(one, input),
      telemetry: (one, input) => db.telemetry(one, input),
      write(one, input) {
        if (one.name !== 'delivery.finish' || !isFull) return db.write(one, input);
        fails += 1;
        return Promise.reject(new AppError('unavailable', 'The disk is full'));
      },
      [Symbol.asyncDispose]: () => db[Symbol.asyncDispose](),
    });
    const server = await start({ db: wrap });
    server.provider.setAnswer(() => ({ text: 'Once.' }));
    ada.say('PRIVMSG gate :hello');
    await expect.poll(() => fails).toBeGreaterThan(0);
    await expect.poll(answers).toEqual(['gate ada Once.']);
    await server.client.call('channels.restart', { channel_type: 'irc' });
    isFull = false;
    await expect.poll(() => deliveries(server)).toEqual(['unknown']);
    expect((await server.client.call('inbox.list', {})).messages).toMatchObject([{ text: expect.stringContaining('may have been sent') }]);
    ada.say('PRIVMSG gate :hello again');
    await expect.poll(answers).toEqual(['gate ada Once.', 'gate ada Once.']);
  });

  test('to a suspended agent are recorded, start no turn, and their sender is notified', async () => {
    const server = await start();
    await server.client.call('agents.suspend', { agentId: 'default' });
    ada.say('PRIVMSG gate :hello');
    await expect.poll(answers).toEqual([expect.stringContaining('suspended')]);
    ada.say('PRIVMSG gate :hello?');
    await expect.poll(async () => (await server.client.call('channels.messages', {})).total).toBe(2);
    expect(await deliveries(server)).toHaveLength(1);
    await server.client.call('agents.resume', { agentId: 'default' });
    expect((await server.client.call('channels.messages', {})).messages).toMatchObject([
      { verdict: 'suspended', state: null },
      { verdict: 'suspended', state: null },
    ]);
    expect(server.provider.served()).toBe(0);
    server.provider.setAnswer(() => ({ text: 'Now.' }));
    const [{ messageId } = { messageId: '' }] = (await server.client.call('channels.messages', {})).messages;
    expect(await server.client.call('channels.retry', { messageId })).toEqual({ messageId, verdict: 'turn' });
    await expect.poll(answers).toEqual([expect.stringContaining('suspended'), 'gate ada Now.']);
    await expect(server.client.call('channels.retry', { messageId })).rejects.toMatchObject({ code: 'precondition_failed' });
    await expect(server.client.call('channels.retry', { messageId: 'cm_nothing' })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('get no answer when the agent has nothing to say', async () => {
    const server = await start();
    server.provider.setAnswer(() => ({ text: 'NO_REPLY' }));
    ada.say('PRIVMSG gate :thanks');
    await expect.poll(async () => (await server.client.call('channels.messages', {})).messages[0]?.state).toBe('done');
    expect(await deliveries(server)).toEqual([]);
  });

  test('get their answer when the channel is enabled again, and none when the conversation is deleted meanwhile', async () => {
    const server = await start();
    const held = Promise.withResolvers<void>();
    server.provider.setAnswer(() => ({ text: 'Late.', after: held.promise }));
    ada.say('PRIVMSG gate :first');
    await expect.poll(() => server.provider.served()).toBe(1);
    await server.client.call('channels.disable', { channel_type: 'irc' });
    held.resolve();
    await expect.poll(() => deliveries(server)).toEqual(['pending']);
    await server.client.call('channels.enable', { channel_type: 'irc' });
    await expect.poll(answers).toEqual(['gate ada Late.']);
    const again = Promise.withResolvers<void>();
    server.provider.setAnswer(() => ({ text: 'Never.', after: again.promise }));
    ada.say('PRIVMSG gate :second');
    await expect.poll(() => server.provider.served()).toBe(2);
    await server.client.call('channels.disable', { channel_type: 'irc' });
    again.resolve();
    await expect.poll(async () => (await deliveries(server))[0]).toBe('pending');
    const { sessions: before } = await server.client.call('session.list', {});
    // A reset forgets what was not sent, a deletion everything.
    await server.client.call('session.reset', { conversationRef: before[0]?.conversationRef });
    expect(await deliveries(server)).toEqual(['accepted']);
    const { sessions } = await server.client.call('session.list', {});
    await server.client.call('session.delete', { conversationRef: sessions[0]?.conversationRef });
    expect(await deliveries(server)).toEqual([]);
    expect((await server.client.call('channels.messages', {})).total).toBe(0);
  });

  test('may be commands: /new leaves the history behind, and every person has it for the own conversation', async () => {
    const server = await start();
    const sizes: number[] = [];
    server.provider.setAnswer(({ body }) => {
      sizes.push((body as { readonly messages: readonly { readonly role: string }[] }).messages.filter(({ role }) => role === 'user').length);
      return { text: 'Noted.' };
    });
    for (const [said, heard] of [
      ['my tea is green', 'Noted.'],
      ['and my cup blue', 'Noted.'],
      ['/NEW', 'This is a new conversation.'],
      ['what do you know?', 'Noted.'],
      ['/agent', 'Agent default, model mock/mock-fast.'],
    ] as const) {
      const before = answers().length;
      ada.say(`PRIVMSG gate :${said}`);
      await expect.poll(() => answers().slice(before)).toEqual([`gate ada ${heard}`]);
    }
    expect(sizes).toEqual([1, 2, 1]);
    expect((await server.client.call('obs.audit.query', { actionType: 'session.reset' })).rows).toHaveLength(1);
    expect((await server.client.call('channels.messages', {})).messages.every(({ state }) => state === 'done')).toBe(true);
  });

  test('of a sender who may not write any more by then are not answered, and their owner is alerted', async () => {
    const { wrap, died } = mortal('channels.accept', true);
    await start({ db: wrap });
    ada.say('PRIVMSG gate :hello');
    await died;
    await stop(servers.pop());
    const net = { type: 'irc' as const, host: '127.0.0.1', port: ircd.port, tls: false, nick: 'gate', dm: { policy: 'disabled' as const } };
    const second = await start({ config: { agents: { default: { model: 'mock/mock-fast' } }, channels: { net } } });
    const listed = async () => (await second.client.call('channels.messages', {})).messages.map(({ verdict, state }) => [verdict, state]);
    await expect.poll(listed).toEqual([['turn', 'failed']]);
    expect((await second.client.call('inbox.list', {})).messages).toMatchObject([{ level: 'alert', text: expect.stringContaining('may not write') }]);
    ada.say('PRIVMSG gate :and now?');
    await expect.poll(async () => (await listed())[0]).toEqual(['disabled', null]);
    expect(second.provider.served()).toBe(0);
    expect(await deliveries(second)).toEqual([]);
  });

  test('count in the activity and the deliveries of channels, and are visible to their person alone', async () => {
    const server = await start();
    const [taken, sent] = [server.heard('channel:message'), server.heard('channel:delivery')];
    server.provider.setAnswer(() => ({ text: 'Hello.' }));
    ada.say('PRIVMSG gate :hello');
    await expect.poll(answers).toEqual(['gate ada Hello.']);
    const { channels } = await server.client.call('obs.channels.all', {});
    expect(channels).toMatchObject([{ channelType: 'irc', channelId: 'net', messagesReceived: 1, messagesSent: 1 }]);
    await expect.poll(async () => (await server.client.call('obs.delivery.recent', { channelType: 'irc' })).deliveries).toHaveLength(2);
    await expect.poll(() => sent).toMatchObject([{ channelInstanceId: 'net', state: 'accepted' }]);
    expect(taken).toMatchObject([{ channelInstanceId: 'net', verdict: 'turn' }]);
    const other = await server.as(['rpc']);
    expect((await other.call('session.list', {})).total).toBe(0);
    await expect(other.call('channels.messages', {})).rejects.toMatchObject({ code: 'insufficient_scope' });
    const seen = await other.call('channels.health', {});
    expect(seen.channels.map(({ channelType, error }) => [channelType, error])).toEqual([
      ['gateway', null],
      ['irc', null],
    ]);
    for (const type of ['nothing', 'toString', '__proto__'])
      await expect(other.call('channels.capabilities', { channel_type: type })).rejects.toMatchObject({ code: 'not_found' });
  });
});
