import type { FakeMatrix, MatrixAccount } from '@gatehouse/testkit';
import { freePort } from '@gatehouse/testkit/free-port';
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { closeAll, connect, open, start, startWorld } from './testing.ts';

let hs: FakeMatrix;
let gate: MatrixAccount;
let ada: MatrixAccount;
let eve: MatrixAccount;
beforeEach(async () => {
  ({ hs, gate, ada, eve } = await startWorld());
});
afterEach(closeAll);

/** A room with ada and us. */
function direct(): string {
  const room = ada.createRoom({ invite: [gate.userId], isDirect: true });
  gate.join(room);
  return room;
}
/** A room with ada, eve and us. */
function shared(): string {
  const room = ada.createRoom({ name: 'Lab', invite: [gate.userId, eve.userId] });
  gate.join(room);
  eve.join(room);
  return room;
}
const texts = (wire: { readonly received: readonly { readonly text: string }[] }) => wire.received.map(({ text }) => text);
const syncs = () => hs.requests.filter(({ path }) => path.endsWith('/sync'));

describe('receiving', () => {
  test('the first connection takes nothing old, and what comes then with its position', async () => {
    const room = direct();
    ada.say(room, 'old');
    const wire = await connect(hs, gate.token);
    expect(wire.connected).toEqual(['@gate:fake.test']);
    expect([texts(wire), wire.cursors.length]).toEqual([[], 1]);
    const id = ada.say(room, 'hello');
    await expect.poll(() => wire.received).toHaveLength(1);
    expect(wire.received[0]).toMatchObject({
      eventKey: id,
      messageId: id,
      conversationId: room,
      conversationKind: 'direct',
      senderId: '@ada:fake.test',
      senderName: 'Ada',
      isBot: false,
      text: 'hello',
      mentionsUs: false,
    });
    expect(wire.received[0]?.threadId).toBeUndefined();
    await expect.poll(() => hs.polls).toBe(1);
    expect(syncs().at(-1)?.query.get('since')).toBe(wire.cursors.at(-1));
    expect(await wire.stop()).toEqual({ ended: 'stopped', text: 'Stopped' });
  });

  test('a later process continues at the stored position: nothing is lost, nothing comes twice', async () => {
    const room = direct();
    const first = await connect(hs, gate.token);
    ada.say(room, 'one');
    await expect.poll(() => texts(first)).toEqual(['one']);
    await first.stop();
    ada.say(room, 'two');
    const second = await connect(hs, gate.token, { cursor: first.cursors.at(-1) });
    await expect.poll(() => texts(second)).toEqual(['two']);
    // What it knows of rooms and people is that of a new process.
    expect(second.received[0]).toMatchObject({ conversationKind: 'direct', senderName: 'Ada' });
  });

  test('a poll is made again only when its messages are stored', async () => {
    const room = direct();
    let isBroken = true;
    const wire = await connect(hs, gate.token, {
      take: async (messages) => {
        if (messages.length > 0 && isBroken) throw new Error('full');
      },
    });
    const before = syncs().length;
    ada.say(room, 'keep me');
    await expect.poll(() => wire.warned).toMatchObject([{ text: expect.stringContaining('tried again') }]);
    expect(syncs()).toHaveLength(before);
    isBroken = false;
    wire.clock.advance(1_000);
    await expect.poll(() => texts(wire)).toEqual(['keep me']);
    await expect.poll(() => syncs().length).toBe(before + 1);
  });

  test('a gap is read back to the stored position, in order, and not beyond 100 messages', async () => {
    const room = direct();
    const wire = await connect(hs, gate.token);
    ada.say(room, 'known');
    await expect.poll(() => texts(wire)).toEqual(['known']);
    await wire.stop();
    for (let n = 0; n < 140; n += 1) ada.say(room, `${n}`);
    const second = await connect(hs, gate.token, { cursor: wire.cursors.at(-1) });
    expect(texts(second)).toEqual(Array.from({ length: 140 }, (_, n) => `${n}`));
    expect(second.warned).toEqual([]);
    await second.stop();
    for (let n = 0; n < 151; n += 1) ada.say(room, `again ${n}`);
    const third = await connect(hs, gate.token, { cursor: second.cursors.at(-1) });
    expect(texts(third)).toEqual(Array.from({ length: 150 }, (_, n) => `again ${n + 1}`));
    expect(third.warned).toMatchObject([{ text: expect.stringContaining('long gap') }]);
  });

  test('a failure inside of a gap stores nothing, and the next connection has all of it', async () => {
    const room = direct();
    const wire = await connect(hs, gate.token);
    await wire.stop();
    for (let n = 0; n < 60; n += 1) ada.say(room, `${n}`);
    hs.fault(/GET .*\/messages/, { is: 'answer', status: 502 });
    const again = await connect(hs, gate.token, { cursor: wire.cursors.at(-1) });
    expect(await again.ended).toMatchObject({ ended: 'transient' });
    expect(again.received).toEqual([]);
    await start(hs, again);
    expect(texts(again)).toHaveLength(60);
  });

  test('messages of a large answer are stored in parts, the position with the last', async () => {
    const rooms = [direct(), direct()];
    const taken: [number, boolean][] = [];
    const wire = await connect(hs, gate.token);
    await wire.stop();
    for (const one of rooms) for (let n = 0; n < 50; n += 1) ada.say(one, `${n}`);
    await connect(hs, gate.token, {
      cursor: wire.cursors.at(-1),
      take: async (messages, next) => void taken.push([messages.length, next !== undefined]),
    });
    expect(taken).toEqual([
      [64, false],
      [36, true],
    ]);
  });

  test('own events and notices are not for people to answer', async () => {
    const room = direct();
    const wire = await connect(hs, gate.token);
    gate.say(room, 'from another client of ours');
    ada.say(room, 'I am a bot', { msgtype: 'm.notice' });
    await expect.poll(() => wire.received).toMatchObject([{ text: 'I am a bot', isBot: true }]);
  });

  test('a room becomes shared when somebody else joins', async () => {
    const room = direct();
    const wire = await connect(hs, gate.token, { joinInvitesFrom: { direct: [], groups: ['*'] } });
    ada.say(room, 'two of us');
    await expect.poll(() => texts(wire)).toEqual(['two of us']);
    ada.invite(room, eve.userId);
    eve.join(room);
    eve.say(room, 'three of us');
    await expect
      .poll(() => wire.received.map(({ conversationKind: kind, text }) => `${kind}: ${text}`))
      .toEqual(['direct: two of us', 'shared: three of us']);
  });

  test.each([
    ['a list of mentions', 'what is this?', { 'm.mentions': { user_ids: ['@gate:fake.test'] } }, true, 'what is this?'],
    ['a list of others', 'Gate is away', { 'm.mentions': { user_ids: ['@eve:fake.test'] } }, false, 'Gate is away'],
    ['our id at the beginning', '@gate:fake.test: hi', {}, true, 'hi'],
    ['our name at the beginning', 'gate, hi', {}, true, 'hi'],
    ['our name with a list', 'Gate: hi', { 'm.mentions': { user_ids: ['@gate:fake.test'] } }, true, 'hi'],
    ['our name inside', 'is Gate here?', {}, true, 'is Gate here?'],
    ['a link', '[Gate](https://matrix.to/#/@gate:fake.test): hi', {}, true, 'hi'],
    ['another word', 'the gateway is down', {}, false, 'the gateway is down'],
    ['a damaged list', 'hi', { 'm.mentions': { user_ids: 'all' } }, false, 'hi'],
  ])('mentions by %s', async (_name, body, content, mentionsUs, text) => {
    const room = shared();
    const wire = await connect(hs, gate.token);
    ada.say(room, body, content);
    await expect.poll(() => wire.received).toMatchObject([{ conversationKind: 'shared', mentionsUs, text }]);
  });

  test('a name that we have in one room alone is ours, too', async () => {
    const room = shared();
    gate.rename(room, 'Porter');
    const wire = await connect(hs, gate.token);
    ada.say(room, 'Porter: hi');
    await expect.poll(() => wire.received).toMatchObject([{ mentionsUs: true, text: 'hi' }]);
  });

  test('an answer to one of our messages mentions us, without what it quotes', async () => {
    const room = shared();
    const wire = await connect(hs, gate.token);
    const sent = await wire.send({ conversationId: room, text: 'Question?' });
    const ours = sent.is === 'sent' ? sent.platformId : undefined;
    const other = eve.say(room, 'chat');
    const answer = (eventId: string | undefined) => ({ 'm.mentions': {}, 'm.relates_to': { 'm.in_reply_to': { event_id: eventId } } });
    ada.say(room, '> <@gate:fake.test> Question?\n\nyes', answer(ours));
    ada.say(room, 'plainly', answer(ours));
    ada.say(room, 'to eve', answer(other));
    ada.say(room, '> quoted by hand\n> and more', {});
    await expect
      .poll(() => wire.received.map(({ text, mentionsUs }) => [text, mentionsUs]))
      .toEqual([
        ['chat', false],
        ['yes', true],
        ['plainly', true],
        ['to eve', false],
        ['> quoted by hand\n> and more', false],
      ]);
  });

  test('threads are kept apart; one on our message is for us', async () => {
    const room = shared();
    const wire = await connect(hs, gate.token);
    const sent = await wire.send({ conversationId: room });
    const ours = sent.is === 'sent' ? sent.platformId : '';
    const root = eve.say(room, 'root');
    const inThread = (eventId: unknown) => ({
      'm.mentions': {},
      'm.relates_to': { rel_type: 'm.thread', event_id: eventId, is_falling_back: true, 'm.in_reply_to': { event_id: ours } },
    });
    ada.say(room, 'on eve', inThread(root));
    const said = ada.say(room, 'on us', inThread(ours));
    ada.edit(room, said, 'changed');
    await expect
      .poll(() => wire.received.slice(1).map(({ text, threadId, mentionsUs }) => [text, threadId, mentionsUs]))
      .toEqual([
        ['on eve', root, false],
        ['on us', ours, true],
        ['changed', ours, false],
      ]);
  });

  test('a new version and a deletion name the message', async () => {
    const room = direct();
    const wire = await connect(hs, gate.token);
    const id = ada.say(room, 'frist');
    const edited = ada.edit(room, id, 'first');
    await expect.poll(() => texts(wire)).toEqual(['frist', 'first']);
    const deleted = ada.redact(room, id);
    await expect.poll(() => wire.received).toHaveLength(3);
    expect(wire.received[1]).toMatchObject({ eventKey: edited, messageId: id, edits: id, text: 'first' });
    expect(wire.received[1]?.isDeleted).toBeUndefined();
    expect(wire.received[2]).toMatchObject({ eventKey: deleted, messageId: id, edits: id, isDeleted: true, text: '', senderId: ada.userId });
  });

  test('what a moderator deletes is the message of its author', async () => {
    const room = shared();
    const wire = await connect(hs, gate.token);
    const id = eve.say(room, 'spam');
    ada.redact(room, id);
    await expect.poll(() => wire.received.at(-1)).toMatchObject({ edits: id, isDeleted: true, senderId: eve.userId });
    expect(() => eve.redact(room, ada.say(room, 'fine'))).toThrow('M_FORBIDDEN');
  });

  test('nobody edits what another one wrote, and damaged events stop nothing', async () => {
    const room = shared();
    const wire = await connect(hs, gate.token);
    const id = ada.say(room, 'mine');
    eve.edit(room, id, 'stolen');
    eve.say(room, 'x', { msgtype: 7 });
    eve.send(room, 'm.room.message', { body: ['list'], msgtype: 'm.text' });
    eve.send(room, 'm.room.message', JSON.parse('{"msgtype":"m.text","body":"proto","__proto__":{"a":1}}') as Record<string, unknown>);
    eve.send(room, 'm.room.message', {
      msgtype: 'm.text',
      body: 'edit of nothing',
      'm.new_content': 3,
      'm.relates_to': { rel_type: 'm.replace', event_id: id },
    });
    eve.send(room, 'm.room.message', { msgtype: 'm.key.verification.request', body: 'verify' });
    eve.send(room, 'm.room.message', { msgtype: 'm.emote', body: 'waves' });
    await expect.poll(() => texts(wire)).toEqual(['mine', '* Eve waves']);
    expect(wire.warned).toEqual([]);
  });

  test('files come with name, size and type, and are downloaded later', async () => {
    const room = direct();
    const wire = await connect(hs, gate.token);
    const url = ada.upload(Buffer.from('PNG'), 'image/png');
    ada.say(room, 'cat.png', { msgtype: 'm.image', url, info: { mimetype: 'image/png', size: 3 } });
    ada.say(room, 'what is it?', { msgtype: 'm.file', filename: 'a.bin', url, info: { size: -1 } });
    ada.say(room, 'voice.ogg', { msgtype: 'm.audio', url, 'org.matrix.msc3245.voice': {}, info: { mimetype: 'audio/ogg' } });
    ada.say(room, 'bad.png', { msgtype: 'm.image', url: 'https://evil.test/x' });
    await expect.poll(() => wire.received).toHaveLength(4);
    expect(wire.received.map(({ text, attachments }) => [text, attachments])).toEqual([
      ['', [{ ref: url, name: 'cat.png', mediaType: 'image/png', bytes: 3 }]],
      ['what is it?', [{ ref: url, name: 'a.bin' }]],
      ['', [{ ref: url, name: 'voice.ogg', mediaType: 'audio/ogg', isVoice: true }]],
      ['bad.png', undefined],
    ]);
    const { adapter, signal } = wire;
    const file = await adapter.download?.(url, { signal });
    if (file?.is !== 'opened') throw new Error(`expected a file, not ${JSON.stringify(file)}`);
    expect(Buffer.concat(await Array.fromAsync(file.stream)).toString()).toBe('PNG');
    expect(await adapter.download?.('mxc://fake.test/none', { signal })).toMatchObject({ is: 'gone' });
    expect(await adapter.download?.('mxc://../whoami', { signal })).toMatchObject({ is: 'gone' });
    hs.fault(/GET .*\/download/, { is: 'cutBefore' });
    expect(await adapter.download?.(url, { signal })).toMatchObject({ is: 'unavailable' });
  });

  test('encrypted messages are counted as unread once for each room, and nothing is sent there', async () => {
    const room = ada.createRoom({ invite: [gate.userId], isEncrypted: true });
    gate.join(room);
    const wire = await connect(hs, gate.token);
    for (let n = 0; n < 3; n += 1) ada.send(room, 'm.room.encrypted', { algorithm: 'm.megolm.v1.aes-sha2', ciphertext: 'x' });
    await expect.poll(() => wire.warned).toEqual([{ fields: { roomId: room }, text: expect.stringContaining('encrypted') }]);
    expect(wire.received).toEqual([]);
    expect(await wire.send({ conversationId: room })).toMatchObject({ is: 'rejected', kind: 'encrypted' });
    expect(hs.shown(room)).toEqual([]);
  });
});

describe('invitations', () => {
  test('one to a direct room is accepted, and what was written meanwhile is received', async () => {
    const wire = await connect(hs, gate.token);
    const room = ada.createRoom();
    ada.say(room, 'before the invitation');
    ada.invite(room, gate.userId, true);
    ada.say(room, 'right after it');
    await expect.poll(() => hs.members(room)[gate.userId]).toBe('join');
    await expect.poll(() => wire.received).toMatchObject([{ text: 'right after it', conversationKind: 'direct' }]);
    ada.say(room, 'and now');
    await expect.poll(() => texts(wire)).toEqual(['right after it', 'and now']);
  });

  test('strangers do not get us into groups, those of the list do', async () => {
    const wire = await connect(hs, gate.token, { joinInvitesFrom: { direct: ['*:other.test'], groups: ['*:other.test', '@eve:fake.test'] } });
    const [no, neither, yes] = [ada.createRoom(), ada.createRoom(), eve.createRoom()];
    ada.invite(no, gate.userId);
    ada.invite(neither, gate.userId, true);
    eve.invite(yes, gate.userId);
    await expect.poll(() => hs.members(yes)[gate.userId]).toBe('join');
    expect([hs.members(no)[gate.userId], hs.members(neither)[gate.userId]]).toEqual(['invite', 'invite']);
    expect(wire.warned.map(({ fields }) => fields)).toMatchObject([{ inviter: ada.userId }, { inviter: ada.userId }]);
  });

  test('a direct room does not lead into a group', async () => {
    const wire = await connect(hs, gate.token);
    const room = ada.createRoom({ invite: [gate.userId], isDirect: true });
    await expect.poll(() => hs.members(room)[gate.userId]).toBe('join');
    ada.say(room, 'one');
    await expect.poll(() => texts(wire)).toEqual(['one']);
    ada.invite(room, eve.userId);
    eve.join(room);
    ada.say(room, 'Gate: two');
    await expect.poll(() => wire.warned).toMatchObject([{ fields: { roomId: room }, text: expect.stringContaining('others joined') }]);
    await wire.stop();
    // A new process knows it from the account.
    ada.say(room, 'Gate: three');
    const second = await connect(hs, gate.token, { cursor: wire.cursors.at(-1) });
    eve.leave(room);
    ada.say(room, 'four');
    await expect.poll(() => texts(second)).toEqual(['four']);
  });

  test('one to an encrypted room is declined with the reason', async () => {
    const wire = await connect(hs, gate.token);
    const room = ada.createRoom({ invite: [gate.userId], isDirect: true, isEncrypted: true });
    await expect.poll(() => hs.members(room)[gate.userId]).toBe('leave');
    expect(hs.reason(room, gate.userId)).toContain('does not read encrypted rooms');
    expect(wire.warned).toMatchObject([{ text: expect.stringContaining('encrypted') }]);
  });

  test('a join that fails is tried again after the time that the homeserver names, and given up in the end', async () => {
    const wire = await connect(hs, gate.token);
    const joins = () => hs.requests.filter(({ path }) => path.endsWith('/join')).length;
    hs.fault(/\/join$/, { is: 'answer', status: 429, body: { errcode: 'M_LIMIT_EXCEEDED', retry_after_ms: 3_000 } });
    const room = ada.createRoom({ invite: [gate.userId], isDirect: true });
    await expect.poll(joins).toBe(1);
    const from = wire.clock.now();
    await expect
      .poll(() => {
        if (joins() === 1) wire.clock.advance(100);
        return hs.members(room)[gate.userId];
      })
      .toBe('join');
    expect(wire.clock.now() - from).toBeGreaterThanOrEqual(3_000);
    hs.fault(/\/join$/, { is: 'answer', status: 502 }, 3);
    const other = ada.createRoom({ invite: [gate.userId], isDirect: true });
    await expect
      .poll(() => {
        wire.clock.advance(100);
        return wire.warned.at(-1)?.text;
      })
      .toContain('failed to join');
    expect([hs.members(other)[gate.userId], joins()]).toEqual(['invite', 5]);
  });
});

describe('the end of a connection', () => {
  test('a token that is not valid is said so', async () => {
    const wire = await connect(hs, 'wrong');
    expect(await wire.ended).toEqual({ ended: 'unauthorized', text: expect.stringContaining('M_UNKNOWN_TOKEN') });
    const other = await connect(hs, gate.token);
    hs.revoke(gate.token);
    expect(await other.ended).toMatchObject({ ended: 'unauthorized' });
  });

  test.each([
    ['a cut', { is: 'cutBefore' as const }],
    ['an error of the server', { is: 'answer' as const, status: 503 }],
    ['an answer of another shape', { is: 'answer' as const, status: 200, body: { next_batch: 7 } }],
  ])('%s is passing', async (_name, fault) => {
    const wire = await connect(hs, gate.token);
    hs.fault(/\/sync$/, fault);
    hs.endPolls();
    expect(await wire.ended).toMatchObject({ ended: 'transient' });
    expect(wire.cursors).toHaveLength(1);
  });

  test('a homeserver that does not answer a poll is left after the time of the poll and 15 seconds', async () => {
    const wire = await connect(hs, gate.token);
    hs.fault(/\/sync$/, { is: 'hang' });
    const before = syncs().length;
    hs.endPolls();
    await expect.poll(() => syncs().length).toBe(before + 1);
    await expect.poll(() => wire.clock.pending()).toBe(1);
    wire.clock.advance(44_999);
    expect(await Promise.race([wire.ended, Promise.resolve('running')])).toBe('running');
    wire.clock.advance(1);
    expect(await wire.ended).toEqual({ ended: 'transient', text: 'No complete answer within 45 s' });
  });

  test('nobody there is passing, and no text has the token', async () => {
    const wire = await connect(hs, gate.token, { homeserver: `http://127.0.0.1:${await freePort()}` });
    const ended = await wire.ended;
    expect(ended).toEqual({ ended: 'transient', text: 'The request failed: ECONNREFUSED' });
    hs.fault(/whoami/, { is: 'answer', status: 500, body: { errcode: 'M_UNKNOWN', error: `bad ${gate.token}\nline` } });
    const other = await connect(hs, gate.token);
    expect(await other.ended).toEqual({ ended: 'transient', text: 'The homeserver answered 500 M_UNKNOWN: bad [token] line' });
  });

  test('each answer is a sign of life, and patience is kept', async () => {
    const room = direct();
    const wire = await connect(hs, gate.token);
    const before = wire.proofs();
    hs.endPolls();
    await expect.poll(wire.proofs).toBe(before + 1);
    hs.fault(/\/sync$/, { is: 'answer', status: 429, headers: { 'retry-after': '7' } });
    await expect.poll(() => hs.polls).toBe(1);
    const asked = syncs().length;
    hs.endPolls();
    await expect.poll(() => syncs().length).toBe(asked + 1);
    await expect.poll(wire.proofs).toBe(before + 3);
    wire.clock.advance(6_999);
    expect(syncs()).toHaveLength(asked + 1);
    wire.clock.advance(1);
    ada.say(room, 'still here');
    await expect.poll(() => texts(wire)).toEqual(['still here']);
  });

  test('a homeserver that does not wait is not asked without a pause', async () => {
    const wire = await connect(hs, gate.token);
    const before = syncs().length;
    hs.fault(/\/sync$/, { is: 'answer', status: 200, body: { next_batch: wire.cursors.at(-1) } }, 100);
    hs.endPolls();
    await expect.poll(() => syncs().length).toBe(before + 2);
    const startedAtMs = wire.clock.monotonic();
    await expect
      .poll(() => {
        wire.clock.advance(100);
        return syncs().length;
      })
      .toBe(before + 5);
    expect(wire.clock.monotonic() - startedAtMs).toBeGreaterThanOrEqual(3_000);
    expect(wire.cursors).toHaveLength(1);
  });

  test('whatever a homeserver answers, the connection ends with a reason', async () => {
    const json = fc.jsonValue({ maxDepth: 4 });
    const room = fc.record({ timeline: json, state: json, summary: json }, { requiredKeys: [] });
    const event = fc.record({
      type: fc.constantFrom('m.room.message', 'm.room.member', 'm.room.redaction'),
      sender: fc.string(),
      event_id: fc.string(),
      content: json,
    });
    const bodies = fc.oneof(
      json,
      fc.record({ next_batch: fc.string(), rooms: fc.record({ join: fc.dictionary(fc.string(), room), invite: fc.dictionary(fc.string(), json) }) }),
      fc.record({
        next_batch: fc.constant('s1'),
        rooms: fc.record({
          join: fc.dictionary(fc.constant('!a:b'), fc.record({ timeline: fc.record({ events: fc.array(fc.oneof(event, json)) }) })),
        }),
      }),
    );
    await fc.assert(
      fc.asyncProperty(bodies, async (body) => {
        hs.fault(/\/sync$/, { is: 'answer', status: 200, body: body as object });
        hs.fault(/\/sync$/, { is: 'answer', status: 503 });
        const wire = open(hs, gate.token, { cursor: 's0' });
        expect(await wire.run(wire.signal)).toMatchObject({ ended: 'transient' });
        // The second is left over when the first has ended it.
        hs.clearFaults();
      }),
      { numRuns: 60 },
    );
  });

  test('a position that the homeserver has forgotten begins again, and the log says what that means', async () => {
    const room = direct();
    const wire = await connect(hs, gate.token);
    await wire.stop();
    hs.forgetPositions();
    ada.say(room, 'lost');
    const second = await connect(hs, gate.token, { cursor: wire.cursors.at(-1) });
    expect(second.warned).toMatchObject([{ text: expect.stringContaining('does not know the stored position') }]);
    ada.say(room, 'new');
    await expect.poll(() => texts(second)).toEqual(['new']);
  });
});

describe('sending', () => {
  test('a text arrives with its markup and pings nobody', async () => {
    const room = direct();
    const { send } = open(hs, gate.token);
    const sent = await send({ conversationId: room, text: 'Hello @ada:fake.test', markup: 'Hello <b>@ada:fake.test</b>' });
    expect(hs.shown(room)).toEqual([
      {
        id: sent.is === 'sent' ? sent.platformId : '',
        sender: gate.userId,
        type: 'm.text',
        body: 'Hello @ada:fake.test',
        html: 'Hello <b>@ada:fake.test</b>',
      },
    ]);
    const wire = await connect(hs, ada.token);
    await send({ conversationId: room, text: 'Ada: hi' });
    await expect.poll(() => wire.received).toMatchObject([{ mentionsUs: false }]);
  });

  test('answers and threads keep their place', async () => {
    const room = direct();
    const root = ada.say(room, 'root');
    const { send } = open(hs, gate.token);
    await send({ conversationId: room, text: 'answer', replyTo: root });
    await send({ conversationId: room, text: 'in thread', threadId: root });
    await send({ conversationId: room, text: 'answer in thread', threadId: root, replyTo: root });
    expect(hs.shown(room).slice(1)).toMatchObject([
      { body: 'answer', replyTo: root },
      { body: 'in thread', thread: root },
      { body: 'answer in thread', thread: root, replyTo: root },
    ]);
    expect(hs.shown(room)[2]).not.toHaveProperty('replyTo');
  });

  test('a repeat with the same key is one message, after a cut and in a new process', async () => {
    const room = direct();
    const wire = open(hs, gate.token);
    hs.fault(/PUT .*\/send\//, { is: 'cutAfter' });
    expect(await wire.send({ conversationId: room, text: 'once' }, 'the key')).toMatchObject({ is: 'ambiguous' });
    const [first] = hs.shown(room);
    expect(await wire.send({ conversationId: room, text: 'once' }, 'the key')).toEqual({ is: 'sent', platformId: first?.id });
    expect(await open(hs, gate.token).send({ conversationId: room, text: 'once' }, 'the key')).toEqual({ is: 'sent', platformId: first?.id });
    expect(await wire.send({ conversationId: room, text: 'once' }, 'another key')).toMatchObject({ is: 'sent' });
    expect(hs.shown(room).map(({ body }) => body)).toEqual(['once', 'once']);
  });

  test.each([
    ['a cut before it acts', { is: 'cutBefore' as const }, { is: 'ambiguous' }],
    ['an error of the server', { is: 'answer' as const, status: 502 }, { is: 'ambiguous' }],
    ['a success without an id', { is: 'answer' as const, status: 200 }, { is: 'ambiguous' }],
    [
      'patience',
      { is: 'answer' as const, status: 429, body: { errcode: 'M_LIMIT_EXCEEDED', retry_after_ms: 1_234 } },
      { is: 'notSent', retryAfterMs: 1_234, scope: 'instance' },
    ],
    ['patience by a header', { is: 'answer' as const, status: 429, headers: { 'retry-after': '2' } }, { is: 'notSent', retryAfterMs: 2_000 }],
    ['a token that is not valid', { is: 'answer' as const, status: 401, body: { errcode: 'M_UNKNOWN_TOKEN' } }, { is: 'notSent' }],
    ['a redirection', { is: 'answer' as const, status: 307, headers: { location: 'http://127.0.0.1:1/' } }, { is: 'notSent' }],
    ['another refusal', { is: 'answer' as const, status: 400, body: { errcode: 'M_BAD_JSON' } }, { is: 'rejected', kind: 'refused' }],
    ['an event that is too large', { is: 'answer' as const, status: 413, body: { errcode: 'M_TOO_LARGE' } }, { is: 'rejected', kind: 'too_long' }],
  ])('evidence of %s', async (_name, fault, result) => {
    const room = direct();
    hs.fault(/PUT .*\/send\//, fault);
    expect(await open(hs, gate.token).send({ conversationId: room })).toMatchObject(result);
    expect(hs.shown(room)).toEqual([]);
  });

  test('refusals of the homeserver have kinds, and nobody there means not sent', async () => {
    const room = ada.createRoom();
    const { send } = open(hs, gate.token);
    expect(await send({ conversationId: room })).toMatchObject({ is: 'rejected', kind: 'forbidden' });
    expect(await send({ conversationId: '!none:fake.test' })).toMatchObject({ is: 'rejected', kind: 'not_found' });
    const away = open(hs, gate.token, { homeserver: `http://127.0.0.1:${await freePort()}` });
    expect(await away.send({ conversationId: room })).toMatchObject({ is: 'notSent' });
    const stopped = new AbortController();
    stopped.abort();
    expect(await send({ conversationId: room }, 'key', stopped.signal)).toMatchObject({ is: 'notSent' });
  });

  test('what hangs is ambiguous after 30 seconds', async () => {
    const room = direct();
    hs.fault(/PUT .*\/send\//, { is: 'hang' });
    const wire = open(hs, gate.token);
    const sent = wire.send({ conversationId: room });
    await expect.poll(() => hs.requests.length).toBe(1);
    wire.clock.advance(30_000);
    expect(await sent).toEqual({ is: 'ambiguous', text: 'No complete answer within 30 s' });
  });

  test('ids that are not ids reach no path', async () => {
    const room = direct();
    const wire = open(hs, gate.token);
    const { signal } = wire;
    for (const conversationId of ['', 'ada', '@ada:fake.test', '!a b', '!a\n:x', `!${'x'.repeat(260)}`, '../account'])
      expect(await wire.send({ conversationId })).toMatchObject({ is: 'rejected', kind: 'target' });
    expect(await wire.send({ conversationId: room, threadId: '../x' })).toMatchObject({ is: 'rejected', kind: 'target' });
    expect(await wire.send({ conversationId: room, replyTo: '$ x' })).toMatchObject({ is: 'rejected', kind: 'target' });
    expect(await wire.send({ conversationId: room, text: '' })).toMatchObject({ is: 'rejected', kind: 'no_text' });
    expect(await wire.adapter.remove?.({ conversationId: room, messageId: '../x' }, { signal })).toMatchObject({ kind: 'invalid' });
    expect(await wire.adapter.typing?.({ conversationId: 'x' }, { signal })).toMatchObject({ kind: 'invalid' });
    expect(hs.requests).toEqual([]);
    // Those that are have characters that mean something in a path.
    expect(await wire.send({ conversationId: '!a/../?#%2e:fake.test' })).toMatchObject({ is: 'rejected', kind: 'not_found' });
    expect(hs.requests[0]?.path).toMatch(/^\/_matrix\/client\/v3\/rooms\/!a\/..\/\?#%2e:fake\.test\/send\/m\.room\.message\/g/);
  });

  test('any place and text has an answer', async () => {
    const { send } = open(hs, gate.token, { homeserver: `http://127.0.0.1:${await freePort()}` });
    const text = fc.string({ unit: 'binary' });
    const id = fc.oneof(
      text,
      fc.tuple(fc.constantFrom('!', '$', '@'), text).map(([sigil, rest]) => `${sigil}${rest}`),
    );
    await fc.assert(
      fc.asyncProperty(id, fc.option(id, { nil: undefined }), text, async (conversationId, threadId, said) => {
        expect((await send({ conversationId, threadId, text: said })).is).toMatch(/^(rejected|notSent)$/);
      }),
      { numRuns: 40 },
    );
  });

  test('a long text loses its markup before it is refused', async () => {
    const room = direct();
    const { send } = open(hs, gate.token);
    const text = 'x'.repeat(16_000);
    expect(await send({ conversationId: room, text, markup: `<p>${'&amp;'.repeat(9_000)}</p>` })).toMatchObject({ is: 'sent' });
    expect(hs.shown(room)).toMatchObject([{ body: text }]);
    expect(hs.shown(room)[0]).not.toHaveProperty('html');
    expect(await send({ conversationId: room, text: 'é'.repeat(31_000) })).toMatchObject({ is: 'rejected', kind: 'too_long' });
  });

  test('a file is uploaded and sent with its caption', async () => {
    const room = direct();
    const wire = open(hs, gate.token);
    const attachment = (kind: 'image' | 'voice', bytes = 3) => ({
      kind,
      name: 'cat.png',
      mediaType: 'image/png',
      bytes,
      read: async () => Buffer.from('PNG'),
    });
    expect(await wire.send({ conversationId: room, text: 'A cat', markup: '<b>A cat</b>', attachment: attachment('image') })).toMatchObject({
      is: 'sent',
    });
    expect(await wire.send({ conversationId: room, text: '', attachment: attachment('voice') })).toMatchObject({ is: 'sent' });
    expect(hs.shown(room)).toMatchObject([
      { type: 'm.image', body: 'A cat', html: '<b>A cat</b>' },
      { type: 'm.audio', body: 'cat.png' },
    ]);
    expect(await wire.send({ conversationId: room, attachment: attachment('image', 1_000_001) })).toMatchObject({
      is: 'rejected',
      kind: 'too_large',
    });
    const broken = { ...attachment('image'), read: () => Promise.reject(new Error('/secret/path')) };
    expect(await wire.send({ conversationId: room, attachment: broken })).toEqual({ is: 'notSent', text: 'The file could not be read' });
    hs.fault(/\/upload/, { is: 'cutAfter' });
    expect(await wire.send({ conversationId: room, attachment: attachment('image') })).toMatchObject({ is: 'notSent' });
    hs.fault(/\/upload/, { is: 'answer', status: 413, body: { errcode: 'M_TOO_LARGE' } });
    expect(await wire.send({ conversationId: room, attachment: attachment('image') })).toMatchObject({ is: 'rejected', kind: 'too_large' });
    hs.fault(/PUT .*\/send\//, { is: 'cutAfter' });
    expect(await wire.send({ conversationId: room, attachment: attachment('image') }, 'file')).toMatchObject({ is: 'ambiguous' });
    expect(await wire.send({ conversationId: room, attachment: attachment('image') }, 'file')).toMatchObject({ is: 'sent' });
    expect(hs.shown(room)).toHaveLength(3);
  });

  test('a homeserver without authenticated media is asked on the older paths', async () => {
    const old = await startWorld({ isOld: true, uploadSize: 10 });
    const room = old.ada.createRoom({ invite: [old.gate.userId] });
    old.gate.join(room);
    const wire = open(old.hs, old.gate.token);
    const attachment = { kind: 'file' as const, name: 'a', mediaType: 'text/plain', bytes: 11, read: async () => Buffer.from('x') };
    expect(await wire.send({ conversationId: room, attachment })).toMatchObject({ is: 'rejected', kind: 'too_large' });
    const file = await wire.adapter.download?.(old.ada.upload(Buffer.from('old'), 'text/plain'), { signal: wire.signal });
    expect(file).toMatchObject({ is: 'opened' });
  });
});
