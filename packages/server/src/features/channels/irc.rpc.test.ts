import {
  hasIrcServer,
  type IrcPerson,
  type IrcServer,
  type IrcServerName,
  joinIrc,
  startIrcServer,
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from '@gatehouse/testkit';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';

const names: readonly IrcServerName[] = ['inspircd', 'ngircd'];
for (const name of names.filter((one) => !hasIrcServer(one))) console.warn(`Tests of IRC with ${name} are skipped: it is not installed`);

type Channels = NonNullable<NonNullable<TestServerOptions['config']>['channels']>;

describe.each(names.filter(hasIrcServer))('agents on %s', (name) => {
  let ircd: IrcServer;
  let server: TestServer;
  const people: IrcPerson[] = [];
  beforeAll(async () => {
    ircd = await startIrcServer(name);
  });
  afterAll(() => ircd[Symbol.asyncDispose]());
  afterEach(async () => {
    for (const person of people.splice(0)) person[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
  });

  const start = async (more: Partial<Extract<Channels[string], { type: 'irc' }>> = {}, options: TestServerOptions = {}) => {
    const net = { type: 'irc' as const, host: '127.0.0.1', port: ircd.port, tls: false, nick: 'gate', ...more };
    server = await startTestServer({
      ...options,
      config: { agents: { default: { model: 'mock/mock-fast' } }, channels: { net }, ...options.config },
    });
    await expect.poll(stateOf).toBe('healthy');
    return server;
  };
  const stateOf = async () => (await server.client.call('channels.get', { channel_type: 'irc' })).state;
  const join = async (nick: string, channels: readonly string[] = []) => {
    const person = await joinIrc(ircd.port, nick, { channels });
    people.push(person);
    return person;
  };

  test('a stranger gets a code, is approved with it, and is answered from then on', async () => {
    await start();
    const asked: string[] = [];
    server.provider.setAnswer(({ body }) => {
      asked.push(JSON.stringify(body));
      return { text: 'First line\n\n**Second** line' };
    });
    const ada = await join('ada');
    ada.say('PRIVMSG gate :hello');
    await expect.poll(() => ada.messages).toEqual([expect.stringMatching(/^gate ada .*code.*: [A-Z2-9]{8}$/)]);
    expect(asked).toEqual([]);
    // One reply for each request.
    ada.say('PRIVMSG gate :hello again');
    await expect.poll(async () => (await server.client.call('channels.messages', {})).total).toBe(2);
    const code = ada.messages[0]?.slice(-8) ?? '';
    await expect(server.client.call('channels.pair', { code: 'AAAAAAAA' })).rejects.toMatchObject({ code: 'not_found' });
    const pairing = await server.client.call('channels.pair', { code: code.toLowerCase(), person: 'ada' });
    expect(pairing).toMatchObject({ state: 'approved', senderName: 'ada', person: 'ada', principalId: 'person:ada' });
    await expect(server.client.call('channels.pair', { code })).rejects.toMatchObject({ code: 'not_found' });
    await expect.poll(() => ada.messages.at(-1)).toContain('You are approved');
    ada.say('PRIVMSG gate :what is new?');
    await expect.poll(() => ada.messages.slice(-2)).toEqual(['gate ada First line', 'gate ada Second line']);
    expect(asked).toHaveLength(1);
    expect(asked[0]).toContain('UNTRUSTED');
    const { messages } = await server.client.call('channels.messages', {});
    expect(messages.map(({ verdict, state }) => [verdict, state])).toEqual([
      ['turn', 'done'],
      ['pairing', null],
      ['pairing', null],
    ]);
    await server.client.call('channels.unpair', { pairingId: pairing.pairingId });
    ada.say('PRIVMSG gate :and now?');
    await expect.poll(async () => (await server.client.call('channels.messages', {})).messages[0]?.verdict).toBe('pairing');
    expect(asked).toHaveLength(1);
  });

  test('in a channel it answers those who name it, where they did, and keeps the conversation apart', async () => {
    await start({ channels: ['#lab'], dm: { policy: 'open' } });
    server.provider.setAnswer(({ body }) => {
      const { messages } = body as { readonly messages: readonly { readonly role: string }[] };
      return { text: `Heard ${messages.filter(({ role }) => role === 'user').length}.` };
    });
    const ada = await join('ada', ['#lab']);
    await expect.poll(() => ada.heard.some((line) => /gate/.test(line))).toBe(true);
    ada.say('PRIVMSG #lab :nobody in particular');
    ada.say('PRIVMSG #lab :gate: are you there?');
    await expect.poll(() => ada.messages).toEqual(['gate #lab Heard 1.']);
    ada.say('PRIVMSG gate :directly');
    await expect.poll(() => ada.messages.at(-1)).toBe('gate ada Heard 1.');
    ada.say('PRIVMSG #lab :hey gate, again');
    await expect.poll(() => ada.messages.at(-1)).toBe('gate #lab Heard 2.');
    const { channels } = await server.client.call('channels.health', {});
    expect(channels.find(({ channelInstanceId }) => channelInstanceId === 'net')).toMatchObject({
      state: 'healthy',
      dropped: { unmentioned: 1 },
      lastMessageAt: expect.any(Number),
      lastSentAt: expect.any(Number),
    });
    await expect
      .poll(() => server.client.call('delivery.queue.status', { channel_type: 'irc' }))
      .toMatchObject({ delivered: 3, pending: 0, unknown: 0 });
  });

  // What does not depend on the server is tested on one.
  test.skipIf(name === 'inspircd')('what an answer contains cannot become a command', async () => {
    await start({ dm: { policy: 'open' } });
    server.provider.setAnswer(() => ({ text: 'one\r\nQUIT :gone\rJOIN #evil\0\nPRIVMSG eve :hi\n\x01VERSION\x01' }));
    const [ada, eve] = [await join('ada'), await join('eve')];
    ada.say('PRIVMSG gate :say it');
    await expect
      .poll(() => ada.messages)
      .toEqual(['gate ada one', 'gate ada QUIT :gone', 'gate ada JOIN #evil', 'gate ada PRIVMSG eve :hi', 'gate ada VERSION']);
    expect(eve.messages).toEqual([]);
    expect(await stateOf()).toBe('healthy');
  });

  test.skipIf(name === 'ngircd')('messages that come at the same time are answered in their order', async () => {
    await start({ dm: { policy: 'open' } });
    server.provider.setAnswer(({ body }) => {
      const { messages } = body as { readonly messages: readonly { readonly role: string; readonly content: unknown }[] };
      return { text: `To ${/number (\d)/.exec(JSON.stringify(messages.findLast(({ role }) => role === 'user')))?.[1]}` };
    });
    const ada = await join('ada');
    ada.say([1, 2, 3, 4, 5].map((n) => `PRIVMSG gate :number ${n}`).join('\r\n'));
    await expect.poll(() => ada.messages).toEqual([1, 2, 3, 4, 5].map((n) => `gate ada To ${n}`));
  });

  test.skipIf(name === 'ngircd')('a flood of one sender is counted, not kept', async () => {
    await start();
    const ada = await join('ada');
    for (let n = 0; n < 33; n += 1) ada.say(`PRIVMSG gate :message ${n}`);
    const dropped = async () => (await server.client.call('channels.health', {})).channels.at(-1)?.dropped;
    await expect.poll(dropped).toEqual({ pairing: 30, flood: 3 });
    expect((await server.client.call('channels.messages', {})).total).toBe(30);
  });

  test('a message to nobody is refused, its owner is alerted, and it can be sent again', async () => {
    await start({ dm: { policy: 'open' } });
    const answered = Promise.withResolvers<void>();
    const alerts = server.heard('inbox:message');
    server.provider.setAnswer(() => ({ text: 'Too late?', after: answered.promise }));
    const ada = await join('ada');
    ada.say('PRIVMSG gate :wait for it');
    await expect.poll(() => server.provider.served()).toBe(1);
    ada.say('QUIT');
    await expect.poll(() => ada.heard.some((line) => line.startsWith('ERROR'))).toBe(true);
    answered.resolve();
    await expect
      .poll(async () => (await server.client.call('delivery.list', { state: 'rejected' })).deliveries)
      .toMatchObject([{ state: 'rejected', errorKind: 'no_such_target' }]);
    const { deliveries } = await server.client.call('delivery.list', { state: 'rejected' });
    await expect.poll(() => alerts).toMatchObject([{ source: 'channel', level: 'alert' }]);
    const { messages } = await server.client.call('inbox.list', {});
    expect(messages).toMatchObject([{ source: 'channel', level: 'alert', text: expect.stringContaining('was not sent') }]);
    const again = await join('ada');
    await server.client.call('delivery.resend', { deliveryId: deliveries[0]?.deliveryId ?? '' });
    await expect.poll(() => again.messages).toEqual(['gate ada Too late?']);
  });

  test('an answer does not go to somebody who has taken the nick meanwhile', async () => {
    await start({ dm: { policy: 'open' } });
    const answered = Promise.withResolvers<void>();
    server.provider.setAnswer(() => ({ text: 'The secret.', after: answered.promise }));
    const ada = await join('ada');
    ada.say('PRIVMSG gate :hello');
    await expect.poll(() => server.provider.served()).toBe(1);
    ada.say('QUIT');
    await expect.poll(() => ada.heard.some((line) => line.startsWith('ERROR'))).toBe(true);
    const eve = await joinIrc(ircd.port, 'ada', { user: 'eve' });
    people.push(eve);
    answered.resolve();
    await expect
      .poll(async () => (await server.client.call('delivery.list', { state: 'rejected' })).deliveries)
      .toMatchObject([{ state: 'rejected', errorKind: 'identity', error: expect.stringContaining('Somebody else has the nick ada') }]);
    expect(eve.messages).toEqual([]);
    eve.say('QUIT');
    await expect.poll(() => eve.heard.some((line) => line.startsWith('ERROR'))).toBe(true);
    const again = await join('ada');
    const [{ deliveryId } = { deliveryId: '' }] = (await server.client.call('delivery.list', { state: 'rejected' })).deliveries;
    // What the server said of the nick counts for some seconds.
    await server.client.call('channels.restart', { channel_type: 'irc' });
    await expect.poll(stateOf).toBe('healthy');
    await server.client.call('delivery.resend', { deliveryId });
    await expect.poll(() => again.messages.map((line) => line.replace(/^gate_* /, 'gate '))).toEqual(['gate ada The secret.']);
  });

  test('it connects again when the server was away, and sends what waits', async () => {
    await start({ dm: { policy: 'open' } });
    server.provider.setAnswer(() => ({ text: 'Back.' }));
    await ircd.kill();
    await expect.poll(stateOf).toMatch(/disconnected|errored/);
    await ircd.restart();
    await expect.poll(stateOf).toBe('healthy');
    const ada = await join('ada');
    ada.say('PRIVMSG gate :still there?');
    await expect.poll(() => ada.messages).toEqual(['gate ada Back.']);
  });

  test.skipIf(name === 'inspircd')('it is disabled and enabled in the configuration', async () => {
    await start();
    const seen = server.heard('diagnostic:channel_health');
    const [gone, here] = [server.heard('channel:deregistered'), server.heard('channel:registered')];
    await server.client.call('channels.disable', { channel_type: 'irc' });
    expect(await server.client.call('channels.list', {})).toMatchObject({
      channels: [{ channelType: 'gateway' }, { status: 'disabled', state: 'disabled' }],
      total: 2,
    });
    await expect.poll(() => [gone.length, seen.at(-1)?.currentState]).toEqual([1, 'disabled']);
    await server.client.call('channels.enable', { channel_type: 'irc', channel_instance_id: 'net' });
    await expect.poll(stateOf).toBe('healthy');
    expect(here).toMatchObject([{ channelType: 'irc', channelInstanceId: 'net' }]);
    await server.client.call('channels.restart', { channel_type: 'irc' });
    await expect.poll(stateOf).toBe('healthy');
    expect((await server.client.call('config.history', {})).entries.map(({ metadata }) => metadata.summary)).toEqual(
      expect.arrayContaining(['disable the channel net', 'enable the channel net']),
    );
  });
});
