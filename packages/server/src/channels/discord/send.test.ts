import { freePort } from '@gatehouse/testkit/free-port';
import { afterEach, expect, test } from 'vitest';
import type { OutgoingPart } from '../port.ts';
import { startRig, type Rig } from './testing.ts';

const rigs: Rig[] = [];
afterEach(async () => {
  for (const rig of rigs.splice(0)) await rig[Symbol.asyncDispose]();
});
const never = new AbortController().signal;
const options = { signal: never };

/** A wire that is not connected: sends need no gateway. */
async function start(...more: Parameters<typeof startRig>) {
  const rig = await startRig(...more);
  rigs.push(rig);
  const { fake } = rig;
  const ada = fake.person('ada');
  const channel = fake.channel(fake.guild('lab'), 'general');
  const { adapter } = rig.open();
  const send = (text: string, key = text, part: Partial<OutgoingPart> = {}) =>
    adapter.send({ conversationId: channel.id, text, ...part }, { key, signal: never });
  let sends = 0;
  const sent = async (text: string, part: Partial<OutgoingPart> = {}): Promise<string> => {
    const result = await send(text, `sent ${(sends += 1)}`, part);
    if (result.is !== 'sent') throw new Error(JSON.stringify(result));
    return result.platformId ?? '';
  };
  const posts = () => fake.rest.requests.filter(({ method, path }) => method === 'POST' && path.endsWith('/messages'));
  const shown = () => fake.shown(channel).map(({ content }) => content);
  return { ...rig, ada, channel, adapter, send, sent, posts, shown };
}

test('a message has its markup, a key, an answered message, and notifies nobody', async () => {
  const { fake, ada, channel, sent, posts } = await start();
  const asked = fake.write(ada, channel, 'a question');
  const text = `@everyone <@${ada.id}> plain`;
  const id = await sent(text, { markup: `**@everyone** <@${ada.id}>`, replyTo: asked });
  expect(fake.shown(channel).at(-1)).toMatchObject({ id, author: 'gate', content: `**@everyone** <@${ada.id}>`, replyTo: asked, notifies: [] });
  expect(posts()).toMatchObject([{ body: { nonce: expect.stringMatching(/^[0-9a-f]{25}$/), enforce_nonce: true, allowed_mentions: { parse: [] } } }]);
  // A message that was deleted meanwhile is answered, too.
  fake.remove(channel, asked);
  await sent('late', { replyTo: asked });
  expect(fake.shown(channel).at(-1)).toMatchObject({ content: 'late', replyTo: undefined });
});

test('a message to a thread arrives in the thread', async () => {
  const { fake, channel, sent, shown } = await start();
  const thread = fake.thread(channel, 'side');
  await sent('here', { threadId: thread.id });
  expect([shown(), fake.shown(thread).map(({ content }) => content)]).toEqual([[], ['here']]);
});

test('files and voice messages are sent', async () => {
  const { fake, channel, sent, send } = await start();
  const file = (kind: 'file' | 'voice', name: string, data: Buffer) => ({
    attachment: { kind, name, mediaType: 'audio/ogg', bytes: data.length, read: () => Promise.resolve(data) },
  });
  // Header, and the last page with its position: two seconds.
  const page = Buffer.alloc(28);
  page.write('OggS');
  page.writeBigUInt64LE(96_000n, 6);
  const opus = Buffer.concat([Buffer.from('OggS OpusHead'), page]);
  await sent('a caption', file('file', 'a.bin', Buffer.from('abc')));
  await sent('', file('voice', 'v.ogg', opus));
  await sent('with a caption', file('voice', 'v.ogg', opus));
  await sent('', file('voice', 'no-opus.ogg', Buffer.from('abc')));
  expect(fake.shown(channel)).toMatchObject([
    { content: 'a caption', files: ['a.bin (3)'], isVoice: false },
    { content: '', files: [`v.ogg (${opus.length})`], isVoice: true },
    { content: 'with a caption', isVoice: false },
    { content: '', files: ['no-opus.ogg (3)'], isVoice: false },
  ]);
  expect(fake.rest.requests.at(-3)?.body).toMatchObject({ flags: 8_192, attachments: [{ duration_secs: 2 }] });
  const tooLarge = await send('', 'big', file('file', 'big', Buffer.alloc(10_485_761)));
  expect(tooLarge).toMatchObject({ is: 'rejected', kind: 'too_large' });
  const unreadable = { kind: 'file', name: 'x', mediaType: 'x/y', bytes: 1, read: () => Promise.reject(new Error('gone')) } as const;
  expect(await send('', 'gone', { attachment: unreadable })).toMatchObject({ is: 'rejected', kind: 'no_attachment' });
});

test('the library waits for nothing and repeats nothing: a limit is one request', async () => {
  const { fake, send, posts, shown } = await start();
  fake.rest.fail(/POST/, { retryAfterMs: 300 });
  // The header has whole seconds.
  expect(await send('a')).toEqual({ is: 'notSent', text: 'Discord limits the rate of requests', retryAfterMs: 1_050 });
  // Until then nothing is asked.
  expect(await send('b')).toEqual({ is: 'notSent', text: 'Discord limits the rate of requests', retryAfterMs: expect.any(Number) });
  expect([posts().length, shown()]).toEqual([1, []]);
});

test('evidence of a send that may have arrived', async () => {
  const { fake, clock, send, posts, shown } = await start();
  fake.rest.fail(/POST/, { status: 503 }, 'cutBefore', 'cutAfter', { status: 502, body: '<html>' }, { status: 200, body: {} }, 'hangAfter');
  expect(await send('a')).toEqual({ is: 'ambiguous', text: 'Discord answered with 503' });
  expect(await send('b')).toMatchObject({ is: 'ambiguous' });
  expect(await send('c')).toMatchObject({ is: 'ambiguous' });
  expect(await send('d')).toEqual({ is: 'ambiguous', text: 'Discord answered with 502' });
  expect(await send('e')).toEqual({ is: 'ambiguous', text: 'Discord answered in an unknown form' });
  const hanging = send('f');
  await expect.poll(() => posts().length).toBe(6);
  clock.advance(30_000);
  expect(await hanging).toEqual({ is: 'ambiguous', text: 'No complete answer within 30 s' });
  expect(shown()).toEqual(['c', 'f']);
});

test('a global limit holds the whole instance', async () => {
  const { fake, send } = await start();
  fake.rest.fail(/POST/, { retryAfterMs: 40_000, isGlobal: true });
  expect(await send('a')).toEqual({ is: 'notSent', text: 'Discord limits the rate of requests', retryAfterMs: 40_050, scope: 'instance' });
});

test('a limit that Discord announces is kept without a request', async () => {
  const { send, posts, shown } = await start({ limit: { messages: 2, windowMs: 60_000 } });
  expect([await send('a'), await send('b'), await send('c')]).toMatchObject([{ is: 'sent' }, { is: 'sent' }, { is: 'notSent' }]);
  expect([posts().length, shown()]).toEqual([2, ['a', 'b']]);
});

test('nothing was sent without a connection, after a stop, and with a token that is refused', async () => {
  const { fake, open, channel, posts } = await start();
  const place = { conversationId: channel.id, text: 'x' };
  const away = open(undefined, { apiUrl: `http://127.0.0.1:${await freePort()}/api` });
  expect(await away.adapter.send(place, { key: 'k', signal: never })).toEqual({ is: 'notSent', text: 'The request failed: ECONNREFUSED' });
  expect(await open().adapter.send(place, { key: 'k', signal: AbortSignal.abort() })).toMatchObject({ is: 'notSent' });
  const refused = open(undefined, { token: 'wrong' });
  for (let n = 0; n < 2; n += 1)
    expect(await refused.adapter.send(place, { key: 'k', signal: never })).toEqual({ is: 'notSent', text: 'Discord refuses the token' });
  expect(posts()).toHaveLength(2);
  expect(fake.shown(channel)).toEqual([]);
});

test('a send that is stopped under way may have arrived', async () => {
  const { fake, open, channel, posts } = await start();
  fake.rest.fail(/POST/, 'hang');
  const stopping = new AbortController();
  const sending = open().adapter.send({ conversationId: channel.id, text: 'x' }, { key: 'k', signal: stopping.signal });
  await expect.poll(() => posts().length).toBe(1);
  stopping.abort();
  expect(await sending).toMatchObject({ is: 'ambiguous' });
});

test('refusals have kinds', async () => {
  const { fake, ada, channel, adapter, send } = await start();
  const direct = fake.directChannel(ada);
  fake.block(ada);
  const to = (conversationId: string) => adapter.send({ conversationId, text: 'x' }, { key: 'x', signal: never });
  expect(await to(direct.id)).toEqual({ is: 'rejected', kind: 'cannot_send', text: 'Cannot send messages to this user' });
  expect(await to('10000000000000000')).toMatchObject({ is: 'rejected', kind: 'no_such_channel' });
  const guild = fake.guild('other');
  const [hidden, readOnly] = [fake.channel(guild, 'hidden'), fake.channel(guild, 'read-only')];
  fake.forbid(hidden, 'see');
  fake.forbid(readOnly, 'write');
  expect(await to(hidden.id)).toMatchObject({ is: 'rejected', kind: 'no_access' });
  expect(await to(readOnly.id)).toMatchObject({ is: 'rejected', kind: 'not_permitted' });
  expect(await send('x'.repeat(2_001))).toMatchObject({ is: 'rejected', kind: 'invalid', text: expect.stringContaining('2000 or fewer') });
  fake.rest.fail(/POST/, { status: 413, body: '<html>' });
  expect(await send('y')).toMatchObject({ is: 'rejected', kind: 'too_large' });
  expect(fake.shown(channel)).toEqual([]);
});

test.each(['', '../users/@me', '123', '12345678901234567/..', `${'1'.repeat(21)}`, '12345678901234567\n'])(
  'an id that is none gets into no path: %j',
  async (id) => {
    const { fake, adapter, channel } = await start();
    const part = { conversationId: id, text: 'x' };
    const ref = { conversationId: channel.id, messageId: id };
    expect(await adapter.send(part, { key: 'k', signal: never })).toMatchObject({ is: 'rejected', kind: 'target' });
    expect(await adapter.send({ ...part, conversationId: channel.id, threadId: id }, { key: 'k', signal: never })).toMatchObject({ kind: 'target' });
    expect(await adapter.lookUp!(part, { key: 'k', sinceMs: 0, signal: never })).toMatchObject({ is: 'unclear' });
    for (const act of [
      await adapter.edit!(ref, { text: 'x' }, options),
      await adapter.remove!(ref, options),
      await adapter.react!(ref, '👀', options),
      await adapter.typing!({ conversationId: id }, options),
      await adapter.fetch!({ conversationId: id }, { ...options, limit: 1 }),
      await adapter.action!('pin', { message_id: id }, { conversationId: channel.id }, options),
    ])
      expect(act).toMatchObject({ is: 'failed', kind: 'invalid' });
    expect(fake.rest.requests).toEqual([]);
  },
);

test('a send that acted and was cut is sent again with its key: one message', async () => {
  const { fake, clock, send, posts, shown } = await start();
  fake.rest.fail(/POST/, 'cutAfter', 'cutBefore');
  expect(await send('once', 'k1')).toMatchObject({ is: 'ambiguous' });
  expect(await send('once', 'k1')).toMatchObject({ is: 'ambiguous' });
  clock.advance(119_000);
  expect(await send('once', 'k1')).toMatchObject({ is: 'sent', platformId: expect.any(String) });
  expect([posts().length, shown()]).toEqual([3, ['once']]);
  // Another send of the same text is another message.
  expect(await send('once', 'k2')).toMatchObject({ is: 'sent' });
  expect(shown()).toEqual(['once', 'once']);
});

test.each([false, true])('what became of a send is found in the history (with nonces: %s)', async (historyHasNonces) => {
  const { fake, ada, clock, channel, adapter, send } = await start({ historyHasNonces });
  const lookUp = (text: string, key: string, sinceMs: number, part: Partial<OutgoingPart> = {}) =>
    adapter.lookUp!({ conversationId: channel.id, text, ...part }, { key, sinceMs, signal: never });
  await send('same', 'k0');
  fake.write(ada, channel, 'lost');
  clock.advance(60_000);
  const sinceMs = clock.now();
  fake.rest.fail(/POST/, 'cutAfter', 'cutBefore');
  expect(await send('same ', 'k1')).toMatchObject({ is: 'ambiguous' });
  expect(await send('lost', 'k2')).toMatchObject({ is: 'ambiguous' });
  expect(await lookUp('same ', 'k1', sinceMs)).toEqual({ is: 'found', platformId: fake.shown(channel).at(-1)?.id });
  expect(await lookUp('lost', 'k2', sinceMs)).toEqual({ is: 'absent' });
  // An earlier message with the same text was another send.
  fake.remove(channel, fake.shown(channel).at(-1)!.id);
  expect(await lookUp('same ', 'k1', sinceMs - 60_000)).toEqual({ is: 'absent' });
  // Behind more than a page.
  for (let n = 0; n < 150; n += 1) fake.write(ada, channel, `noise ${n}`);
  fake.rest.fail(/POST/, 'cutAfter');
  await send('late', 'k3');
  expect(await lookUp('late', 'k3', sinceMs)).toMatchObject({ is: 'found' });
  fake.rest.fail(/GET .*messages/, { status: 500 }, { status: 403 });
  expect(await lookUp('late', 'k3', sinceMs)).toMatchObject({ is: 'unclear', retry: true });
  const forever = await lookUp('late', 'k3', sinceMs);
  expect([forever.is, 'retry' in forever]).toEqual(['unclear', false]);
});

test('own messages are edited, deleted and reacted to', async () => {
  const { fake, ada, channel, adapter, sent } = await start();
  const id = await sent('draft', { buttons: [{ label: 'OK', command: '/ok' }] });
  const ref = { conversationId: channel.id, messageId: id };
  const theirs = { conversationId: channel.id, messageId: fake.write(ada, channel, 'hers') };
  expect(await adapter.edit!(ref, { text: 'final', markup: '**final** @everyone' }, options)).toEqual({ is: 'done', value: {} });
  expect(await adapter.react!(theirs, '👀', options)).toMatchObject({ is: 'done' });
  expect(await adapter.react!(theirs, '<:party:12345678901234567>', options)).toMatchObject({ is: 'done' });
  expect(fake.shown(channel)).toMatchObject([
    { content: '**final** @everyone', isEdited: true, buttons: [], notifies: [] },
    { reactions: ['👀', 'party:12345678901234567'] },
  ]);
  expect(await adapter.unreact!(theirs, '👀', options)).toMatchObject({ is: 'done' });
  expect(fake.shown(channel)[1]?.reactions).toEqual(['party:12345678901234567']);
  expect(await adapter.react!(theirs, 'no emoji', options)).toMatchObject({ is: 'failed', kind: 'invalid' });
  expect(await adapter.edit!(theirs, { text: 'x' }, options)).toMatchObject({ is: 'failed', kind: 'denied' });
  expect(await adapter.remove!(ref, options)).toMatchObject({ is: 'done' });
  expect(await adapter.remove!(ref, options)).toMatchObject({ is: 'failed', kind: 'not_found' });
  fake.rest.fail(/DELETE/, 'cutBefore', { retryAfterMs: 2_000 });
  expect(await adapter.remove!(theirs, options)).toMatchObject({ is: 'failed', kind: 'ambiguous' });
  expect(await adapter.remove!(theirs, options)).toMatchObject({ is: 'failed', kind: 'rate_limited', retryAfterMs: 2_050 });
  expect(await adapter.typing!({ conversationId: channel.id }, options)).toMatchObject({ is: 'done' });
  expect(fake.rest.typing).toEqual([channel.id]);
});

test('the history comes with the newest first, page by page', async () => {
  const { fake, ada, channel, adapter } = await start();
  const ids = ['a', 'b', 'c', 'd'].map((text) => fake.write(ada, channel, text));
  const fetch = async (limit: number, before?: string) => {
    const fetched = await adapter.fetch!({ conversationId: channel.id }, { ...options, limit, before });
    return fetched.is === 'done' ? fetched.value : fetched;
  };
  expect(await fetch(2)).toMatchObject([{ text: 'd', messageId: ids[3], senderId: ada.id, sentAtMs: expect.any(Number) }, { text: 'c' }]);
  expect(await fetch(500, ids[2])).toMatchObject([{ text: 'b' }, { text: 'a' }]);
  fake.rest.fail(/GET/, 'cutBefore');
  expect(await fetch(1)).toMatchObject({ is: 'failed', kind: 'unavailable' });
});
