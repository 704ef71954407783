import { freePort } from '@gatehouse/testkit/free-port';
import * as fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import type { OutgoingAttachment } from '../port.ts';
import { ada, addGroup, closeAll, connect, eve, type Fake, group, never, open, startTelegram, type Wire } from './testing.ts';

afterEach(closeAll);

/** A wire that sends without being connected, to people who know the bot. */
async function ready(more: Parameters<typeof addGroup>[1] = {}): Promise<Fake & Wire> {
  const fake = await startTelegram();
  addGroup(fake.telegram, more);
  fake.telegram.chats.say(ada, 'hello');
  return { ...fake, ...open(fake) };
}

const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 1, 2, 3]);
const fileOf = (kind: OutgoingAttachment['kind'], mediaType: string, bytes: Uint8Array = png, name = 'a file.bin'): OutgoingAttachment => ({
  kind,
  name,
  mediaType,
  bytes: bytes.byteLength,
  read: async () => bytes,
});

describe('a message', () => {
  test('arrives with markup, without previews, as the answer to another one, with buttons', async () => {
    const { telegram, send } = await ready();
    const asked = telegram.chats.say(ada, 'What is it?');
    const result = await send({
      text: 'It is this & that: https://example.org',
      markup: 'It is <b>this</b> &amp; <i>that</i>: https://example.org',
      replyTo: String(asked),
      buttons: [
        { label: 'Yes', command: '/approve 1' },
        { label: 'No', command: '/deny 1' },
      ],
    });
    const [said] = telegram.chats.said(ada.id);
    expect(result).toEqual({ is: 'sent', platformId: String(said?.messageId) });
    expect(said).toMatchObject({
      text: 'It is this & that: https://example.org',
      entities: [
        { type: 'bold', offset: 6, length: 4 },
        { type: 'italic', offset: 13, length: 4 },
      ],
      replyTo: asked,
      buttons: [['Yes', 'No']],
      hasPreview: false,
    });
  });

  test('without markup is text, whatever it contains', async () => {
    const { telegram, send } = await ready();
    await send({ text: '<b>1 < 2 &amp; *3*' });
    expect(telegram.chats.said(ada.id)).toMatchObject([{ text: '<b>1 < 2 &amp; *3*', entities: [] }]);
  });

  test('goes to its topic, and to a message that is gone no more', async () => {
    const { telegram, send } = await ready({ isForum: true });
    const topic = telegram.chats.addTopic(group, 'Plans', ada);
    expect(await send({ to: group, threadId: String(topic), text: 'here', replyTo: '999' })).toMatchObject({ is: 'sent' });
    expect(telegram.chats.said(group)).toMatchObject([{ text: 'here', threadId: topic, replyTo: undefined }]);
    expect(await send({ to: group, threadId: '12345', text: 'nowhere' })).toMatchObject({ is: 'rejected', kind: 'no_such_thread' });
  });

  test('whose markup is refused goes out once, as text', async () => {
    const { telegram, send } = await ready();
    expect(await send({ text: 'bold & broken', markup: '<b>bold & broken' })).toMatchObject({ is: 'sent' });
    expect(await send({ text: 'heading', markup: '<h1>heading</h1>', attachment: fileOf('file', 'text/plain') })).toMatchObject({ is: 'sent' });
    expect(telegram.chats.said(ada.id).map(({ text }) => text)).toEqual(['bold & broken', 'heading']);
    expect(telegram.callsOf('sendMessage').map(({ status }) => status)).toEqual([400, 200]);
  });

  test('to a group that became a supergroup goes there, once', async () => {
    const { telegram, send } = await ready();
    telegram.chats.addGroup({ id: -77, title: 'Old', members: [ada] });
    telegram.chats.migrate(-77, -100_077_000_000);
    expect(await send({ to: -77, text: 'moved', markup: '<i>moved' })).toMatchObject({ is: 'sent' });
    expect(telegram.chats.said(-100_077_000_000)).toMatchObject([{ text: 'moved' }]);
    telegram.chats.migrate(-100_077_000_000, -100_078_000_000);
    expect(await send({ to: -77, text: 'again' })).toMatchObject({ is: 'rejected' });
  });

  test('of any text that fits arrives unchanged but for the space around it', async () => {
    const { telegram, send } = await ready();
    const texts = fc.sample(fc.string({ minLength: 1, maxLength: 300, unit: 'grapheme' }), 40).filter((text) => text.trim() !== '');
    for (const text of [...texts, '👍'.repeat(2_048)]) {
      expect(await send({ text })).toMatchObject({ is: 'sent' });
      expect(telegram.chats.said(ada.id).at(-1)?.text).toBe(text.trim());
    }
  });
});

describe('what cannot be sent as it is is refused before it is', () => {
  test.each([
    ['a chat of another platform', { conversationId: '#lab', text: 'x' }, 'target'],
    ['a chat in a path', { conversationId: '1/../2', text: 'x' }, 'target'],
    ['a thread of another platform', { conversationId: '1001', threadId: 'T1', text: 'x' }, 'target'],
    ['an answer to another platform', { conversationId: '1001', replyTo: '1.5', text: 'x' }, 'target'],
    ['no text', { conversationId: '1001', text: ' \n' }, 'no_text'],
    ['a text that is too long', { conversationId: '1001', text: 'x'.repeat(4_097) }, 'too_long'],
    ['a caption that is too long', { conversationId: '1001', text: 'x'.repeat(1_025), attachment: fileOf('file', 'text/plain') }, 'too_long'],
    [
      'a file that is too large',
      { conversationId: '1001', text: '', attachment: { ...fileOf('file', 'text/plain'), bytes: 50_000_001 } },
      'too_large',
    ],
    ['a command that is too long', { conversationId: '1001', text: 'x', buttons: [{ label: 'x', command: 'é'.repeat(33) }] }, 'button'],
  ])('%s', async (_name, part, kind) => {
    const { telegram, adapter } = await ready();
    expect(await adapter.send(part, { key: 'k', signal: never })).toMatchObject({ is: 'rejected', kind });
    expect(telegram.calls).toEqual([]);
  });

  test('and what is given up', async () => {
    const { telegram, send } = await ready();
    expect(await send({ text: 'x' }, AbortSignal.abort())).toEqual({ is: 'notSent', text: 'The channel stopped' });
    const attachment = { ...fileOf('file', 'text/plain'), read: () => Promise.reject(new Error('gone')) };
    expect(await send({ text: 'x', attachment })).toEqual({ is: 'notSent', text: 'The file could not be read' });
    expect(telegram.calls).toEqual([]);
  });
});

describe('a file', () => {
  test.each([
    ['image', 'image/png', 'photo'],
    ['image', 'image/svg+xml', 'document'],
    ['voice', 'audio/ogg; codecs=opus', 'voice'],
    ['voice', 'audio/wav', 'document'],
    ['audio', 'audio/mpeg', 'audio'],
    ['audio', 'audio/flac', 'document'],
    ['video', 'video/mp4', 'video'],
    ['video', 'video/x-matroska', 'document'],
    ['file', 'application/pdf', 'document'],
  ] as const)('%s of %s is sent as %s, with its name and caption', async (kind, mediaType, shown) => {
    const { telegram, send } = await ready({ isForum: true });
    const topic = telegram.chats.addTopic(group, 'Files', ada);
    const attachment = fileOf(kind, mediaType, png, 'é "; x.png');
    const result = await send({ to: group, threadId: String(topic), text: 'see', markup: '<b>see</b>', attachment });
    const [said] = telegram.chats.said(group);
    expect(result).toEqual({ is: 'sent', platformId: String(said?.messageId) });
    expect(said).toMatchObject({ text: 'see', entities: [{ type: 'bold' }], threadId: topic, file: { kind: shown, name: 'é _; x.png', bytes: png } });
  });

  test('a large image, or one that Telegram cannot show, is a document', async () => {
    const { telegram, send } = await ready();
    const large = new Uint8Array(10_000_001);
    large.set(png);
    await send({ text: '', attachment: fileOf('image', 'image/png', large) });
    await send({ text: 'odd', attachment: fileOf('image', 'image/png', new Uint8Array(9)) });
    expect(telegram.chats.said(ada.id).map(({ file, text }) => [file?.kind, text])).toEqual([
      ['document', ''],
      ['document', 'odd'],
    ]);
    expect(telegram.calls.map(({ method, status }) => [method, status])).toEqual([
      ['sendDocument', 200],
      ['sendPhoto', 400],
      ['sendDocument', 200],
    ]);
  });

  test('no name becomes a field of the form', async () => {
    const { telegram, send } = await ready();
    const name = 'x"\r\n\r\n--b\r\ncontent-disposition: form-data; name="chat_id"/../y';
    expect(await send({ text: '', attachment: fileOf('file', 'text/plain', png, name) })).toMatchObject({ is: 'sent' });
    expect(telegram.chats.said(ada.id)).toHaveLength(1);
    expect(telegram.chats.said(ada.id)[0]?.file?.name).not.toMatch(/["\r\n/]/);
  });
});

describe('evidence', () => {
  test('a limit of a chat is obeyed without asking again, others are not affected', async () => {
    const { telegram, clock, send } = await ready();
    telegram.chats.say(eve, 'hi');
    telegram.limit(ada.id, 40);
    expect(await send({ text: 'a' })).toEqual({ is: 'notSent', text: 'Too Many Requests: retry after 40', retryAfterMs: 40_000 });
    clock.advance(15_000);
    expect(await send({ text: 'b' })).toEqual({ is: 'notSent', text: 'Telegram accepts nothing for this chat yet', retryAfterMs: 25_000 });
    expect(await send({ to: eve.id, text: 'c' })).toMatchObject({ is: 'sent' });
    clock.advance(24_999);
    expect(await send({ text: 'd' })).toMatchObject({ is: 'notSent', retryAfterMs: 1 });
    clock.advance(1);
    expect(await send({ text: 'e' })).toMatchObject({ is: 'sent' });
    expect(telegram.callsOf('sendMessage').map(({ params, status }) => [params['text'], status])).toEqual([
      ['a', 429],
      ['c', 200],
      ['e', 200],
    ]);
  });

  test('three limited chats mean the bot', async () => {
    const { telegram, clock, send } = await ready();
    telegram.chats.say(eve, 'hi');
    telegram.limit(0, 10);
    expect(await send({ text: 'a' })).not.toHaveProperty('scope');
    expect(await send({ to: eve.id, text: 'b' })).not.toHaveProperty('scope');
    expect(await send({ to: group, text: 'c' })).toMatchObject({ is: 'notSent', retryAfterMs: 10_000, scope: 'instance' });
    expect(await send({ to: 1003, text: 'd' })).toMatchObject({ is: 'notSent', scope: 'instance' });
    clock.advance(10_000);
    expect(await send({ to: group, text: 'e' })).toMatchObject({ is: 'sent' });
  });

  test('three chats that were limited one after the other do not', async () => {
    const { telegram, clock, send } = await ready();
    for (const chat of [ada.id, eve.id, group]) {
      if (chat === eve.id) telegram.chats.say(eve, 'hi');
      telegram.limit(chat, 5);
      expect(await send({ to: chat, text: 'x' })).toEqual({ is: 'notSent', text: expect.any(String), retryAfterMs: 5_000 });
      clock.advance(5_000);
    }
  });

  test.each([
    [{ code: 403, description: 'Forbidden: user is deactivated' }, 'deactivated'],
    [{ code: 403, description: "Forbidden: bot can't initiate conversation with a user" }, 'not_started'],
    [{ code: 403, description: 'Forbidden: something new' }, 'not_permitted'],
    [{ code: 400, description: 'Bad Request: not enough rights to send text messages to the chat' }, 'not_permitted'],
    [{ code: 400, description: 'Bad Request: something new' }, 'refused'],
    [{ status: 413, body: '<html>too large</html>' }, 'too_large'],
  ])('a complete refusal is one: %o', async (fault, kind) => {
    const { telegram, send } = await ready();
    telegram.fail('sendMessage', fault);
    expect(await send({ text: 'x' })).toMatchObject({ is: 'rejected', kind });
    expect(telegram.calls).toHaveLength(1);
  });

  test('who blocked the bot, a group that removed it, and nobody are distinguished', async () => {
    const { telegram, send } = await ready();
    telegram.chats.block(ada.id);
    telegram.chats.block(group);
    expect(await send({ text: 'x' })).toMatchObject({ is: 'rejected', kind: 'blocked', text: 'Forbidden: bot was blocked by the user' });
    expect(await send({ to: group, text: 'x' })).toMatchObject({ is: 'rejected', kind: 'kicked' });
    expect(await send({ to: 4711, text: 'x' })).toMatchObject({ is: 'rejected', kind: 'no_such_chat' });
  });

  test.each([
    ['a cut before it acted', 'cutBefore' as const, 0],
    ['a cut after it acted', 'cutAfter' as const, 1],
    ['a broken server', { code: 500, description: 'Internal Server Error' }, 0],
    ['a proxy', { status: 502, body: 'Bad gateway' }, 0],
    ['an answer that says nothing', { status: 200, body: '{"ok":true' }, 0],
  ])('after %s it may have been sent', async (_name, fault, shown) => {
    const { telegram, send } = await ready();
    telegram.fail('sendMessage', fault);
    expect(await send({ text: 'x' })).toMatchObject({ is: 'ambiguous' });
    expect(telegram.chats.said(ada.id)).toHaveLength(shown);
    expect(telegram.calls).toHaveLength(1);
  });

  test('without an answer in time it may have been sent, also when it is given up', async () => {
    const { telegram, clock, send } = await ready();
    telegram.fail('sendMessage', 'hangAfter', 'hang');
    const late = send({ text: 'x' });
    await expect.poll(() => telegram.calls.length).toBe(1);
    clock.advance(30_000);
    expect(await late).toEqual({ is: 'ambiguous', text: 'No complete answer within 30 s' });
    const stopping = new AbortController();
    const stopped = send({ text: 'y' }, stopping.signal);
    await expect.poll(() => telegram.calls.length).toBe(2);
    stopping.abort();
    expect(await stopped).toMatchObject({ is: 'ambiguous' });
    expect(clock.pending()).toBe(0);
  });

  test('without a connection, or with a token that is not accepted, it was not', async () => {
    const fake = await startTelegram();
    const far = await open(fake, { apiUrl: `http://127.0.0.1:${await freePort()}` }).send({ text: 'x' });
    expect(far).toEqual({ is: 'notSent', text: 'The request failed: ECONNREFUSED' });
    expect(await open(fake, { token: '1:x' }).send({ text: 'x' })).toEqual({ is: 'notSent', text: 'Unauthorized', scope: 'instance' });
  });
});

describe('messages that were sent', () => {
  const at = (messageId: string, chat = ada.id) => ({ conversationId: String(chat), messageId });
  const options = { signal: never };

  test('are edited, also with equal text, with broken markup, and as captions', async () => {
    const { telegram, adapter, send } = await ready();
    const ids: string[] = [];
    for (const attachment of [undefined, fileOf('image', 'image/png')]) {
      const result = await send({ text: 'one', attachment, buttons: [{ label: 'Stop', command: '/stop' }] });
      if (result.is === 'sent') ids.push(result.platformId ?? '');
    }
    for (const id of ids) {
      expect(await adapter.edit?.(at(id), { text: 'two', markup: '<b>two</b>' }, options)).toEqual({ is: 'done', value: {} });
      expect(await adapter.edit?.(at(id), { text: 'two', markup: '<b>two</b>' }, options)).toEqual({ is: 'done', value: {} });
      expect(await adapter.edit?.(at(id), { text: 'three', markup: '<b>three' }, options)).toEqual({ is: 'done', value: {} });
    }
    expect(telegram.chats.said(ada.id).map(({ text, isEdited, buttons }) => [text, isEdited, buttons])).toEqual([
      ['three', true, []],
      ['three', true, []],
    ]);
    expect(await adapter.edit?.(at('9999'), { text: 'x' }, options)).toMatchObject({ is: 'failed', kind: 'not_found' });
    const theirs = telegram.chats.say(ada, 'mine');
    expect(await adapter.edit?.(at(String(theirs)), { text: 'x' }, options)).toMatchObject({ is: 'failed', kind: 'denied' });
    expect(await adapter.edit?.(at('x'), { text: 'x' }, options)).toMatchObject({ is: 'failed', kind: 'invalid' });
  });

  test('are removed, once', async () => {
    const { telegram, adapter, send } = await ready();
    await send({ text: 'one' });
    const id = String(telegram.chats.said(ada.id)[0]?.messageId);
    expect(await adapter.remove?.(at(id), options)).toEqual({ is: 'done', value: {} });
    expect(telegram.chats.said(ada.id)).toEqual([]);
    expect(await adapter.remove?.(at(id), options)).toMatchObject({ is: 'failed', kind: 'not_found' });
    const theirs = telegram.chats.say(ada, 'mine', { chat: group });
    expect(await adapter.remove?.(at(String(theirs), group), options)).toMatchObject({ is: 'failed', kind: 'denied' });
  });

  test('get a reaction, another one, and none', async () => {
    const { telegram, adapter } = await ready();
    const id = telegram.chats.say(ada, 'look');
    const seen = () => telegram.chats.shown(ada.id).find(({ messageId }) => messageId === id)?.reactions;
    expect(await adapter.react?.(at(String(id)), '👀', options)).toEqual({ is: 'done', value: {} });
    expect(seen()).toEqual(['👀']);
    await adapter.react?.(at(String(id)), '❤️', options);
    expect(seen()).toEqual(['❤']);
    expect(await adapter.react?.(at(String(id)), '🫠', options)).toMatchObject({ is: 'failed', kind: 'invalid' });
    expect(await adapter.unreact?.(at(String(id)), '❤️', options)).toEqual({ is: 'done', value: {} });
    expect(seen()).toEqual([]);
  });

  test('are announced by typing, where they will be', async () => {
    const { telegram, adapter } = await ready({ isForum: true });
    const topic = telegram.chats.addTopic(group, 'Plans');
    expect(await adapter.typing?.({ conversationId: String(group), threadId: String(topic) }, options)).toEqual({ is: 'done', value: {} });
    expect(telegram.chats.typing).toEqual([[group, topic]]);
    telegram.fail('sendChatAction', { code: 429, description: '', retryAfter: 3 }, 'cutBefore', { code: 502, description: 'Bad Gateway' });
    const again = () => adapter.typing?.({ conversationId: '1001' }, options);
    expect(await again()).toMatchObject({ is: 'failed', kind: 'rate_limited', retryAfterMs: 3_000 });
    expect(await again()).toMatchObject({ is: 'failed', kind: 'ambiguous' });
    expect(await again()).toMatchObject({ is: 'failed', kind: 'ambiguous' });
    expect(await adapter.typing?.({ conversationId: 'x' }, options)).toMatchObject({ is: 'failed', kind: 'invalid' });
  });
});

describe('a received file', () => {
  const receive = async (bytes: Uint8Array) => {
    const wire = await connect();
    wire.telegram.chats.say(ada, '', { file: { kind: 'document', name: 'x.bin', bytes } });
    await expect.poll(() => wire.received.length).toBe(1);
    const ref = wire.received[0]?.attachments?.[0]?.ref ?? '';
    return { ...wire, ref, get: () => wire.adapter.download?.(ref, { signal: never }) };
  };
  const readAll = async (stream: AsyncIterable<Uint8Array>) => {
    const parts: Uint8Array[] = [];
    for await (const part of stream) parts.push(part);
    return Buffer.concat(parts);
  };

  test('is downloaded, by an id without secrets', async () => {
    const bytes = new Uint8Array(300_000).fill(7);
    const { get, ref, telegram, clock } = await receive(bytes);
    expect(ref).not.toContain(telegram.token.split(':')[1]);
    const timers = clock.pending();
    const opened = await get();
    if (opened?.is !== 'opened') throw new Error('expected a stream');
    expect((await readAll(opened.stream)).equals(bytes)).toBe(true);
    expect(clock.pending()).toBe(timers);
  });

  test('that is too large, or gone, is said so', async () => {
    const { get, adapter } = await receive(new Uint8Array(20_971_521));
    expect(await get()).toEqual({ is: 'gone', text: expect.stringContaining('larger than 20 MB') });
    for (const ref of ['F-unknown', '../secret', '']) expect(await adapter.download?.(ref, { signal: never })).toMatchObject({ is: 'gone' });
  });

  test('that is larger than declared is cut off', async () => {
    const { get, telegram } = await receive(new Uint8Array(20_000_001));
    const path = `documents/file_1.bin`;
    telegram.fail('getFile', { status: 200, body: JSON.stringify({ ok: true, result: { file_id: 'x', file_unique_id: 'y', file_path: path } }) });
    const opened = await get();
    if (opened?.is !== 'opened') throw new Error('expected a stream');
    await expect(readAll(opened.stream).then((all) => all.byteLength)).rejects.toThrow('The file is larger than 20000000 bytes');
  });

  test('that breaks off, or cannot be had now, is an error without the address', async () => {
    const { get, telegram } = await receive(new Uint8Array(1_000));
    telegram.fail('file', 'cutAfter');
    const opened = await get();
    if (opened?.is !== 'opened') throw new Error('expected a stream');
    const error = await readAll(opened.stream).catch((caught: unknown) => caught);
    expect(String(error)).toContain('The connection ended before the file was complete');
    expect(String((error as Error).cause)).not.toContain(telegram.token);
    telegram.fail('getFile', { code: 500, description: 'Internal Server Error' }, 'cutBefore', {
      status: 200,
      body: '{"ok":true,"result":{"file_id":"x","file_unique_id":"y","file_path":"/var/lib/bot/x"}}',
    });
    expect(await get()).toEqual({ is: 'unavailable', text: 'Internal Server Error' });
    expect(await get()).toMatchObject({ is: 'unavailable' });
    expect(await get()).toEqual({ is: 'unavailable', text: expect.stringContaining('--local') });
  });
});
