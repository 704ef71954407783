import { ClientEvent, createClient, type MatrixClient, type MatrixEvent, RoomEvent, RoomMemberEvent } from 'matrix-js-sdk';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type FakeMatrix, startFakeMatrix } from './fake-matrix.ts';
import type { MatrixAccount } from './fake-matrix-people.ts';

let hs: FakeMatrix;
let client: MatrixClient | undefined;
beforeEach(async () => {
  // Some of it is logged past the logger that it gets.
  for (const level of ['log', 'debug', 'info'] as const) vi.spyOn(console, level).mockImplementation(() => {});
  hs = await startFakeMatrix();
});
afterEach(async () => {
  vi.restoreAllMocks();
  client?.stopClient();
  await hs[Symbol.asyncDispose]();
});

const silent = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, getChild: () => silent };

/** The client library of others, signed in. */
async function connect({ userId, token }: MatrixAccount) {
  const sdk = createClient({ baseUrl: hs.url, accessToken: token, userId, deviceId: 'DGATE', logger: silent });
  client = sdk;
  const heard: string[] = [];
  const seen = (event: MatrixEvent) => {
    if (event.getType() === 'm.room.message') heard.push(`${event.getSender()} ${String(event.getContent()['body'])}`);
  };
  sdk.on(RoomEvent.Timeline, (event, _room, isOld) => void (isOld === true || seen(event)));
  const invited: string[] = [];
  sdk.on(RoomMemberEvent.Membership, (_event, member) => void (member.userId === userId && invited.push(String(member.membership))));
  const synced = new Promise<void>((resolve) => sdk.on(ClientEvent.Sync, (state) => void (state === 'PREPARED' && resolve())));
  await sdk.startClient({ initialSyncLimit: 10 });
  await synced;
  return { sdk, heard, invited };
}

test('the client library of others connects, is invited, receives, sends, edits, reacts and deletes', async () => {
  const [gate, ada] = [hs.account('gate', 'Gate'), hs.account('ada', 'Ada')];
  const { sdk, heard, invited } = await connect(gate);
  const room = ada.createRoom({ name: 'Lab', invite: [gate.userId] });
  await expect.poll(() => invited).toEqual(['invite']);
  await sdk.joinRoom(room);
  await expect.poll(() => sdk.getRoom(room)?.getMyMembership()).toBe('join');
  const said = ada.say(room, 'hello');
  await expect.poll(() => heard).toEqual(['@ada:fake.test hello']);
  expect(sdk.getRoom(room)?.name).toBe('Lab');
  const { event_id: id } = await sdk.sendTextMessage(room, 'answer');
  expect(hs.shown(room)).toMatchObject([
    { id: said, body: 'hello' },
    { id, sender: gate.userId, body: 'answer' },
  ]);
  const relation = { rel_type: 'm.annotation', event_id: said, key: '👍' } as const;
  await sdk.sendEvent(room, 'm.reaction' as never, { 'm.relates_to': relation } as never);
  expect(hs.shown(room)[0]?.reactions).toEqual(['👍 @gate:fake.test']);
  await sdk.redactEvent(room, id);
  expect(hs.shown(room)).toHaveLength(1);
  ada.edit(room, said, 'hello again');
  await expect.poll(() => heard.at(-1)).toBe('@ada:fake.test * hello again');
  // What it asks for in addition is answered as by a homeserver that does not offer it.
  expect(hs.unknown.filter((path) => !path.includes('unstable'))).toEqual([]);
});

test('the same transaction of the same device is one event', async () => {
  const [gate, ada] = [hs.account('gate'), hs.account('ada')];
  const room = ada.createRoom({ invite: [gate.userId] });
  const { sdk } = await connect(gate);
  await sdk.joinRoom(room);
  const send = () => sdk.sendMessage(room, { msgtype: 'm.text' as never, body: 'once' }, 'txn1');
  const first = await send();
  const again = await fetch(`${hs.url}/_matrix/client/v3/rooms/${encodeURIComponent(room)}/send/m.room.message/txn1`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${gate.token}` },
    body: JSON.stringify({ msgtype: 'm.text', body: 'once' }),
  });
  expect(await again.json()).toEqual(first);
  expect(hs.shown(room)).toHaveLength(1);
});

test('refusals reach the client library as it knows them', async () => {
  const [gate, ada] = [hs.account('gate'), hs.account('ada')];
  const { sdk } = await connect(gate);
  const closed = ada.createRoom();
  await expect(sdk.joinRoom(closed)).rejects.toMatchObject({ errcode: 'M_FORBIDDEN', httpStatus: 403 });
  await expect(sdk.getStateEvent(closed, 'm.room.topic', '')).rejects.toMatchObject({ errcode: 'M_FORBIDDEN' });
  await expect(sdk.getProfileInfo('@nobody:fake.test')).rejects.toMatchObject({ errcode: 'M_NOT_FOUND', httpStatus: 404 });
  hs.fault(/whoami/, { is: 'answer', status: 429, body: { errcode: 'M_LIMIT_EXCEEDED', error: 'Too Many Requests', retry_after_ms: 5 } });
  await expect(sdk.whoami()).rejects.toMatchObject({ errcode: 'M_LIMIT_EXCEEDED', httpStatus: 429 });
  hs.revoke(gate.token);
  await expect(sdk.whoami()).rejects.toMatchObject({ errcode: 'M_UNKNOWN_TOKEN', httpStatus: 401 });
});
