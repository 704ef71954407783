import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '@gatehouse/testkit/free-port';
import { afterAll, describe, expect, test } from 'vitest';
import { startRig, type Rig, type Wire } from './testing.ts';

const rigs: Rig[] = [];
afterAll(async () => {
  await Promise.all(rigs.map((rig) => rig[Symbol.asyncDispose]()));
});
const hourMs = 3_600_000;
/** Longer than the library waits before a new socket. */
const libraryPauseMs = 700;

/** A rig with a person, a direct channel, and a wire that is connected. */
async function start(options?: Parameters<typeof startRig>[0], { poll } = expect) {
  const rig = await startRig(options);
  rigs.push(rig);
  const ada = rig.fake.person('ada');
  const direct = rig.fake.directChannel(ada);
  const wire = rig.open();
  void wire.run();
  await poll(() => wire.names).toEqual(['gate']);
  const say = (text: string) => rig.fake.write(ada, direct, text);
  return { ...rig, ada, direct, wire, say };
}
const textsOf = ({ received }: Wire) => received.map(({ text }) => text);
const requestsOf = ({ fake }: Rig, match: RegExp) => fake.rest.requests.filter(({ method, path }) => match.test(`${method} ${path}`));

test('another process resumes the session and gets what was written meanwhile, once', async () => {
  const { fake, open, wire, say } = await start();
  say('one');
  await expect.poll(() => textsOf(wire)).toEqual(['one']);
  await wire.stop();
  expect(fake.gateway.closedByClient.at(-1)).toBe(4_200);
  say('two');
  say('three');
  const next = open(wire.cursors.at(-1));
  void next.run();
  await expect.poll(() => textsOf(next)).toEqual(['two', 'three']);
  expect(fake.gateway.log).toEqual([expect.stringContaining('identify'), expect.stringMatching(/^resume \d+$/)]);
  expect(next.names).toEqual(['gate']);
});

test('what could not be stored comes again', async () => {
  const { wire, say, fake } = await start();
  say('one');
  await expect.poll(() => textsOf(wire)).toEqual(['one']);
  wire.refuses = true;
  say('two');
  await expect.poll(() => wire.ended()).toEqual({ ended: 'transient', text: 'The messages could not be stored' });
  wire.refuses = false;
  void wire.run();
  await expect.poll(() => textsOf(wire)).toEqual(['one', 'two']);
  expect(fake.gateway.log.at(-1)).toMatch(/^resume/);
});

test('a stop while the storage fails loses nothing', async () => {
  const { open, wire, say } = await start();
  say('one');
  await expect.poll(() => textsOf(wire)).toEqual(['one']);
  const holding = Promise.withResolvers<void>();
  wire.holds = holding.promise;
  say('two');
  await expect.poll(() => wire.taking).toBe(true);
  const stopped = wire.stop();
  wire.holds = undefined;
  holding.reject(new Error('the storage is full'));
  await stopped;
  const next = open(wire.cursors.at(-1));
  void next.run();
  await expect.poll(() => textsOf(next)).toEqual(['two']);
});

test('after three failed resumes a new session begins', async () => {
  const { fake, wire, say, open } = await start();
  say('one');
  await expect.poll(() => textsOf(wire)).toEqual(['one']);
  await wire.stop();
  const next = open(wire.cursors.at(-1));
  fake.gateway.onResume(4_000, 4_000, 4_000);
  for (let failures = 1; failures <= 3; failures += 1) expect(await next.run()).toMatchObject({ ended: 'transient' });
  say('two');
  void next.run();
  await expect.poll(() => textsOf(next)).toEqual(['two']);
  expect(fake.gateway.log.map((line) => line.split(' ')[0])).toEqual(['identify', 'resume', 'resume', 'resume', 'identify']);
});

test.each([
  [4_004, /token/],
  [4_010, /shard/],
  [4_011, /too many guilds/],
  [4_012, /version/],
  [4_013, /intent/],
  [4_014, /Message Content Intent/],
])('close %i is final and says what to do', async (code, text) => {
  const rig = await startRig();
  rigs.push(rig);
  rig.fake.gateway.onIdentify(code);
  const wire = rig.open();
  expect(await wire.run()).toEqual({ ended: 'unauthorized', text: expect.stringMatching(text) });
  expect(wire.names).toEqual([]);
});

test('an intent that the portal does not grant names its switch', async () => {
  const rig = await startRig();
  rigs.push(rig);
  rig.fake.gateway.grantMessageContent(false);
  expect(await rig.open().run()).toEqual({ ended: 'unauthorized', text: expect.stringContaining('"Message Content Intent"') });
});

test('a wrong token is final, and not in the text', async () => {
  const rig = await startRig();
  rigs.push(rig);
  const ended = await rig.open(undefined, { token: 'wrong-token' }).run();
  expect(ended).toEqual({ ended: 'unauthorized', text: expect.stringContaining('refuses the token') });
  expect(JSON.stringify(ended)).not.toContain('wrong-token');
});

test('a connection that does not answer any more is given up, and its session resumed', async () => {
  const { fake, clock, wire, say } = await start();
  await expect.poll(() => fake.gateway.heartbeats).toBe(0);
  clock.advance(30_000);
  await expect.poll(() => fake.gateway.heartbeats).toBe(1);
  await expect.poll(() => wire.proofs).toBe(2);
  fake.gateway.withholdAcks(true);
  clock.advance(30_000);
  await expect.poll(() => fake.gateway.heartbeats).toBe(2);
  expect(wire.ended()).toBeUndefined();
  clock.advance(15_000);
  await expect.poll(() => wire.ended()).toEqual({ ended: 'transient', text: 'The gateway does not answer any more' });
  say('meanwhile');
  fake.gateway.withholdAcks(false);
  void wire.run();
  await expect.poll(() => textsOf(wire)).toEqual(['meanwhile']);
  expect(fake.gateway.log.at(-1)).toMatch(/^resume/);
});

test('a connection over which no events come is noticed within ten minutes, once for a channel; plain silence is not', async () => {
  const rig = await start();
  const { fake, clock, wire, say, direct } = rig;
  say('heard');
  await expect.poll(() => textsOf(wire)).toEqual(['heard']);
  /** Lets time pass in steps that are short against all deadlines, until so much is over or the connection has ended. */
  const pass = async (ms: number): Promise<boolean> => {
    for (const endsAt = clock.monotonic() + ms; clock.monotonic() < endsAt && wire.ended() === undefined;) {
      const beats = fake.gateway.heartbeats;
      const proofs = wire.proofs;
      clock.advance(5_000);
      for (let turns = 0; turns < 20; turns += 1) await new Promise((resolve) => setImmediate(resolve));
      if (fake.gateway.heartbeats > beats) await expect.poll(() => wire.ended() !== undefined || wire.proofs > proofs, { interval: 1 }).toBe(true);
    }
    return wire.ended() !== undefined;
  };
  expect(await pass(3 * hourMs)).toBe(false);
  // One request each five minutes.
  expect(requestsOf(rig, /GET .*messages$/).length).toBeLessThanOrEqual(3 * 12 + 1);
  fake.gateway.withholdEvents(true);
  say('withheld');
  const since = clock.monotonic();
  expect(await pass(20 * 60_000)).toBe(true);
  expect(clock.monotonic() - since).toBeLessThanOrEqual(10 * 60_000);
  expect(wire.ended()).toEqual({ ended: 'transient', text: 'Discord did not report a message that its history has' });
  // The next session begins with what was missed; when it is deaf as well, it stays, and messages are fetched.
  void wire.run();
  await expect.poll(() => textsOf(wire)).toEqual(['heard', 'withheld']);
  expect(fake.gateway.log.at(-1)).toMatch(/^identify/);
  say('withheld again');
  expect(await pass(10 * 60_000)).toBe(false);
  await expect.poll(() => textsOf(wire)).toEqual(['heard', 'withheld', 'withheld again']);
  // An event of the channel shows that the gateway reports it again.
  fake.gateway.withholdEvents(false);
  say('heard again');
  await expect.poll(() => textsOf(wire)).toContain('heard again');
  fake.gateway.withholdEvents(true);
  fake.write(rig.ada, direct, 'withheld at last');
  expect(await pass(20 * 60_000)).toBe(true);
});

test('a cursor alone is stored at most every ten seconds', async () => {
  const { fake, clock, wire, ada } = await start({ heartbeatMs: 200 });
  const channel = fake.channel(fake.guild('lab'), 'general');
  await expect.poll(() => wire.cursors).toHaveLength(1);
  // Events that no agent sees.
  for (let n = 0; n < 50; n += 1) fake.write(ada, channel, '', { type: 7 });
  fake.write(ada, channel, 'seen');
  await expect.poll(() => wire.cursors).toHaveLength(2);
  for (let n = 0; n < 50; n += 1) fake.write(ada, channel, '', { type: 7 });
  // An acknowledgement comes behind the events.
  const { proofs } = wire;
  await expect.poll(() => wire.proofs).toBeGreaterThan(proofs + 1);
  clock.advance(9_999);
  expect(wire.cursors).toHaveLength(2);
  await expect
    .poll(() => {
      clock.advance(1);
      return wire.cursors.length;
    })
    .toBe(3);
  const seqOf = (cursor: string | undefined): number => (JSON.parse(cursor ?? '{}') as { session: { seq: number } }).session.seq;
  expect(seqOf(wire.cursors[2]) - seqOf(wire.cursors[1])).toBe(50);
});

test('at most 200 conversations are remembered, those that were active last', async () => {
  const { fake, wire } = await start();
  const people = Array.from({ length: 205 }, (_, n) => fake.person(`p${n}`));
  for (const person of people) fake.write(person, fake.directChannel(person), 'hi');
  await expect.poll(() => wire.received).toHaveLength(205);
  await wire.stop();
  const { channels } = JSON.parse(wire.cursors.at(-1) ?? '{}') as { channels: [string, string][] };
  expect(channels).toHaveLength(200);
  expect(channels.map(([id]) => id)).toEqual(people.slice(5).map((person) => fake.directChannel(person).id));
});

test.each(['no json', '{}', '{"session":{"id":1}}', '{"channels":[["../x","1"]]}', '[]', '{"__proto__":1}'])(
  'a cursor that cannot be read begins a new session: %s',
  async (cursor) => {
    const rig = await startRig();
    rigs.push(rig);
    const wire = rig.open(cursor);
    void wire.run();
    await expect.poll(() => wire.names).toHaveLength(1);
    expect(rig.fake.gateway.log).toEqual(['identify 37377']);
  },
);

test.each(['ws://evil.test/', 'http://127.0.0.1/', 'wss://user:pw@gateway.test/', 'no address'])(
  'an address of the gateway that is not secure is not connected to: %s',
  async (url) => {
    const rig = await startRig();
    rigs.push(rig);
    rig.fake.announceGateway(url);
    expect(await rig.open().run()).toMatchObject({ ended: 'transient', text: expect.stringContaining('not secure') });
  },
);

test('a session whose address is not secure is not resumed', async () => {
  const { fake, wire, open } = await start();
  await expect.poll(() => wire.cursors).toHaveLength(1);
  await wire.stop();
  const cursor = wire.cursors.at(-1)!.replace(/ws:[^"]*/, 'ws://evil.test/');
  expect(cursor).toContain('evil.test');
  const next = open(cursor);
  void next.run();
  await expect.poll(() => next.names).toHaveLength(1);
  expect(fake.gateway.log.map((line) => line.split(' ')[0])).toEqual(['identify', 'identify']);
});

test.each(['{"op":10}', '{"op":0,"t":"READY","s":1}', '{"op":9}', `{"op":0,"x":"${'y'.repeat(16_777_216)}"}`])(
  'a frame that cannot be handled ends the connection, not the process: %.30s',
  async (frame) => {
    const { fake, wire, say } = await start();
    fake.gateway.say(frame);
    await expect.poll(() => wire.ended()).toEqual({ ended: 'transient', text: 'The gateway sent something that cannot be read' });
    void wire.run();
    say('again');
    await expect.poll(() => textsOf(wire)).toEqual(['again']);
  },
);

test('a gateway that cannot be reached ends the try, and keeps the session', async () => {
  const { fake, wire, say, open } = await start();
  say('one');
  await expect.poll(() => textsOf(wire)).toEqual(['one']);
  await wire.stop();
  const cursor = wire.cursors.at(-1)!;
  const next = open(cursor.replace(/ws:[^"]*/, `ws://127.0.0.1:${await freePort()}/`));
  expect(await next.run()).toEqual({ ended: 'transient', text: 'No session with the gateway: ECONNREFUSED' });
  const last = open(cursor);
  void last.run();
  await expect.poll(() => last.names).toHaveLength(1);
  expect(fake.gateway.log.at(-1)).toMatch(/^resume/);
});

test('an API that does not answer ends the try at its deadline', async () => {
  const rig = await startRig();
  rigs.push(rig);
  rig.fake.rest.fail(/users/, 'hang');
  const wire = rig.open();
  void wire.run();
  await expect.poll(() => rig.fake.rest.requests).toHaveLength(1);
  rig.clock.advance(30_000);
  await expect.poll(() => wire.ended()).toEqual({ ended: 'transient', text: 'No complete answer within 30 s' });
});

// The library waits half a second before each new socket.
describe.concurrent('a session', () => {
  for (const [name, disturb] of [
    ['the gateway asks for a new socket', (fake: Rig['fake']) => fake.gateway.askToReconnect()],
    ['the gateway closes the socket', (fake: Rig['fake']) => fake.gateway.close(4_000)],
    ['the socket is cut', (fake: Rig['fake']) => fake.gateway.cut()],
  ] as const)
    test(`${name}: the session continues without an end`, async ({ expect }) => {
      const { fake, wire, say } = await start(undefined, expect);
      say('one');
      await expect.poll(() => textsOf(wire)).toEqual(['one']);
      disturb(fake);
      await expect.poll(() => fake.gateway.connected).toBe(0);
      say('two');
      await expect.poll(() => textsOf(wire)).toEqual(['one', 'two']);
      expect(fake.gateway.log.at(-1)).toMatch(/^resume/);
      expect([wire.ended(), wire.names]).toEqual([undefined, ['gate', 'gate']]);
    });

  test('a session that Discord ends is followed by a new one without an end', async ({ expect }) => {
    const { fake, wire, say } = await start(undefined, expect);
    say('one');
    await expect.poll(() => textsOf(wire)).toEqual(['one']);
    fake.gateway.forgetSessions();
    fake.gateway.cut();
    say('two');
    await expect.poll(() => textsOf(wire)).toEqual(['one', 'two']);
    expect(fake.gateway.log.map((line) => line.split(' ')[0])).toEqual(['identify', 'resume', 'identify']);
    expect(wire.ended()).toBeUndefined();
  });

  test('each acknowledged heartbeat proves that the peer is alive, one that is missing ends the socket', async ({ expect }) => {
    const { fake, wire, say } = await start({ heartbeatMs: 200 }, expect);
    await expect.poll(() => wire.proofs).toBeGreaterThan(3);
    fake.gateway.withholdAcks(true);
    await expect.poll(() => fake.gateway.connected).toBe(0);
    fake.gateway.withholdAcks(false);
    say('still there?');
    await expect.poll(() => textsOf(wire)).toEqual(['still there?']);
    expect(fake.gateway.log.at(-1)).toMatch(/^resume/);
  });

  test('a session that is gone begins again, and missed messages of known conversations are fetched', async ({ expect }) => {
    const rig = await start(undefined, expect);
    const { fake, clock, open, wire, say, ada } = rig;
    const guild = fake.guild('lab');
    const [known, other] = [fake.channel(guild, 'known'), fake.channel(guild, 'other')];
    const thread = fake.thread(known, 'side');
    say('too old');
    fake.write(ada, known, 'in the channel', { mentionsBot: true });
    fake.write(ada, thread, 'in the thread', { mentionsBot: true });
    fake.write(ada, other, 'not for us');
    await expect.poll(() => wire.received).toHaveLength(4);
    await wire.stop();
    say('also too old');
    clock.advance(hourMs + 60_000);
    say('missed');
    fake.write(ada, known, 'missed in the channel');
    fake.write(ada, thread, 'missed in the thread');
    fake.write(ada, other, 'missed, not for us');
    fake.gateway.forgetSessions();
    const next = open(wire.cursors.at(-1));
    void next.run();
    await expect.poll(() => next.received).toHaveLength(3);
    expect(next.received).toMatchObject([
      { text: 'missed', conversationKind: 'direct' },
      { text: 'missed in the channel', conversationId: known.id, conversationKind: 'shared' },
      { text: 'missed in the thread', conversationId: known.id, threadId: thread.id },
    ]);
    expect(requestsOf(rig, /GET .*messages$/).map(({ path }) => path)).not.toContain(`/channels/${other.id}/messages`);
    // The new session is stored with what was fetched.
    await expect.poll(() => next.cursors.length).toBeGreaterThan(1);
    await next.stop();
    const last = open(next.cursors.at(-1));
    void last.run();
    await expect.poll(() => fake.gateway.log.at(-1)).toMatch(/^resume/);
    await expect.poll(() => last.names).toHaveLength(1);
    expect(last.received).toEqual([]);
  });

  test('a failure while missed messages are fetched loses none of them', async ({ expect }) => {
    const { fake, wire, say, open } = await start(undefined, expect);
    say('one');
    await expect.poll(() => textsOf(wire)).toEqual(['one']);
    await wire.stop();
    say('two');
    fake.gateway.forgetSessions();
    fake.rest.fail(/GET .*messages/, { status: 503 });
    const next = open(wire.cursors.at(-1));
    void next.run();
    await expect.poll(() => next.ended()).toMatchObject({ ended: 'transient' });
    expect(next.received).toEqual([]);
    const last = open(next.cursors.at(-1));
    void last.run();
    await expect.poll(() => textsOf(last)).toEqual(['two']);
  });

  test('a rate limit while missed messages are fetched is waited out', async ({ expect }) => {
    const { fake, clock, wire, say, open } = await start(undefined, expect);
    say('one');
    await expect.poll(() => textsOf(wire)).toEqual(['one']);
    await wire.stop();
    say('two');
    fake.gateway.forgetSessions();
    fake.rest.fail(/GET .*messages/, { retryAfterMs: 0 });
    const next = open(wire.cursors.at(-1));
    void next.run();
    await expect
      .poll(() => {
        clock.advance(200);
        return textsOf(next);
      })
      .toEqual(['two']);
  });

  test('a new socket waits for what is being stored: nothing comes twice', async ({ expect }) => {
    const { fake, wire, say } = await start(undefined, expect);
    const holding = Promise.withResolvers<void>();
    wire.holds = holding.promise;
    say('one');
    await expect.poll(() => wire.taking).toBe(true);
    say('two');
    fake.gateway.askToReconnect();
    await expect.poll(() => fake.gateway.connected).toBe(0);
    await sleep(libraryPauseMs);
    wire.holds = undefined;
    holding.resolve();
    await expect.poll(() => wire.names).toHaveLength(2);
    say('three');
    await expect.poll(() => textsOf(wire)).toContain('three');
    expect(textsOf(wire)).toEqual(['one', 'two', 'three']);
  });

  test('the library does not connect again after the end', async ({ expect }) => {
    const { fake, wire, open } = await start(undefined, expect);
    await expect.poll(() => wire.cursors).toHaveLength(1);
    await wire.stop();
    fake.gateway.onResume(4_000);
    expect(await open(wire.cursors.at(-1)).run()).toMatchObject({ ended: 'transient' });
    await sleep(libraryPauseMs);
    expect(fake.gateway.log).toHaveLength(2);
  });

  test('it stops while it connects, and a failure of that connection is nobody’s', async ({ expect }) => {
    const rig = await startRig();
    rigs.push(rig);
    const sockets: Socket[] = [];
    const silent = createServer((socket) => void sockets.push(socket.resume()));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    rig.fake.announceGateway(`ws://127.0.0.1:${(silent.address() as AddressInfo).port}/`);
    const wire = rig.open();
    const running = wire.run();
    await expect.poll(() => sockets).toHaveLength(1);
    await wire.stop();
    expect(await running).toEqual({ ended: 'stopped', text: 'Stopped' });
    expect(wire.names).toEqual([]);
    const [socket] = sockets;
    socket?.end('HTTP/1.1 500 No\r\n\r\n');
    await new Promise((resolve) => socket?.once('close', resolve));
    await sleep(libraryPauseMs);
    expect(sockets).toHaveLength(1);
    await new Promise((resolve) => silent.close(resolve));
  });
});
