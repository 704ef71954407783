import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  hasIrcServer,
  type IrcPerson,
  type IrcServer,
  type IrcServerName,
  joinIrc,
  makeAuthority,
  makeCertificate,
  startIrcServer,
} from '@gatehouse/testkit';
import * as fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../kernel/clock.ts';
import type { Ended, ReceivedMessage, SendResult, WireClock } from '../port.ts';
import { type IrcConfig, openIrc } from './irc.ts';
import { irc } from './platform.ts';

const names: readonly IrcServerName[] = ['inspircd', 'ngircd'];
for (const name of names.filter((one) => !hasIrcServer(one))) console.warn(`Tests of IRC with ${name} are skipped: it is not installed`);

const closing: (() => unknown)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

/** Timers run fifty times as fast. */
const hurried: WireClock = { ...systemClock, after: (ms, run) => systemClock.after(ms / 50, run) };
const never = new AbortController().signal;

interface Watch {
  readonly take?: (messages: readonly ReceivedMessage[]) => Promise<void>;
  readonly clock?: WireClock;
}

/** An adapter that is connected or whose connection ended, and what it received and warned of. */
async function connect(port: number, more: Partial<IrcConfig> = {}, { take = async () => {}, clock = systemClock }: Watch = {}) {
  const warned: object[] = [];
  const log = { debug() {}, warn: (fields: object) => void warned.push(fields) };
  const adapter = openIrc({ config: { host: '127.0.0.1', port, tls: false, nick: 'gate', channels: [], ...more }, clock, log });
  const stopping = new AbortController();
  const received: ReceivedMessage[] = [];
  const connected = Promise.withResolvers<string>();
  let proofs = 0;
  const ended: Promise<Ended> = adapter.run(stopping.signal, {
    cursor: undefined,
    take: async (messages) => {
      await take(messages);
      received.push(...messages);
    },
    alive: () => (proofs += 1),
    connected: connected.resolve,
  });
  const stop = () => {
    stopping.abort();
    return ended;
  };
  closing.push(stop);
  const name = await Promise.race([connected.promise, ended.then(() => '')]);
  let sends = 0;
  const send = (conversationId: string, text: string): Promise<SendResult> =>
    adapter.send({ conversationId, text }, { key: `key ${(sends += 1)}`, signal: never });
  return { adapter, name, ended, stop, received, warned, send, proofs: () => proofs };
}

async function start(...[name, options]: Parameters<typeof startIrcServer>): Promise<IrcServer> {
  const started = await startIrcServer(name, options);
  closing.push(() => started[Symbol.asyncDispose]());
  return started;
}

/** A server that answers each line by a script, for what the real ones do not do. */
async function scripted(answer: (line: string) => string | readonly string[] | undefined) {
  const lines: string[] = [];
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    let buffer = '';
    socket.on('error', () => {});
    socket.on('data', (data) => {
      const parts = (buffer + data.toString()).split('\r\n');
      buffer = parts.pop() ?? '';
      for (const line of parts) {
        lines.push(line);
        for (const said of [answer(line) ?? []].flat()) socket.write(`${said}\r\n`);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const say = (text: string) => {
    for (const socket of sockets) socket.write(text);
  };
  return { port: (server.address() as net.AddressInfo).port, lines, say, sockets };
}

const welcome = (line: string): string | undefined => (line.startsWith('USER') ? ':srv 001 gate :Welcome' : undefined);

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

describe.each(names.filter(hasIrcServer))('%s', (name) => {
  const modern = name === 'inspircd';
  const sent = modern ? { is: 'sent', platformId: expect.any(String) } : { is: 'sent' };
  let ircd: IrcServer;
  let gate: Awaited<ReturnType<typeof connect>>;
  let ada: IrcPerson;
  let eve: IrcPerson;
  beforeAll(async () => {
    ircd = await startIrcServer(name);
    [gate, ada, eve] = await Promise.all([
      connect(ircd.port, { channels: ['#Lab'] }),
      joinIrc(ircd.port, 'Ada', { channels: ['#lab'] }),
      joinIrc(ircd.port, 'eve'),
    ]);
    // It is used by all tests.
    closing.splice(0);
  });
  afterAll(async () => {
    expect(await gate.stop()).toEqual({ ended: 'stopped', text: 'Stopped' });
    for (const person of [ada, eve]) person[Symbol.dispose]();
    await ircd[Symbol.asyncDispose]();
  });

  test('a send is confirmed, and a refusal names its send', async () => {
    expect(gate.name).toBe('gate');
    const results = await Promise.all([
      gate.send('Ada', 'hello'),
      gate.send('nobody', 'lost'),
      gate.send('#LAB', 'everybody'),
      gate.send('#none', 'lost'),
    ]);
    expect(results).toEqual([
      sent,
      { is: 'rejected', kind: 'no_such_target', text: expect.any(String) },
      sent,
      // The one knows no such channel, the other one no such target.
      { is: 'rejected', kind: modern ? 'no_such_channel' : expect.stringMatching(/no_such/), text: expect.any(String) },
    ]);
    await expect.poll(() => ada.messages.slice(-2)).toEqual(['gate Ada hello', expect.stringMatching(/^gate #lab everybody$/i)]);
    ada.say('JOIN #closed');
    ada.say('MODE #closed +n');
    await expect.poll(() => ada.heard.some((line) => /MODE #closed :?\+n/.test(line))).toBe(true);
    expect(await gate.send('#closed', 'x')).toMatchObject({ is: 'rejected', kind: 'cannot_send' });
  });

  test('a message to somebody who is away is confirmed, too', async () => {
    eve.say('AWAY :at lunch');
    await expect.poll(() => eve.heard.some((line) => / 306 /.test(line))).toBe(true);
    expect(await gate.send('eve', 'for later')).toEqual(sent);
    await expect.poll(() => eve.messages).toEqual(['gate eve for later']);
    eve.say('AWAY');
  });

  test('what cannot be sent as it is is refused before it is', async () => {
    const before = ada.messages.length;
    for (const target of ['', 'two words', 'Ada,eve', ':Ada', 'Ada\0', 'Ada\nQUIT', '\u2028Ada'])
      expect(await gate.send(target, 'x')).toEqual({ is: 'rejected', kind: 'target', text: expect.stringContaining('Not a nick or channel') });
    expect(await gate.send('Ada', '')).toMatchObject({ is: 'rejected', kind: 'no_text' });
    // It would be cut.
    expect(await gate.send('Ada', 'é'.repeat(255))).toMatchObject({ is: 'rejected', kind: 'too_long' });
    expect(await gate.send('Ada', 'é'.repeat(190))).toEqual(sent);
    await expect.poll(() => ada.messages.slice(before)).toEqual([`gate Ada ${'é'.repeat(190)}`]);
  });

  test('no text becomes a command', async () => {
    const [before, others] = [ada.messages.length, eve.messages.length];
    for (const text of ['a\r\nQUIT :gone', 'b\nJOIN #evil', 'c\rPRIVMSG eve :hi', 'd\0\r\nNICK evil', ':e', 'f\u{D800}'])
      expect(await gate.send('Ada', text)).toEqual(sent);
    await expect
      .poll(() => ada.messages.slice(before))
      .toEqual(['a  QUIT :gone', 'b JOIN #evil', 'c PRIVMSG eve :hi', 'd   NICK evil', ':e', 'f\u{FFFD}'].map((text) => `gate Ada ${text}`));
    expect(eve.messages.slice(others)).toEqual([]);
  });

  test('messages come with their sender, in order, and those of clients to clients do not', async () => {
    const before = gate.received.length;
    const heard = ada.heard.length;
    ada.say('PRIVMSG gate :\x01VERSION\x01');
    ada.say('NOTICE gate :not answered');
    ada.say('PRIVMSG gate :\x01ACTION waves\x01');
    ada.say('PRIVMSG #LAB :Gate, hello');
    ada.say('PRIVMSG #lab :the gatekeeper is away');
    ada.say('PRIVMSG #lab :ask gate!');
    await expect.poll(() => gate.received.length - before).toBe(4);
    const received = gate.received.slice(before);
    expect(received).toMatchObject([
      { conversationKind: 'direct', conversationId: 'Ada', senderName: 'Ada', text: '* Ada waves', mentionsUs: false },
      { conversationKind: 'shared', conversationId: '#lab', text: 'hello', mentionsUs: true },
      { conversationKind: 'shared', conversationId: '#lab', text: 'the gatekeeper is away', mentionsUs: false },
      { conversationKind: 'shared', conversationId: '#lab', text: 'ask gate!', mentionsUs: true },
    ]);
    for (const { senderId, eventKey, isBot, sentAtMs } of received) {
      expect([senderId, eventKey, isBot]).toEqual([expect.stringMatching(/^ada!.*ada@/), modern ? expect.any(String) : undefined, false]);
      expect(Math.abs(sentAtMs - Date.now())).toBeLessThan(10_000);
    }
    expect(ada.heard.slice(heard).filter((line) => line.includes('gate!'))).toEqual([]);
    expect(gate.proofs()).toBeGreaterThan(10);
  });

  test('what was under way when the server died may have been sent, and nothing is afterwards', async () => {
    const mortal = await start(name);
    const hole = await holeTo(mortal.port);
    const { send, ended } = await connect(hole.port);
    hole.swallow();
    const under = send('Ada', 'hello');
    await mortal.kill();
    expect(await under).toMatchObject({ is: 'ambiguous' });
    expect(await ended).toMatchObject({ ended: 'transient' });
    expect(await send('Ada', 'x')).toMatchObject({ is: 'notSent' });
  });

  test('actions are answered by the server', async () => {
    const one = await connect(ircd.port, { nick: 'actor' });
    const act = (action: string, params: Readonly<Record<string, unknown>> = {}, conversationId = '#acts') =>
      one.adapter.action?.(action, params, { conversationId }, { signal: never });
    expect(await act('join', { channel: '#acts' })).toEqual({ is: 'done', value: { joined: true, channel: '#acts' } });
    // It is there already.
    expect(await act('join', { channel: '#ACTS' })).toEqual({ is: 'done', value: { joined: true, channel: '#ACTS' } });
    ada.say('JOIN #acts');
    await expect.poll(() => ada.heard.some((line) => / 366 .*#acts/i.test(line))).toBe(true);
    const listed = await act('names');
    if (listed?.is !== 'done') throw new Error(`expected names, not ${JSON.stringify(listed)}`);
    expect(listed.value).toEqual({ channel: '#acts', names: expect.arrayContaining(['@actor', 'Ada']), total: 2 });
    for (let n = 0; n < 2; n += 1)
      expect(await act('topic', { topic: 'Tea\r\nQUIT :gone' })).toEqual({ is: 'done', value: { topicSet: true, channel: '#acts' } });
    await expect.poll(() => ada.heard.some((line) => /TOPIC #acts :Tea {2}QUIT :gone/.test(line))).toBe(true);
    expect(await act('part', { reason: 'bye' })).toEqual({ is: 'done', value: { parted: true, channel: '#acts' } });
    await expect.poll(() => ada.heard.some((line) => /^:actor\S* PART #acts/.test(line))).toBe(true);
    expect(await act('part')).toMatchObject({ is: 'failed', kind: 'denied' });
    expect(await act('topic', { topic: 'x' })).toMatchObject({ is: 'failed', kind: 'denied' });
    expect(await act('part', {}, '#nowhere')).toMatchObject({ is: 'failed', kind: 'not_found' });
    expect(await act('sendTyping')).toEqual({ is: 'done', value: { typing: false } });
    expect(irc.capabilities.actions).toEqual(['join', 'part', 'topic', 'names', 'sendTyping']);
  });

  test('an action that the server refuses, or that is none, is said so', async () => {
    const one = await connect(ircd.port, { nick: 'actor' });
    const act = (action: string, params: Readonly<Record<string, unknown>> = {}, conversationId = '#locked') =>
      one.adapter.action?.(action, params, { conversationId }, { signal: never });
    ada.say('JOIN #locked');
    ada.say('MODE #locked +k secret');
    await expect.poll(() => ada.heard.some((line) => /MODE #locked :?\+k/.test(line))).toBe(true);
    expect(await act('join', { channel: '#locked' })).toMatchObject({ is: 'failed', kind: 'denied' });
    expect(await act('join', { channel: '#locked', key: 'secret' })).toMatchObject({ is: 'done' });
    for (const channel of ['Ada', '#a,#b', '#a b', '', 7]) expect(await act('join', { channel })).toMatchObject({ is: 'failed', kind: 'invalid' });
    expect(await act('join', { channel: '#locked', key: 'a b' })).toMatchObject({ is: 'failed', kind: 'invalid' });
    expect(await act('names', {}, 'Ada')).toMatchObject({ is: 'failed', kind: 'invalid' });
    expect(await act('dance')).toEqual({ is: 'failed', kind: 'invalid', text: 'Unsupported action: dance on irc' });
    await one.stop();
    expect(await act('names')).toMatchObject({ is: 'failed', kind: 'unavailable' });
  });

  test('a send that is given up before it is written was not sent', async () => {
    const options = { key: 'x', signal: AbortSignal.abort() };
    expect(await gate.adapter.send({ conversationId: 'Ada', text: 'given up' }, options)).toMatchObject({ is: 'notSent' });
    expect(ada.messages).not.toContain('gate Ada given up');
  });

  test('a channel that it cannot join or is thrown out of is in the log', async () => {
    ada.say('JOIN #invited');
    ada.say('MODE #invited +i');
    ada.say('JOIN #own');
    await expect.poll(() => ada.heard.some((line) => / 366 .*#own/.test(line))).toBe(true);
    const [refused, thrown] = await Promise.all([
      connect(ircd.port, { nick: 'gate2', channels: ['#invited', '#lab'] }),
      connect(ircd.port, { nick: 'gate3', channels: ['#own'] }),
    ]);
    await expect.poll(() => refused.warned).toMatchObject([{ channel: '#invited', code: '473' }]);
    await expect.poll(() => ada.heard.some((line) => /gate3\S* JOIN/.test(line))).toBe(true);
    ada.say('KICK #own gate3 :out');
    await expect.poll(() => thrown.warned).toMatchObject([{ channel: '#own', code: 'KICK' }]);
  });
});

describe.skipIf(!hasIrcServer('ngircd'))('ngircd alone', () => {
  test('a server that is silent without closing is noticed, and one that is only quiet is not', async () => {
    const { port } = await start('ngircd');
    const hole = await holeTo(port);
    const { ended, proofs, send } = await connect(hole.port, { pingMs: 50, pongMs: 200 });
    const before = proofs();
    await expect.poll(() => proofs() - before).toBeGreaterThan(3);
    hole.swallow();
    const under = send('ada', 'x');
    expect(await ended).toEqual({ ended: 'transient', text: 'The server does not answer any more' });
    expect(await under).toMatchObject({ is: 'ambiguous' });
  });

  test('a wrong password is not tried again, and nobody listens at a closed port', async () => {
    const { port } = await start('ngircd', { password: 'right' });
    expect(await (await connect(port, { serverPassword: 'wrong' })).ended).toMatchObject({ ended: 'unauthorized' });
    expect((await connect(port, { serverPassword: 'right' })).name).toBe('gate');
    const noLogin = await connect(port, { serverPassword: 'right', nick: 'other', sasl: { user: 'a', password: 'b' } });
    expect(await noLogin.ended).toEqual({ ended: 'unauthorized', text: 'The server offers no login (SASL)' });
    const closed = await connect(1);
    expect(await closed.ended).toMatchObject({ ended: 'transient', text: expect.stringContaining('ECONNREFUSED') });
  });

  test('a nick in use is changed, as long as the server takes a longer one', async () => {
    const { port } = await start('ngircd');
    using _gate = await joinIrc(port, 'gate');
    // As long as the server allows.
    using _long = await joinIrc(port, 'gatehouse');
    expect((await connect(port, {}, { clock: hurried })).name).toBe('gate_');
    const { ended } = await connect(port, { nick: 'gatehouse' }, { clock: hurried });
    expect(await ended).toEqual({ ended: 'conflict', text: 'The nick gatehouse is in use' });
    const refused = await connect(port, { nick: '9lives' });
    expect(await refused.ended).toMatchObject({ ended: 'unauthorized' });
  });

  test('TLS trusts the given authority alone', async () => {
    const authority = await makeAuthority('test');
    const { tlsPort: port } = await start('ngircd', { tls: await makeCertificate('irc.test', authority) });
    const folder = mkdtempSync(join(tmpdir(), 'gatehouse-irc-ca-'));
    closing.push(() => rmSync(folder, { recursive: true }));
    const tlsCaPath = join(folder, 'ca.crt');
    writeFileSync(tlsCaPath, authority.cert);
    expect((await connect(port, { tls: true, tlsCaPath })).name).toBe('gate');
    const stranger = await connect(port, { tls: true });
    expect(await stranger.ended).toMatchObject({ ended: 'transient', text: expect.stringMatching(/CERT|VERIFY/) });
    const missing = await connect(port, { tls: true, tlsCaPath: join(folder, 'none') });
    expect(await missing.ended).toMatchObject({ ended: 'transient', text: expect.stringContaining('ENOENT') });
  });
});

test('any target and text has an answer, also without a connection', async () => {
  const config = { host: '127.0.0.1', port: 1, tls: false, nick: 'gate', channels: [] };
  const adapter = openIrc({ config, clock: systemClock, log: { debug() {}, warn() {} } });
  const text = fc.string({ unit: 'binary' });
  await fc.assert(
    fc.asyncProperty(text, text, async (conversationId, said) => {
      const { is } = await adapter.send({ conversationId, text: said }, { key: said, signal: never });
      expect(is).toMatch(/^(rejected|notSent)$/);
    }),
  );
});

describe('a server by a script', () => {
  const login = (result: string) => (line: string) => {
    if (line === 'CAP LS 302') return [':srv CAP * LS * :batch sasl=PLAIN', ':srv CAP * LS :message-tags'];
    if (line.startsWith('CAP REQ')) return `:srv CAP * ACK${line.slice('CAP REQ'.length)}`;
    if (line === 'AUTHENTICATE PLAIN') return 'AUTHENTICATE +';
    if (/^AUTHENTICATE (\+|.{1,399})$/.test(line)) return result;
    return line === 'CAP END' ? ':srv 001 gate :Welcome' : undefined;
  };

  test('SASL logs in before the registration ends, with a long password in parts', async () => {
    const { port, lines } = await scripted(login(':srv 903 * :ok'));
    const password = 'p'.repeat(592);
    expect((await connect(port, { sasl: { user: 'gate', password } })).name).toBe('gate');
    const parts = lines.filter((line) => /^AUTHENTICATE (?!PLAIN)/.test(line)).map((line) => line.slice('AUTHENTICATE '.length));
    expect(parts.map((part) => part.length)).toEqual([400, 400, 1]);
    expect(parts.at(-1)).toBe('+');
    expect(Buffer.from(parts.slice(0, -1).join(''), 'base64').toString()).toBe(`\0gate\0${password}`);
    expect(lines.indexOf('CAP END')).toBeGreaterThan(lines.indexOf('AUTHENTICATE +'));
  });

  test.each([
    ['fails', login(':srv 904 * :SASL authentication failed')],
    ['is not done', welcome],
    ['is declined', (line: string) => (line.startsWith('CAP REQ') ? ':srv CAP * NAK :sasl' : login('')(line))],
  ])('a login that %s is not tried again, nor left out', async (_how, answer) => {
    const { port, lines } = await scripted(answer);
    const { ended } = await connect(port, { sasl: { user: 'gate', password: 'secret' }, channels: ['#lab'] });
    expect(await ended).toEqual({ ended: 'unauthorized', text: expect.stringContaining('login') });
    expect(lines.filter((line) => line.startsWith('JOIN'))).toEqual([]);
  });

  test.each([
    [':srv 465 gate :You are banned', 'unauthorized'],
    ['ERROR :Closing Link: gate[host] (K-Lined)', 'unauthorized'],
    ['ERROR :Closing Link: host (Registration timed out)', 'transient'],
    ['ERROR :Closing Link: gate[host] (Nickname collision)', 'conflict'],
    [':nickserv!s@services KILL gate :GHOST command used by gate_', 'conflict'],
  ])('%s ends the connection as %s', async (said, is) => {
    const { port, say } = await scripted(welcome);
    const { ended } = await connect(port);
    say(`${said}\r\n`);
    expect(await ended).toMatchObject({ ended: is });
  });

  const labelled = (line: string): string | undefined => {
    if (line === 'CAP LS 302') return ':srv CAP * LS :message-tags echo-message labeled-response batch account-tag';
    if (line.startsWith('CAP REQ')) return `:srv CAP * ACK${line.slice('CAP REQ'.length)}`;
    return line === 'CAP END' ? ':srv 001 gate :Welcome' : undefined;
  };

  test('an answer without a confirmation or a refusal, and none in time, leave it open', async () => {
    const answers: Readonly<Record<string, string>> = {
      ack: 'ACK',
      notice: ':srv NOTICE gate :Blocked',
      fail: 'FAIL PRIVMSG SPAM :Blocked',
      odd: ':srv 499 gate ada :No',
    };
    const { port } = await scripted((line) => {
      const [, label = '', text = ''] = /^@label=(\w+) PRIVMSG ada :?(.*)$/.exec(line) ?? [];
      if (text === 'batch') return [`@label=${label} BATCH +7 labeled-response`, '@batch=7 :srv 301 gate ada :away', 'BATCH -7'];
      return answers[text] === undefined ? labelled(line) : `@label=${label} ${answers[text]}`;
    });
    const { send } = await connect(port, { pingMs: 2_000, pongMs: 3_000 }, { clock: hurried });
    expect(await Promise.all(['ack', 'notice', 'batch', 'fail', 'odd', 'none'].map((text) => send('ada', text)))).toMatchObject([
      { is: 'ambiguous' },
      { is: 'ambiguous' },
      { is: 'ambiguous' },
      { is: 'rejected', text: 'Blocked' },
      { is: 'rejected', text: 'No' },
      { is: 'ambiguous', text: expect.stringContaining('in time') },
    ]);
  });

  test('a server that takes its labels back is asked by a ping', async () => {
    const { port, say } = await scripted((line) => (line.startsWith('PING') ? line.replace('PING', ':srv PONG srv') : labelled(line)));
    const { send, proofs } = await connect(port);
    const before = proofs();
    say(':srv CAP gate DEL :labeled-response\r\n');
    await expect.poll(proofs).toBeGreaterThan(before);
    expect(await send('ada', 'x')).toEqual({ is: 'sent' });
  });

  test('an account is a sender, a bot is one, and names are compared as the network does', async () => {
    const { port, say } = await scripted(welcome);
    const { received } = await connect(port);
    say(':srv 005 gate CASEMAPPING=ascii :are supported\r\n');
    say('@account=Ada;bot;msgid=1;time=2026-01-02T03:04:05.000Z :Ada!~u@Host PRIVMSG #Lab[ :x\r\n');
    say('@account=* :Ada!~u@Host PRIVMSG GATE :gâte gate\u00E9\r\n');
    await expect
      .poll(() => received)
      .toEqual([
        {
          eventKey: '1',
          conversationId: '#lab[',
          conversationKind: 'shared',
          senderId: 'account:ada',
          senderName: 'Ada',
          isBot: true,
          text: 'x',
          mentionsUs: false,
          sentAtMs: Date.UTC(2026, 0, 2, 3, 4, 5),
        },
        expect.objectContaining({ eventKey: undefined, conversationKind: 'direct', senderId: 'ada!~u@host', isBot: false, mentionsUs: false }),
      ]);
  });

  test.each(['x'.repeat(8_704), `${'x'.repeat(8_704)}\r\n`])('a line that is too long ends the connection', async (text) => {
    const { port, say } = await scripted(welcome);
    const { ended } = await connect(port);
    say(text);
    expect(await ended).toEqual({ ended: 'transient', text: 'The server sent a line that is too long' });
  });

  test('a full queue stops the reading, without losing messages, their order or the connection', async () => {
    const { port, say, sockets } = await scripted(welcome);
    const room = Promise.withResolvers<void>();
    const asked: number[] = [];
    const take = (messages: readonly ReceivedMessage[]) => (asked.push(messages.length), room.promise);
    const { received, proofs } = await connect(port, { pingMs: 1_000, pongMs: 1_000 }, { take, clock: hurried });
    const before = proofs();
    say(Array.from({ length: 1_000 }, (_, n) => `:ada!u@h PRIVMSG gate :${n}\r\n`).join(''));
    await expect.poll(() => proofs() - before).toBe(256);
    // Several times the time that a server has for its answer: it is not heard.
    let quiet = 0;
    await new Promise<void>((resolve) => {
      const wait = () => ((quiet += 1) === 5 ? resolve() : void hurried.after(1_000, wait));
      wait();
    });
    expect([proofs() - before, asked.length, sockets.size]).toEqual([256, 1, 1]);
    room.resolve();
    await expect.poll(() => received.length).toBe(1_000);
    expect(received.map(({ text }) => Number(text))).toEqual(Array.from({ length: 1_000 }, (_, n) => n));
  });

  test('messages that could not be stored when the connection ended are stored before the next one', async () => {
    const { port, say, sockets } = await scripted(welcome);
    let fails = true;
    let tries = 0;
    const take = async () => {
      tries += 1;
      if (fails) throw new Error('the storage is away');
    };
    const { received, ended } = await connect(port, {}, { take, clock: hurried });
    say(':ada!u@h PRIVMSG gate :one\r\n:ada!u@h PRIVMSG gate :two\r\n');
    await expect.poll(() => tries).toBeGreaterThan(0);
    for (const socket of sockets) socket.destroy();
    const seen = tries;
    await expect.poll(() => tries).toBeGreaterThan(seen + 2);
    fails = false;
    expect(await ended).toMatchObject({ ended: 'transient' });
    expect(received.map(({ text }) => text)).toEqual(['one', 'two']);
  });

  test('a stop does not wait for a storage that stays away', async () => {
    const { port, say } = await scripted(welcome);
    let tries = 0;
    const take = async () => {
      tries += 1;
      throw new Error('the storage is away');
    };
    const { stop, warned } = await connect(port, {}, { take });
    say(':ada!u@h PRIVMSG gate :one\r\n');
    await expect.poll(() => tries).toBe(1);
    expect(await stop()).toMatchObject({ ended: 'stopped' });
    expect(tries).toBe(2);
    expect(warned.at(-1)).toMatchObject({ lost: 1 });
  });
});
