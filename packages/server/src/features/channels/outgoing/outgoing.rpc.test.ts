import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@gatehouse/client';
import type { ParamsInput } from '@gatehouse/contract';
import {
  type FakeAnswer,
  hasIrcServer,
  type IrcPerson,
  type IrcServer,
  joinIrc,
  startIrcServer,
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from '@gatehouse/testkit';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { AppError } from '../../../kernel/app-error.ts';
import type { Db } from '../../../kernel/db/db.ts';

type Endpoint = ParamsInput<'message.send'>['endpoint'];

describe.skipIf(!hasIrcServer('ngircd'))('messages of programs and agents', () => {
  let ircd: IrcServer;
  let server: TestServer;
  let ada: IrcPerson;
  const homes: string[] = [];
  beforeAll(async () => {
    ircd = await startIrcServer('ngircd');
  });
  afterAll(() => ircd[Symbol.asyncDispose]());
  afterEach(async () => {
    ada[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
    for (const home of homes.splice(0)) rmSync(home, { recursive: true, force: true });
  });

  const endpoint: Endpoint = { channelType: 'irc', channelInstanceId: 'net', conversationId: 'ada', conversationKind: 'direct' };

  /** Starts a server on which ada has a conversation with the agent. */
  async function start({ config, ...options }: TestServerOptions = {}, policy: 'open' | 'pairing' = 'open', nick = 'gate') {
    const net = { type: 'irc' as const, host: '127.0.0.1', port: ircd.port, tls: false, nick, dm: { policy } };
    server = await startTestServer({
      provider: { answer: () => ({ text: 'Hello.' }) },
      ...options,
      config: {
        ...config,
        agents: { default: { model: 'mock/mock-fast', tools: { profile: 'messaging' } }, ...config?.agents },
        channels: { net, ...config?.channels },
      },
    });
    await expect
      .poll(async () => (await server.client.call('channels.get', { channel_type: 'irc', channel_instance_id: 'net' })).state)
      .toBe('healthy');
    ada = await joinIrc(ircd.port, 'ada');
    ada.say(`PRIVMSG ${nick} :hello`);
    await expect.poll(() => ada.messages).toEqual([policy === 'open' ? `${nick} ada Hello.` : expect.stringContaining('code')]);
  }
  const send = (params: Partial<ParamsInput<'message.send'>> = {}, client = server.client) =>
    client.call('message.send', { endpoint, text: 'The build is green.', ...params });
  const sent = () => ada.messages.slice(1);

  test('are sent through the outbox, and answered with what became of them', async () => {
    await start();
    const result = await send({ channel_type: 'irc', channel_id: 'ada' });
    expect(result).toEqual({
      messageId: result.deliveryId,
      channelId: 'ada',
      deliveryId: expect.stringMatching(/^ob_.*-01$/),
      deliveryStatus: 'accepted',
      messageIds: [],
    });
    expect(await send({ text: 'one', buttons: [[{ label: 'Yes', command: '/yes' }]] })).toMatchObject({ deliveryStatus: 'accepted' });
    await expect.poll(sent).toEqual(['The build is green.', 'one', 'Yes: write /yes'].map((text) => `gate ada ${text}`));
    // The platform refuses a nick that is gone.
    ada.say('QUIT');
    await expect.poll(() => ada.heard.some((line) => line.startsWith('ERROR'))).toBe(true);
    expect(await send()).toMatchObject({ deliveryStatus: 'rejected', error: expect.stringContaining('No such nick') });
  });

  test('of one operation are sent once, however often it is repeated (E11), and never with other content (E12)', async () => {
    await start();
    const call = () => send({ operation_id: 'release-7' });
    const receipts = await Promise.all(Array.from({ length: 20 }, call));
    expect(new Set(receipts.map((receipt) => JSON.stringify(receipt))).size).toBe(1);
    expect(receipts[0]).toMatchObject({ deliveryStatus: 'accepted' });
    expect(await call()).toEqual(receipts[0]);
    await expect(send({ operation_id: 'release-7', text: 'The build is red.' })).rejects.toMatchObject({ code: 'conflict' });
    // Another caller's operation is another one.
    const other = await server.as(['admin']);
    expect((await send({ operation_id: 'release-7' }, other)).deliveryId).not.toBe(receipts[0]?.deliveryId);
    await send({ text: 'last' });
    await expect.poll(sent).toEqual(['The build is green.', 'The build is green.', 'last'].map((text) => `gate ada ${text}`));
  });

  const changes: readonly (readonly [string, Partial<Endpoint>])[] = [
    ['channelType', { channelType: 'email' }],
    ['channelInstanceId', { channelInstanceId: 'other' }],
    ['channelInstanceId of another channel', { channelInstanceId: 'second' }],
    ['conversationId', { conversationId: 'eve' }],
    ['conversationId in other letters', { conversationId: 'Ada' }],
    ['threadId', { threadId: 't1' }],
    ['conversationKind', { conversationKind: 'shared' }],
  ];
  test('go only to a conversation that has every field of the endpoint (E13)', async () => {
    const second = { type: 'irc' as const, host: '127.0.0.1', port: ircd.port, tls: false, nick: 'gate2' };
    await start({ config: { channels: { second } } });
    const eve = await joinIrc(ircd.port, 'eve');
    const guest = await server.as(['rpc']);
    const unknown = await send({ endpoint: { ...endpoint, conversationId: 'nobody' } }).catch((error: Error) => error.message);
    for (const [, change] of changes) {
      const wrong = { ...endpoint, ...change };
      for (const ask of [
        () => send({ endpoint: wrong }),
        () => server.client.call('message.reply', { endpoint: wrong, message_id: 'm1', text: 'x' }),
        () => server.client.call('message.react', { endpoint: wrong, message_id: 'm1', emoji: '👍' }),
        () => server.client.call('message.edit', { endpoint: wrong, message_id: 'm1', text: 'x' }),
        () => server.client.call('message.delete', { endpoint: wrong, message_id: 'm1' }),
        () => server.client.call('message.fetch', { endpoint: wrong }),
        () => server.client.call('message.attach', { endpoint: wrong, attachment_url: 'a.png' }),
      ])
        await expect(ask()).rejects.toMatchObject({ code: 'not_found', message: unknown });
    }
    // A conversation of others does not exist for a token without `admin`.
    await expect(send({}, guest)).rejects.toMatchObject({ code: 'not_found', message: unknown });
    for (const wrong of [{ channel_type: 'email' }, { channel_id: 'eve' }])
      await expect(send(wrong)).rejects.toMatchObject({ code: 'precondition_failed' });
    for (const missing of ['channelType', 'channelInstanceId', 'conversationId', 'conversationKind'] as const) {
      const { [missing]: _missing, ...rest } = endpoint;
      await expect(send({ endpoint: rest as Endpoint })).rejects.toMatchObject({ code: 'invalid_params' });
    }
    expect((await server.client.call('delivery.list', { channel_instance_id: 'net' })).total).toBe(1);
    expect(eve.messages).toEqual([]);
    eve[Symbol.dispose]();
  });

  test('what the platform does not offer is refused with action, channel and feature', async () => {
    await start();
    const message_id = 'm1';
    const refusals = [
      ['message.react', 'reactions', () => server.client.call('message.react', { endpoint, message_id, emoji: '👍' })],
      ['message.edit', 'editMessages', () => server.client.call('message.edit', { endpoint, message_id, text: 'x' })],
      ['message.delete', 'deleteMessages', () => server.client.call('message.delete', { endpoint, message_id })],
      ['message.fetch', 'fetchHistory', () => server.client.call('message.fetch', { endpoint })],
      ['message.attach', 'attachments', () => server.client.call('message.attach', { endpoint, attachment_url: 'https://example.com/a.png' })],
      ['message.send', 'cards', () => send({ cards: [{}] })],
    ] as const;
    for (const [method, feature, ask] of refusals)
      await expect(ask()).rejects.toMatchObject({
        code: 'precondition_failed',
        message: `${method}: the channel net (irc) does not offer ${feature}`,
      });
    await expect(send({ thread_reply: true })).rejects.toMatchObject({ code: 'precondition_failed' });
    await server.client.call('channels.disable', { channel_type: 'irc' });
    await expect(send()).rejects.toMatchObject({ code: 'unavailable' });
    expect((await server.client.call('delivery.list', { channel_instance_id: 'net' })).total).toBe(1);
  });

  test('answer messages of both sides by our ids', async () => {
    await start();
    const { deliveryId } = await send();
    const [incoming] = (await server.client.call('channels.messages', {})).messages;
    // ngIRCd has no ids: a reply is a message.
    for (const message_id of [incoming?.messageId ?? '', deliveryId])
      expect(await server.client.call('message.reply', { endpoint, message_id, text: 'Yes.' })).toMatchObject({ deliveryStatus: 'accepted' });
    await expect(server.client.call('message.reply', { endpoint, message_id: 'cm_other', text: 'No.' })).rejects.toMatchObject({ code: 'not_found' });
    await expect.poll(sent).toEqual(['The build is green.', 'Yes.', 'Yes.'].map((text) => `gate ada ${text}`));
  });

  test('of a token go to the conversations of its person', async () => {
    const tokens = ['ada', 'eve'].map((person) => ({
      id: person,
      secret: `a-secret-of-${person}-with-32-characters`,
      scopes: ['rpc' as const],
      person,
    }));
    await start({ config: { gateway: { tokens } } }, 'pairing');
    const code = /[A-Z2-9]{8}$/.exec(ada.messages[0] ?? '')?.[0] ?? '';
    await server.client.call('channels.pair', { code, person: 'ada' });
    const [own, foreign] = tokens.map(({ secret: token }) => createClient({ url: server.url, token }));
    expect(await send({}, own)).toMatchObject({ deliveryStatus: 'accepted' });
    await expect(send({}, foreign)).rejects.toMatchObject({ code: 'not_found' });
  });

  test('may have been sent when the process dies meanwhile: the operation is parked (E11)', async () => {
    const homeDir = mkdtempSync(join(tmpdir(), 'gatehouse-outgoing-'));
    homes.push(homeDir);
    let finished = 0;
    const died = Promise.withResolvers<void>();
    const dead = () => Promise.reject(new AppError('unavailable', 'The process is dead'));
    // The first send is the answer to ada.
    const isDead = () => finished > 1;
    const wrap = (db: Db): Db => ({
      ...db,
      read: (operation, input) => (isDead() ? dead() : db.read(operation, input)),
      telemetry: (operation, input) => (isDead() ? dead() : db.telemetry(operation, input)),
      async write(operation, input) {
        if (operation.name === 'delivery.finish') finished += 1;
        if (!isDead()) return db.write(operation, input);
        died.resolve();
        return dead();
      },
      [Symbol.asyncDispose]: () => db[Symbol.asyncDispose](),
    });
    await start({ homeDir, db: wrap });
    void send({ operation_id: 'once' }).catch(() => {});
    await died.promise;
    await Promise.allSettled([server[Symbol.asyncDispose]()]);
    ada[Symbol.dispose]();
    // The server may not have missed the first one yet.
    await start({ homeDir }, 'open', 'gate3');
    await expect.poll(async () => (await server.client.call('delivery.list', { state: 'unknown' })).total).toBe(1);
    await expect(send({ operation_id: 'once' })).rejects.toMatchObject({
      code: 'precondition_failed',
      message: expect.stringContaining('may have been sent'),
    });
    expect(await send({ text: 'next' })).toMatchObject({ deliveryStatus: 'accepted' });
    await expect.poll(sent).toEqual(['gate3 ada next']);
    const { messages } = await server.client.call('inbox.list', {});
    expect(messages.filter(({ source, level }) => source === 'channel' && level === 'alert')).toHaveLength(1);
  });

  test('actions of the platform act on the channel of the endpoint, and are recorded', async () => {
    const lab = { type: 'irc' as const, host: '127.0.0.1', port: ircd.port, tls: false, nick: 'lab', channels: ['#lab'] };
    await start({ config: { channels: { lab } } });
    await expect
      .poll(async () => (await server.client.call('channels.get', { channel_type: 'irc', channel_instance_id: 'lab' })).state)
      .toBe('healthy');
    const eve = await joinIrc(ircd.port, 'eve', { channels: ['#lab'] });
    await expect.poll(() => eve.heard.some((line) => / 353 .*\blab\b/.test(line) || /^:lab!.* JOIN/.test(line))).toBe(true);
    eve.say('PRIVMSG #lab :lab: hello');
    await expect.poll(() => eve.messages).toEqual(['lab #lab Hello.']);
    const room = { ...endpoint, channelInstanceId: 'lab', conversationId: '#lab', conversationKind: 'shared' as const };
    const { names } = await server.client.call('irc.action', { action: 'names', endpoint: room });
    expect(names).toEqual(expect.arrayContaining(['eve', expect.stringMatching(/^@?lab$/)]));
    expect(await server.client.call('irc.action', { action: 'topic', endpoint: room, topic: 'Release' })).toEqual({
      topicSet: true,
      channel: '#lab',
    });
    await expect.poll(() => eve.heard.some((line) => /TOPIC #lab :Release/.test(line))).toBe(true);
    for (const ask of [
      () => server.client.call('irc.action', { action: 'ban', endpoint: room }),
      () => server.client.call('irc.action', { action: 'names', endpoint: room, topic: 'x' }),
    ])
      await expect(ask()).rejects.toMatchObject({ code: 'invalid_params' });
    await expect(server.client.call('irc.action', { action: 'names', endpoint: { ...room, conversationId: '#other' } })).rejects.toMatchObject({
      code: 'not_found',
    });
    const guest = await server.as(['rpc']);
    await expect(guest.call('irc.action', { action: 'names', endpoint: room })).rejects.toMatchObject({ code: 'insufficient_scope' });
    const { rows } = await server.client.call('obs.audit.query', { actionType: 'irc.action' });
    expect(rows).toMatchObject([{ classification: 'mutate', target: 'lab' }]);
    eve[Symbol.dispose]();
  });

  describe('the tool `message`', () => {
    const rules = [{ tools: ['message', 'irc_action'], action: 'auto' as const, tainted: true }];
    /** Has the agent make these calls of a tool in the turn of the next message. */
    const scripted = (...calls: readonly object[]) => {
      const left = calls.map((args): FakeAnswer => ({
        toolCalls: [{ id: `call_${crypto.randomUUID()}`, name: 'message', arguments: JSON.stringify(args) }],
      }));
      server.provider.setAnswer(() => left.shift() ?? { text: 'Done.' });
      ada.say('PRIVMSG gate :go');
    };
    const results = () => {
      const body = server.provider.requests.at(-1)?.body as { messages: { role: string; content: string }[] };
      return body.messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
    };
    const trusting = { model: 'mock/mock-fast', tools: { profile: 'messaging' as const }, originTools: { webhook: ['message'] } };

    test('writes where its call comes from, and to nobody else', async () => {
      await start({ config: { approvals: { rules }, agents: { default: trusting } } });
      const eve = await joinIrc(ircd.port, 'eve');
      eve.say('PRIVMSG gate :hello');
      await expect.poll(() => eve.messages).toEqual(['gate eve Hello.']);
      scripted(
        { action: 'send', text: 'First.' },
        { action: 'reply', text: 'Second.' },
        { action: 'send', text: 'Psst.', to: { ...endpoint, conversationId: 'eve' } },
        { action: 'send', text: 'Psst.', to: { ...endpoint, conversationId: 'nobody' } },
        { action: 'fetch' },
        { action: 'send' },
      );
      await expect.poll(() => ada.messages.at(-1)).toBe('gate ada Done.');
      expect(sent()).toEqual(['First.', 'Second.', 'Done.'].map((text) => `gate ada ${text}`));
      expect(eve.messages).toHaveLength(1);
      const [first, second, foreign, missing, fetched, empty] = results();
      expect([first, second]).toEqual([expect.stringMatching(/Sent as ob_/), expect.stringMatching(/Sent as ob_/)]);
      expect(foreign).toContain('Conversation not found');
      expect(missing).toBe(foreign);
      expect(fetched).toContain('does not offer fetchHistory');
      expect(empty).toContain('text: missing');
      eve[Symbol.dispose]();
    });

    test('needs an approval in a turn with text from outside, and has a quota', async () => {
      await start({ config: { autonomy: { guards: { message: { perHour: 2 } } }, agents: { default: trusting } } });
      scripted({ action: 'send', text: 'Unasked.' });
      const pending = async () => (await server.client.call('admin.approval.pending', {})).requests;
      await expect.poll(async () => (await pending()).length).toBe(1);
      const [request] = await pending();
      expect(request).toMatchObject({ toolName: 'message', params: { action: 'send', text: 'Unasked.' } });
      await server.client.call('admin.approval.resolve', { requestId: request?.requestId ?? '', approved: false });
      await expect.poll(() => ada.messages.at(-1)).toBe('gate ada Done.');
      expect(sent()).not.toContain('gate ada Unasked.');
      await server.client.call('config.set', { path: 'approvals.rules', value: rules, confirm: true });
      scripted({ action: 'send', text: '1' }, { action: 'send', text: '2' }, { action: 'send', text: '3' });
      await expect.poll(() => sent().filter((line) => line.endsWith('Done.')).length).toBe(2);
      expect(sent().slice(-3)).toEqual(['gate ada 1', 'gate ada 2', 'gate ada Done.']);
      expect(results().at(-1)).toContain('Too many calls of orch:message');
    });

    test('is offered only while a channel is enabled', async () => {
      await start();
      const tools = async () => (await server.client.call('tools.list', {})).tools.map(({ name }) => name);
      expect(await tools()).toEqual(expect.arrayContaining(['message', 'irc_action']));
      await server.client.call('channels.disable', { channel_type: 'irc' });
      expect(await tools()).not.toContain('message');
    });
  });
});
