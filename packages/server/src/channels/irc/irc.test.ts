import net from 'node:net';
import { hasIrcServer, type IrcServer, joinIrc, startIrcServer } from '@gatehouse/testkit';
import { systemClock } from '../../kernel/clock.ts';
import { afterEach, expect, test } from 'vitest';
import type { Ended, ReceivedMessage, SendResult } from '../port.ts';
import { irc, type IrcConfig } from './irc.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const silent = { debug() {}, warn() {} };

/** An adapter that is connected, and how its connection ends. */
async function connect(port: number, more: Partial<IrcConfig> = {}) {
  const adapter = irc.open({ config: { host: '127.0.0.1', port, tls: false, nick: 'gate', channels: [], ...more }, clock: systemClock, log: silent });
  const stop = new AbortController();
  const received: ReceivedMessage[] = [];
  const connected = Promise.withResolvers<string>();
  const ended: Promise<Ended> = adapter.run(stop.signal, {
    take: async (messages) => void received.push(...messages),
    alive() {},
    connected: connected.resolve,
  });
  closing.push(() => {
    stop.abort();
    return ended;
  });
  const name = await Promise.race([connected.promise, ended.then(() => '')]);
  const send = (conversationId: string, text: string): Promise<SendResult> =>
    adapter.send({ conversationId, text }, { key: `${conversationId} ${text}`, signal: new AbortController().signal });
  return { adapter, name, ended, received, send };
}

async function server(name: 'ngircd' | 'inspircd', options: { readonly password?: string } = {}): Promise<IrcServer> {
  const started = await startIrcServer(name, options);
  closing.push(() => started[Symbol.asyncDispose]());
  return started;
}

/** Forwards to a port until it swallows everything, without closing. */
async function holeTo(port: number) {
  let swallows = false;
  const sockets = new Set<net.Socket>();
  const proxy = net.createServer((client) => {
    const upstream = net.connect({ port, host: '127.0.0.1' });
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on('data', (data) => void (swallows || to.write(data)));
      from.on('error', () => {});
      from.on('close', () => to.destroy());
    }
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });
  return { port: (proxy.address() as net.AddressInfo).port, swallow: () => (swallows = true) };
}

for (const name of ['inspircd', 'ngircd'] as const) {
  test.skipIf(!hasIrcServer(name))(`${name} confirms what it took, and says what it refuses`, async () => {
    const { port } = await server(name);
    const { send, name: nick } = await connect(port);
    using ada = await joinIrc(port, 'ada');
    expect(nick).toBe('gate');
    expect(await send('ada', 'hello')).toEqual(name === 'inspircd' ? { is: 'sent', platformId: expect.any(String) } : { is: 'sent' });
    await expect.poll(() => ada.messages).toEqual(['gate ada hello']);
    expect(await send('nobody', 'hello')).toMatchObject({ is: 'rejected', kind: 'no_such_target' });
    expect(await send('two words', 'hello')).toMatchObject({ is: 'rejected', kind: 'target' });
    expect(await send('#none', 'hello')).toMatchObject({ is: 'rejected' });
  });

  test.skipIf(!hasIrcServer(name))(`what was under way when ${name} died may have been sent, and nothing is afterwards`, async () => {
    const ircd = await server(name);
    const hole = await holeTo(ircd.port);
    const { adapter, send, ended } = await connect(hole.port);
    hole.swallow();
    const sent = send('ada', 'hello');
    await ircd.kill();
    expect(await sent).toMatchObject({ is: 'ambiguous' });
    expect(await ended).toMatchObject({ ended: 'transient' });
    const after = await adapter.send({ conversationId: 'ada', text: 'x' }, { key: 'x', signal: new AbortController().signal });
    expect(after).toMatchObject({ is: 'notSent' });
  });
}

test.skipIf(!hasIrcServer('ngircd'))('a server that is silent without closing is noticed', async () => {
  const hole = await holeTo((await server('ngircd')).port);
  const { ended } = await connect(hole.port, { pingMs: 100, pongMs: 100 });
  hole.swallow();
  expect(await ended).toEqual({ ended: 'transient', text: 'The server does not answer any more' });
});

test.skipIf(!hasIrcServer('ngircd'))(
  'a wrong password is not tried again, a nick in use is changed, and nobody listens at a closed port',
  async () => {
    const { port } = await server('ngircd', { password: 'right' });
    const wrong = await connect(port, { serverPassword: 'wrong' });
    expect(await wrong.ended).toMatchObject({ ended: 'unauthorized' });
    using _other = await joinIrc(port, 'gate', { password: 'right' });
    expect((await connect(port, { serverPassword: 'right' })).name).toBe('gate_');
    const noLogin = await connect(port, { serverPassword: 'right', nick: 'other', saslUser: 'a', saslPassword: 'b' });
    expect(await noLogin.ended).toEqual({ ended: 'unauthorized', text: 'The server offers no login (SASL)' });
    const closed = await connect(1);
    expect(await closed.ended).toMatchObject({ ended: 'transient', text: expect.stringContaining('ECONNREFUSED') });
  },
);

test.skipIf(!hasIrcServer('inspircd'))('messages come with their sender, in order, and those of clients to clients do not', async () => {
  const { port } = await server('inspircd');
  const { received } = await connect(port, { channels: ['#Lab'] });
  using ada = await joinIrc(port, 'Ada', { channels: ['#lab'] });
  await expect.poll(() => ada.heard.some((line) => line.includes('gate'))).toBe(true);
  ada.say('PRIVMSG gate :\x01VERSION\x01');
  ada.say('NOTICE gate :not answered');
  ada.say('PRIVMSG gate :\x01ACTION waves\x01');
  ada.say('PRIVMSG #LAB :Gate, hello');
  ada.say('PRIVMSG #lab :the gatekeeper is away');
  await expect.poll(() => received.length).toBe(3);
  expect(received).toMatchObject([
    { conversationKind: 'direct', conversationId: 'Ada', senderName: 'Ada', text: '* Ada waves', mentionsUs: false },
    { conversationKind: 'shared', conversationId: '#lab', text: 'hello', mentionsUs: true },
    { conversationKind: 'shared', conversationId: '#lab', text: 'the gatekeeper is away', mentionsUs: false },
  ]);
  for (const { senderId, eventKey, isBot } of received)
    expect([senderId, eventKey, isBot]).toEqual([expect.stringMatching(/^ada!.*ada@/), expect.any(String), false]);
});
