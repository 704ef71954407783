import type { FakeMatrix, MatrixAccount } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import * as z from 'zod';
import { matrixKeys } from './config.ts';
import { matrix } from './platform.ts';
import { closeAll, open, startWorld, type Wire } from './testing.ts';

let hs: FakeMatrix;
let gate: MatrixAccount;
let ada: MatrixAccount;
let eve: MatrixAccount;
let room: string;
let wire: Wire;
beforeEach(async () => {
  ({ hs, gate, ada, eve } = await startWorld());
  room = ada.createRoom({ invite: [gate.userId, eve.userId] });
  gate.join(room);
  eve.join(room);
  wire = open(hs, gate.token);
});
afterEach(closeAll);

const at = (messageId: string) => ({ conversationId: room, messageId });
const withSignal = () => ({ signal: wire.signal });
const act = (name: string, params: Readonly<Record<string, unknown>> = {}, conversationId = room) =>
  wire.adapter.action?.(name, params, { conversationId }, withSignal());
async function sent(text = 'hi'): Promise<string> {
  const result = await wire.send({ conversationId: room, text });
  return result.is === 'sent' ? (result.platformId ?? '') : '';
}

test('a message is changed and deleted', async () => {
  const id = await sent('frist');
  expect(await wire.adapter.edit?.(at(id), { text: 'first', markup: '<b>first</b>' }, withSignal())).toEqual({ is: 'done', value: {} });
  expect(hs.shown(room)).toMatchObject([{ id, body: 'first', html: '<b>first</b>', isEdited: true }]);
  expect(await wire.adapter.edit?.(at(id), { text: '' }, withSignal())).toMatchObject({ is: 'failed', kind: 'invalid' });
  expect(await wire.adapter.remove?.(at(id), withSignal())).toEqual({ is: 'done', value: {} });
  expect(hs.shown(room)).toEqual([]);
  const other = ada.say(room, 'not ours');
  expect(await wire.adapter.remove?.(at(other), withSignal())).toMatchObject({ is: 'failed', kind: 'denied' });
  expect(await wire.adapter.remove?.(at('$none'), withSignal())).toMatchObject({ is: 'failed', kind: 'not_found' });
});

test.each([
  ['a cut', { is: 'cutAfter' as const }, { kind: 'ambiguous' }],
  ['an error of the server', { is: 'answer' as const, status: 500 }, { kind: 'ambiguous' }],
  ['patience', { is: 'answer' as const, status: 429, body: { retry_after_ms: 900 } }, { kind: 'rate_limited', retryAfterMs: 900 }],
  ['a token that is not valid', { is: 'answer' as const, status: 401 }, { kind: 'unavailable' }],
])('a call that fails by %s is not repeated', async (_name, fault, failed) => {
  const id = await sent();
  const before = hs.requests.length;
  hs.fault(/\/redact\//, fault);
  expect(await wire.adapter.remove?.(at(id), withSignal())).toMatchObject({ is: 'failed', ...failed });
  expect(hs.requests).toHaveLength(before + 1);
});

test('a reaction is added once, and removed by the process that added it or by another one', async () => {
  const id = ada.say(room, 'hello');
  const { adapter } = wire;
  for (let n = 0; n < 2; n += 1) expect(await adapter.react?.(at(id), '👀', withSignal())).toMatchObject({ is: 'done' });
  await adapter.react?.(at(id), '✅', withSignal());
  eve.send(room, 'm.reaction', { 'm.relates_to': { rel_type: 'm.annotation', event_id: id, key: '👀' } });
  expect(hs.shown(room)[0]?.reactions).toEqual(['👀 @gate:fake.test', '✅ @gate:fake.test', '👀 @eve:fake.test']);
  expect(await adapter.unreact?.(at(id), '👀', withSignal())).toMatchObject({ is: 'done' });
  expect(hs.shown(room)[0]?.reactions).toEqual(['✅ @gate:fake.test', '👀 @eve:fake.test']);
  const other = open(hs, gate.token);
  expect(await other.adapter.unreact?.(at(id), '✅', withSignal())).toMatchObject({ is: 'done' });
  expect(hs.shown(room)[0]?.reactions).toEqual(['👀 @eve:fake.test']);
  expect(await other.adapter.unreact?.(at(id), '✅', withSignal())).toMatchObject({ is: 'failed', kind: 'not_found' });
  expect(await other.adapter.react?.(at(id), '', withSignal())).toMatchObject({ is: 'failed', kind: 'invalid' });
});

test('typing is shown, as a call and as an action', async () => {
  expect(await wire.adapter.typing?.({ conversationId: room }, withSignal())).toMatchObject({ is: 'done' });
  expect(await act('sendTyping')).toEqual({ is: 'done', value: { typing: true, roomId: room } });
  expect(hs.typing).toEqual([`${gate.userId} ${room}`, `${gate.userId} ${room}`]);
});

test('history is read from the newest on, with later versions and without what is deleted', async () => {
  const ids = ['one', 'two', 'three'].map((text) => ada.say(room, text));
  ada.edit(room, ids[1] ?? '', 'zwei');
  ada.redact(room, ids[0] ?? '');
  await sent('four');
  const read = async (limit: number, before?: string, threadId?: string) => {
    const result = await wire.adapter.fetch?.({ conversationId: room, threadId }, { ...withSignal(), limit, before });
    return result?.is === 'done' ? result.value.map(({ text, senderId }) => `${senderId} ${text}`) : result;
  };
  expect(await read(10)).toEqual(['@gate:fake.test four', '@ada:fake.test three', '@ada:fake.test zwei']);
  expect(await read(1)).toEqual(['@gate:fake.test four']);
  expect(await read(10, ids[2])).toEqual(['@ada:fake.test zwei']);
  const root = ids[2] ?? '';
  const thread = ['a', 'b'].map((text) => eve.say(room, text, { 'm.relates_to': { rel_type: 'm.thread', event_id: root } }));
  expect(await read(10, undefined, root)).toEqual(['@eve:fake.test b', '@eve:fake.test a']);
  expect(await read(10, thread[1], root)).toEqual(['@eve:fake.test a']);
  for (let n = 0; n < 130; n += 1) ada.say(room, `${n}`);
  expect(await read(120)).toHaveLength(120);
  expect(await read(1, '$none')).toMatchObject({ is: 'failed', kind: 'not_found' });
  expect(await read(1, 'x')).toMatchObject({ is: 'failed', kind: 'invalid' });
});

test('actions on a room need the power for them', async () => {
  expect(await act('kick', { user_id: eve.userId })).toMatchObject({ is: 'failed', kind: 'denied' });
  ada.promote(room, gate.userId);
  expect(await act('set_topic', { topic: 'Tea' })).toEqual({ is: 'done', value: { topicSet: true, roomId: room } });
  expect(await act('kick', { user_id: eve.userId, reason: 'rude' })).toEqual({
    is: 'done',
    value: { kicked: true, roomId: room, userId: eve.userId },
  });
  expect([hs.topic(room), hs.members(room)[eve.userId], hs.reason(room, eve.userId)]).toEqual(['Tea', 'leave', 'rude']);
  expect(await act('invite', { user_id: eve.userId })).toEqual({ is: 'done', value: { invited: true, roomId: room, userId: eve.userId } });
  expect(await act('ban', { user_id: eve.userId })).toEqual({ is: 'done', value: { banned: true, roomId: room, userId: eve.userId } });
  expect(hs.members(room)[eve.userId]).toBe('ban');
  expect(await act('leave', { reason: 'bye' })).toEqual({ is: 'done', value: { left: true, roomId: room } });
  expect(hs.members(room)[gate.userId]).toBe('leave');
});

test('a room is joined by its id or alias', async () => {
  const lab = eve.createRoom({ isPublic: true, alias: 'lab' });
  const closed = eve.createRoom();
  expect(await act('join', { room_id_or_alias: '#lab:fake.test' })).toEqual({ is: 'done', value: { joined: true, roomId: lab } });
  expect(hs.members(lab)[gate.userId]).toBe('join');
  expect(await act('join', { room_id_or_alias: closed })).toMatchObject({ is: 'failed', kind: 'denied' });
  expect(await act('join', { room_id_or_alias: '../x' })).toMatchObject({ is: 'failed', kind: 'invalid' });
  expect(await act('invite', { user_id: 'eve' })).toMatchObject({ is: 'failed', kind: 'invalid' });
  expect(await act('leave', {}, 'lab')).toMatchObject({ is: 'failed', kind: 'invalid' });
  expect(await act('dance')).toEqual({ is: 'failed', kind: 'invalid', text: 'Unsupported action: dance on matrix' });
  expect(matrix.capabilities.actions).toEqual(['join', 'leave', 'invite', 'kick', 'ban', 'set_topic', 'sendTyping']);
});

test.each([
  ['https://matrix.example.org', true],
  ['https://example.org/matrix/', true],
  ['http://127.0.0.1:8008', true],
  ['http://[::1]:8008', true],
  ['http://10.1.2.3', true],
  ['http://localhost:8008', true],
  ['http://matrix.example.org', false],
  ['http://93.184.216.34', false],
  ['https://ada:secret@example.org', false],
  ['https://example.org/?x=1', false],
  ['ftp://example.org', false],
  ['matrix.example.org', false],
])('the address %s is permitted: %s', (homeserver, isPermitted) => {
  expect(z.strictObject(matrixKeys()).safeParse({ homeserver, accessToken: 'x' }).success).toBe(isPermitted);
});

test('by default anybody may write directly, and nobody gets the account into groups', () => {
  const keys = z.strictObject(matrixKeys());
  expect(keys.parse({ homeserver: 'https://x.test', accessToken: 'x' }).joinInvitesFrom).toEqual({ direct: ['*'], groups: [] });
  const withList = (groups: readonly string[]) => ({ homeserver: 'https://x.test', accessToken: 'x', joinInvitesFrom: { groups } });
  expect(keys.safeParse(withList(['@ada:x.test', '*:x.test', '*'])).success).toBe(true);
  for (const bad of ['ada', '@ada', '*.x.test', '*:a/b']) expect(keys.safeParse(withList([bad])).success).toBe(false);
});
