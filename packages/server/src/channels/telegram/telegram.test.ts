import { freePort } from '@gatehouse/testkit/free-port';
import { Bot, InputFile } from 'grammy';
import { afterEach, describe, expect, test } from 'vitest';
import { ada, addGroup, closeAll, connect, eve, group, open, startTelegram } from './testing.ts';

afterEach(closeAll);

describe('connecting', () => {
  test('keeps what waits, removes a webhook, and names the bot', async () => {
    const fake = await startTelegram();
    fake.telegram.setWebhook();
    fake.telegram.chats.say(ada, 'written while nobody listened');
    const wire = open(fake);
    const ended = wire.run();
    expect(await wire.connected).toBe('@gate_test_bot');
    await expect.poll(() => wire.received).toMatchObject([{ text: 'written while nobody listened' }]);
    expect(fake.telegram.callsOf('deleteWebhook').map(({ params }) => params)).toEqual([{ drop_pending_updates: false }]);
    expect(fake.telegram.callsOf('getUpdates')[0]?.params).toEqual({ timeout: 0, allowed_updates: ['message', 'edited_message', 'callback_query'] });
    expect(await wire.stop()).toEqual({ ended: 'stopped', text: 'Stopped' });
    expect(await ended).toEqual({ ended: 'stopped', text: 'Stopped' });
  });

  test.each([
    ['another one', '4242:wrong'],
    ['something else', 'not/../a-token'],
  ])('ends as unauthorized with a token that is %s, which no text contains', async (_name, token) => {
    const wire = open(await startTelegram(), { token });
    const ended = await wire.run();
    expect(ended).toMatchObject({ ended: 'unauthorized', text: expect.stringContaining('@BotFather') });
    expect(JSON.stringify([ended, wire.logged])).not.toContain(token);
  });

  test('ends as unauthorized when the token is revoked later', async () => {
    const fake = await startTelegram();
    fake.telegram.fail('getUpdates', { code: 401, description: 'Unauthorized' });
    expect(await open(fake).run()).toMatchObject({ ended: 'unauthorized' });
  });

  test('ends as transient when nothing listens, without the address', async () => {
    const wire = open(await startTelegram(), { apiUrl: `http://127.0.0.1:${await freePort()}/` });
    const ended = await wire.run();
    expect(ended).toEqual({ ended: 'transient', text: 'The request failed: ECONNREFUSED' });
  });

  test.each([
    ['a broken server', { code: 502, description: 'Bad Gateway' }, 'Bad Gateway'],
    ['a proxy', { status: 503, body: '<html>busy</html>' }, 'HTTP 503'],
    ['a page in between', { status: 200, body: '<html>log in</html>' }, 'The answer (HTTP 200) is not one of the Bot API'],
    ['a cut', 'cutBefore' as const, expect.any(String)],
  ])('ends as transient after %s', async (_name, fault, text) => {
    const fake = await startTelegram();
    fake.telegram.fail('getUpdates', fault);
    const wire = open(fake);
    expect(await wire.run()).toEqual({ ended: 'transient', text });
  });
});

describe('polling', () => {
  test('confirms only what is stored, each batch once, also over a restart', async () => {
    const fake = await startTelegram();
    const storing = Promise.withResolvers<void>();
    const wire = open(fake, { take: () => storing.promise });
    void wire.run();
    await wire.connected;
    await expect.poll(() => fake.telegram.isPolled()).toBe(true);
    fake.telegram.chats.say(ada, 'one');
    await expect.poll(() => fake.telegram.isPolled()).toBe(false);
    fake.telegram.chats.say(ada, 'two');
    expect(fake.telegram.pending()).toHaveLength(2);
    storing.resolve();
    await expect.poll(() => wire.received.map(({ text }) => text)).toEqual(['one', 'two']);
    await expect.poll(() => fake.telegram.pending()).toEqual([]);
    expect(wire.cursors).toEqual(['4242:501', '4242:502']);
    await wire.stop();
    fake.telegram.chats.say(ada, 'three');
    const next = open(fake, { cursor: '4242:502' });
    void next.run();
    await expect.poll(() => next.received.map(({ text, eventKey }) => [text, eventKey])).toEqual([['three', '4242:503']]);
    await expect
      .poll(() => fake.telegram.callsOf('getUpdates').map(({ params }) => params['offset']))
      .toEqual([undefined, undefined, 502, 503, 503, 504]);
  });

  test('receives again what could not be stored, and says so', async () => {
    let refusals = 2;
    const { clock, telegram, received, logged } = await connect({
      take: async () => {
        if ((refusals -= 1) >= 0) throw new Error('disk full');
      },
    });
    telegram.chats.say(ada, 'keep me');
    for (const n of [1, 2]) {
      await expect.poll(() => logged.filter((line) => line.includes('received again')).length).toBe(n);
      clock.advance(1_000);
    }
    await expect.poll(() => received.map(({ text }) => text)).toEqual(['keep me']);
    await expect.poll(() => telegram.pending()).toEqual([]);
  });

  test('an update that cannot be read is skipped with a line in the log, an unknown one silently', async () => {
    const { telegram, received, logged, cursors } = await connect();
    telegram.push({ update_id: 600, message: { message_id: 'x' } });
    telegram.push({ update_id: 601, chat_boost: {} });
    telegram.push({ update_id: 602, channel_post: { message_id: 1, date: 1, chat: { id: -5, type: 'channel' }, text: 'for all' } });
    await expect.poll(() => cursors.at(-1)).toBe('4242:602');
    telegram.chats.say(ada, 'still there?');
    await expect.poll(() => received.map(({ text }) => text)).toEqual(['still there?']);
    expect(logged).toEqual(['Skipped an update of Telegram that cannot be read {"updateId":600}']);
  });

  test('ends when no update has a number', async () => {
    const fake = await startTelegram();
    fake.telegram.fail('getUpdates', { status: 200, body: '{"ok":true,"result":[{"message":{}}]}' });
    expect(await open(fake).run()).toEqual({ ended: 'transient', text: 'Telegram sent updates that cannot be read' });
  });

  test('a poll without an answer ends 15 s after its time', async () => {
    const fake = await startTelegram();
    const wire = open(fake);
    const ended = wire.run();
    await wire.connected;
    await expect.poll(() => fake.telegram.isPolled()).toBe(true);
    expect(fake.telegram.callsOf('getUpdates').at(-1)?.params['timeout']).toBe(50);
    const proofs = wire.proofs();
    fake.clock.advance(64_999);
    expect(fake.telegram.isPolled()).toBe(true);
    fake.clock.advance(1);
    expect(await ended).toEqual({ ended: 'transient', text: 'No complete answer within 65 s' });
    expect(wire.proofs()).toBe(proofs);
  });

  test('a poll that is cut off while nothing happens is made again, one that is cut off at once is not', async () => {
    const fake = await startTelegram();
    const wire = open(fake);
    const ended = wire.run();
    await wire.connected;
    const polls = () => fake.telegram.callsOf('getUpdates').length;
    for (const n of [2, 3]) {
      await expect.poll(() => fake.telegram.isPolled()).toBe(true);
      expect(polls()).toBe(n);
      fake.clock.advance(10_000);
      fake.telegram.cut();
      await expect.poll(polls).toBe(n + 1);
    }
    await expect.poll(() => fake.telegram.isPolled()).toBe(true);
    fake.clock.advance(9_999);
    fake.telegram.cut();
    expect(await ended).toMatchObject({ ended: 'transient' });
  });

  test('waits as long as Telegram says, and every answer is a sign of life', async () => {
    const fake = await startTelegram();
    fake.telegram.fail('getMe', { code: 429, description: '', retryAfter: 7 });
    fake.telegram.fail('getUpdates', { code: 429, description: '', retryAfter: 30 });
    const wire = open(fake);
    void wire.run();
    await expect.poll(() => fake.telegram.callsOf('getMe')[0]?.status).toBe(429);
    await expect.poll(() => wire.proofs()).toBe(1);
    fake.clock.advance(6_999);
    expect(fake.telegram.callsOf('getMe')).toHaveLength(1);
    fake.clock.advance(1);
    await expect.poll(() => wire.proofs()).toBe(4);
    fake.clock.advance(29_999);
    expect(fake.telegram.callsOf('getUpdates')).toHaveLength(1);
    fake.clock.advance(1);
    expect(await wire.connected).toBe('@gate_test_bot');
    expect(wire.proofs()).toBe(5);
  });

  test('messages that polls do not return are noticed within ten minutes, once until some come', async () => {
    const fake = await startTelegram();
    const { clock, telegram } = fake;
    const wire = open(fake);
    let ended = wire.run();
    await wire.connected;
    /** Polls that end without an answer until so much time has passed, or the connection has ended. */
    const pollFor = async (ms: number): Promise<boolean> => {
      let isOver = false;
      void ended.then(() => (isOver = true));
      for (const endsAt = clock.monotonic() + ms; clock.monotonic() < endsAt && !isOver; clock.advance(50_000)) {
        while (!isOver && !telegram.isPolled()) await new Promise((resolve) => setImmediate(resolve));
        telegram.endPoll();
      }
      await expect.poll(() => isOver || telegram.isPolled()).toBe(true);
      return isOver;
    };
    expect(await pollFor(2 * 60 * 60_000)).toBe(false);
    expect(telegram.callsOf('getWebhookInfo').length).toBeLessThanOrEqual(2 * 15);
    telegram.withholdsUpdates = true;
    telegram.chats.say(ada, 'withheld');
    const since = clock.monotonic();
    expect(await pollFor(20 * 60_000)).toBe(true);
    expect(clock.monotonic() - since).toBeLessThanOrEqual(10 * 60_000);
    expect(await ended).toEqual({ ended: 'transient', text: 'Telegram keeps messages that it does not return to a poll' });
    // A new connection does not help: it is not made again and again.
    ended = wire.run();
    expect(await pollFor(60 * 60_000)).toBe(false);
    expect(wire.logged.filter((line) => line.includes('does not return')).length).toBeGreaterThan(1);
    telegram.withholdsUpdates = false;
    telegram.endPoll();
    await expect.poll(() => wire.received.map(({ text }) => text)).toEqual(['withheld']);
    telegram.withholdsUpdates = true;
    telegram.chats.say(ada, 'withheld again');
    expect(await pollFor(20 * 60_000)).toBe(true);
  });

  test('two that poll are a conflict, which names its cause', async () => {
    const fake = await startTelegram();
    const wire = open(fake);
    const ended = wire.run();
    await wire.connected;
    await expect.poll(() => fake.telegram.isPolled()).toBe(true);
    const other = open(fake);
    void other.run();
    await other.connected;
    expect(await ended).toMatchObject({ ended: 'conflict', text: expect.stringContaining('another program receives the messages of this bot') });
    fake.telegram.setWebhook();
  });

  test('a webhook that another program sets is a conflict', async () => {
    const fake = await startTelegram();
    const wire = open(fake);
    const ended = wire.run();
    await wire.connected;
    await expect.poll(() => fake.telegram.isPolled()).toBe(true);
    fake.telegram.setWebhook();
    expect(await ended).toMatchObject({ ended: 'conflict', text: expect.stringContaining('another program set a webhook') });
  });
});

describe('messages', () => {
  test('a direct message has its sender, time and ids', async () => {
    const { telegram, received, clock } = await connect();
    const id = telegram.chats.say(ada, 'hello 👋');
    await expect
      .poll(() => received)
      .toEqual([
        {
          eventKey: '4242:501',
          messageId: String(id),
          conversationId: '1001',
          conversationKind: 'direct',
          senderId: '1001',
          senderName: 'Ada Lovelace',
          isBot: false,
          text: 'hello 👋',
          mentionsUs: false,
          sentAtMs: clock.now(),
        },
      ]);
  });

  test('in a group it knows when it is named, and removes its name', async () => {
    const { telegram, received } = await connect({ seesAll: true });
    addGroup(telegram);
    const { chats, bot } = telegram;
    const own = { entities: [{ type: 'text_mention', offset: 0, length: 2, user: { ...bot } }] };
    const cases: readonly (readonly [string, string, boolean, object?])[] = [
      ['nobody in particular', 'nobody in particular', false],
      ['@Gate_Test_Bot: what is new?', 'what is new?', true],
      ['👋🏽 @gate_test_bot hi', '👋🏽 @gate_test_bot hi', true],
      ['@gate_test_bot2 hi', '@gate_test_bot2 hi', false],
      ['/new@gate_test_bot', '/new', true],
      ['/ask@gate_test_bot is it so?', '/ask is it so?', true],
      ['/new@another_bot', '/new@another_bot', false],
      ['/new', '/new', false],
      ['we like gate_test_bot', 'we like gate_test_bot', false],
      ['Gä hört zu', 'hört zu', true, own],
    ];
    for (const [said, , , more] of cases) chats.say(eve, said, { chat: group, ...more });
    await expect.poll(() => received.length).toBe(cases.length);
    expect(received.map(({ text, mentionsUs }) => [text, mentionsUs])).toEqual(cases.map(([, text, mentionsUs]) => [text, mentionsUs]));
    expect(received[0]).toMatchObject({ conversationId: String(group), conversationKind: 'shared', senderId: '1002' });
  });

  test('in privacy mode it gets what is for it, and an answer to it names it', async () => {
    const { telegram, received, send } = await connect();
    addGroup(telegram);
    await send({ to: group, text: 'A question?' });
    const [question] = telegram.chats.said(group);
    telegram.chats.say(eve, 'unheard', { chat: group });
    const other = telegram.chats.say(ada, 'unheard, too', { chat: group });
    telegram.chats.say(eve, 'unheard answer', { chat: group, replyTo: other });
    telegram.chats.say(eve, 'an answer', { chat: group, replyTo: question?.messageId ?? 0 });
    await expect.poll(() => received.map(({ text, mentionsUs }) => [text, mentionsUs])).toEqual([['an answer', true]]);
  });

  test('topics are threads, chains of answers are not', async () => {
    const { telegram, received } = await connect({ seesAll: true });
    addGroup(telegram, { isForum: true });
    const [ours, theirs] = [telegram.chats.addTopic(group, 'Ours'), telegram.chats.addTopic(group, 'Theirs', ada)];
    telegram.chats.say(ada, 'in ours', { chat: group, thread: ours });
    telegram.chats.say(ada, 'in theirs', { chat: group, thread: theirs });
    telegram.chats.say(ada, 'in the general one', { chat: group });
    telegram.chats.say(ada, 'in a chain', { chat: group, fields: { message_thread_id: 77 } });
    await expect.poll(() => received.length).toBe(4);
    expect(received.map(({ text, threadId, mentionsUs }) => [text, threadId, mentionsUs])).toEqual([
      ['in ours', String(ours), false],
      ['in theirs', String(theirs), false],
      ['in the general one', undefined, false],
      ['in a chain', undefined, false],
    ]);
  });

  test('who writes as a group or channel is that, other bots are bots, and notes are nobody', async () => {
    const { telegram, received, cursors } = await connect({ seesAll: true });
    addGroup(telegram);
    telegram.chats.say(ada, 'anonymous', { chat: group, as: { id: group, title: 'Lab', type: 'supergroup' }, fields: { author_signature: 'admin' } });
    telegram.chats.say(ada, 'as a channel', { chat: group, as: { id: -100_777, title: 'News', type: 'channel' } });
    telegram.chats.say({ id: 9, first_name: 'Robot', is_bot: true }, 'beep', { chat: group });
    telegram.chats.say(ada, '', { chat: group, fields: { new_chat_members: [{ id: 1, first_name: 'X', is_bot: false }] } });
    telegram.push({ message: { message_id: 1, date: 1, chat: { id: -5, type: 'channel' }, from: { id: 3, first_name: 'x' }, text: 'for all' } });
    await expect.poll(() => cursors.at(-1)).toBe('4242:505');
    expect(received.map(({ senderId, senderName, isBot }) => [senderId, senderName, isBot])).toEqual([
      [String(group), 'Lab (admin)', false],
      ['-100777', 'News', false],
      ['9', 'Robot', true],
    ]);
  });

  test('files come with captions, names, types and sizes', async () => {
    const { telegram, received } = await connect();
    const bytes = new Uint8Array(7);
    const { chats } = telegram;
    chats.say(ada, 'look', { file: { kind: 'photo', bytes } });
    chats.say(ada, '', { file: { kind: 'document', name: 'report.pdf', type: 'application/pdf', bytes } });
    chats.say(ada, '', { file: { kind: 'voice', type: 'audio/ogg', bytes } });
    chats.say(ada, '', { file: { kind: 'audio', name: 'song.mp3', bytes } });
    chats.say(ada, '', { file: { kind: 'video', bytes } });
    chats.say(ada, '', { file: { kind: 'video_note', bytes } });
    chats.say(ada, '', { file: { kind: 'animation', bytes } });
    chats.say(ada, '', { file: { kind: 'sticker', bytes } });
    chats.say(ada, '', { fields: { location: { latitude: 52.5, longitude: 13.4 } } });
    chats.say(ada, '', { fields: { contact: { phone_number: '+491', first_name: 'Eve' } } });
    await expect.poll(() => received.length).toBe(10);
    const ref = expect.stringMatching(/^F-[a-z_]+\d+$/);
    expect(received.map(({ text, attachments = [] }) => [text, ...attachments])).toEqual([
      ['look', { ref, name: 'photo.jpg', mediaType: 'image/jpeg', bytes: 7 }],
      ['', { ref, name: 'report.pdf', mediaType: 'application/pdf', bytes: 7 }],
      ['', { ref, name: 'voice.ogg', mediaType: 'audio/ogg', bytes: 7, isVoice: true }],
      ['', { ref, name: 'song.mp3', mediaType: 'audio/mpeg', bytes: 7 }],
      ['', { ref, name: 'video.mp4', mediaType: 'video/mp4', bytes: 7 }],
      ['', { ref, name: 'video-note.mp4', mediaType: 'video/mp4', bytes: 7 }],
      ['', { ref, name: 'animation.mp4', mediaType: 'video/mp4', bytes: 7 }],
      ['👋', { ref, name: 'sticker.webp', mediaType: 'image/webp', bytes: 7 }],
      ['Location: 52.5, 13.4'],
      ['Contact: Eve, +491'],
    ]);
  });

  test('an edit names the message that it changes', async () => {
    const { telegram, received } = await connect();
    const id = telegram.chats.say(ada, 'helo');
    telegram.chats.change(ada.id, id, 'hello');
    await expect.poll(() => received.length).toBe(2);
    expect(received.map(({ text, messageId, edits, eventKey }) => [text, messageId, edits, eventKey])).toEqual([
      ['helo', String(id), undefined, '4242:501'],
      ['hello', String(id), String(id), '4242:502'],
    ]);
  });

  test('a press of anybody is a message of that person, and confirmed after it is stored', async () => {
    const storing = Promise.withResolvers<void>();
    const { telegram, received, send } = await connect({ seesAll: true, take: () => storing.promise });
    addGroup(telegram);
    await send({
      to: group,
      text: 'May I?',
      buttons: [
        { label: 'Yes', command: '/approve 7' },
        { label: 'No', command: '/deny 7' },
      ],
    });
    const [asked] = telegram.chats.said(group);
    expect(asked?.buttons).toEqual([['Yes', 'No']]);
    await expect.poll(() => telegram.isPolled()).toBe(true);
    const press = telegram.chats.press(eve, group, asked?.messageId ?? 0, 'No');
    await expect.poll(() => telegram.isPolled()).toBe(false);
    expect(telegram.callsOf('answerCallbackQuery')).toEqual([]);
    storing.resolve();
    await expect.poll(() => telegram.chats.isAnswered(press)).toBe(true);
    expect(received).toMatchObject([
      { text: '/deny 7', senderId: '1002', mentionsUs: true, conversationId: String(group), messageId: String(asked?.messageId), isBot: false },
    ]);
  });
});

test('a bot of the library itself is served by the fake: it receives, sends, and is refused', async () => {
  const { telegram } = await startTelegram();
  const bot = new Bot(telegram.token, { client: { apiRoot: telegram.url } });
  const done = Promise.withResolvers<void>();
  bot.on('message:text', async (context) => {
    await context.reply(`<b>${context.msg.text}</b>`, { parse_mode: 'HTML' });
    await context.replyWithDocument(new InputFile(new Uint8Array([1, 2]), 'two.bin'));
    done.resolve();
  });
  const errors: unknown[] = [];
  bot.catch(({ error }) => {
    errors.push(error);
    done.reject(error);
  });
  const started = bot.start({ allowed_updates: ['message'] });
  telegram.chats.say(ada, 'hi');
  await done.promise;
  expect(telegram.chats.said(ada.id)[0]).toMatchObject({ text: 'hi', entities: [{ type: 'bold', offset: 0, length: 2 }] });
  expect(telegram.chats.said(ada.id)[1]).toMatchObject({ file: { kind: 'document', name: 'two.bin', bytes: new Uint8Array([1, 2]) } });
  telegram.chats.block(ada.id);
  await expect(bot.api.sendMessage(ada.id, 'x')).rejects.toMatchObject({ error_code: 403, description: 'Forbidden: bot was blocked by the user' });
  telegram.limit(0, 9);
  await expect(bot.api.sendMessage(ada.id, 'x')).rejects.toMatchObject({ error_code: 429, parameters: { retry_after: 9 } });
  await bot.stop();
  await started;
  expect(errors).toEqual([]);
  expect(telegram.pending()).toEqual([]);
});
