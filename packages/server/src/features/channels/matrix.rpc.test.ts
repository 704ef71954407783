import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FakeMatrix, type MatrixAccount, startFakeMatrix, startTestServer, type TestServer, type TestServerOptions } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';

type Channels = NonNullable<NonNullable<TestServerOptions['config']>['channels']>;
type MatrixInstance = Extract<Channels[string], { readonly type: 'matrix' }>;

let hs: FakeMatrix;
let gate: MatrixAccount;
let ada: MatrixAccount;
let homeDir: string;
let server: TestServer | undefined;
beforeEach(async () => {
  hs = await startFakeMatrix();
  [gate, ada] = [hs.account('gate', 'Gate'), hs.account('ada', 'Ada')];
  homeDir = mkdtempSync(join(tmpdir(), 'gatehouse-matrix-'));
});
afterEach(async () => {
  await stop();
  await hs[Symbol.asyncDispose]();
  rmSync(homeDir, { recursive: true, force: true });
});

type Answer = NonNullable<NonNullable<TestServerOptions['provider']>['answer']>;
const say =
  (text: string): Answer =>
  () => ({ text });

/** Starts the daemon with an answer of the model; what waits is answered at once. */
async function start(answer: Answer, more: Partial<MatrixInstance> = {}): Promise<TestServer> {
  const home = { type: 'matrix' as const, homeserver: hs.url, accessToken: gate.token, ...more };
  const config = { agents: { default: { model: 'mock/mock-fast' } }, channels: { home } };
  const started = await startTestServer({ homeDir, config, provider: { answer } });
  server = started;
  await expect.poll(async () => (await started.client.call('channels.get', { channel_type: 'matrix' })).state).toBe('healthy');
  return started;
}
async function stop(): Promise<void> {
  const running = server;
  server = undefined;
  await running?.[Symbol.asyncDispose]();
}

/** Answers with how many messages of people the conversation has. */
const count: Answer = ({ body }) => {
  const { messages } = body as { readonly messages: readonly { readonly role: string }[] };
  return { text: `Heard ${messages.filter(({ role }) => role === 'user').length}.` };
};

/** A room with ada to which she has invited us, once we are in it. */
async function direct(): Promise<string> {
  const room = ada.createRoom({ invite: [gate.userId], isDirect: true });
  await expect.poll(() => hs.members(room)[gate.userId]).toBe('join');
  return room;
}
const answers = (room: string) =>
  hs
    .shown(room)
    .filter(({ sender }) => sender === gate.userId)
    .map(({ body }) => body);

test('a stranger invites it, gets a code, is approved with it, and is answered', async () => {
  const { client, provider } = await start(say('Second line'));
  const room = await direct();
  ada.say(room, 'hello');
  await expect.poll(() => answers(room)).toEqual([expect.stringMatching(/code.*: [A-Z2-9]{8}$/)]);
  expect(provider.served()).toBe(0);
  const code = answers(room)[0]?.slice(-8) ?? '';
  expect(await client.call('channels.pair', { code, person: 'ada' })).toMatchObject({ senderId: '@ada:fake.test', senderName: 'Ada' });
  await expect.poll(() => answers(room).at(-1)).toContain('You are approved');
  ada.say(room, 'what is new?');
  await expect.poll(() => answers(room).at(-1)).toContain('Second line');
  expect(hs.shown(room).at(-1)).toMatchObject({ type: 'm.text' });
  expect(hs.typing).toContain(`${gate.userId} ${room}`);
  const { messages } = await client.call('channels.messages', {});
  expect(messages.map(({ verdict, endpoint }) => [verdict, endpoint.conversationKind, endpoint.conversationId])).toEqual([
    ['turn', 'direct', room],
    ['pairing', 'direct', room],
  ]);
});

test('what is written while it is stopped is answered after the start, once', async () => {
  await start(count, { dm: { policy: 'open' } });
  const room = await direct();
  ada.say(room, 'one');
  await expect.poll(() => answers(room)).toEqual(['Heard 1.']);
  await stop();
  ada.say(room, 'two');
  const again = await start(count, { dm: { policy: 'open' } });
  await expect.poll(() => answers(room)).toEqual(['Heard 1.', 'Heard 2.']);
  ada.say(room, 'three');
  await expect.poll(() => answers(room)).toEqual(['Heard 1.', 'Heard 2.', 'Heard 3.']);
  expect((await again.client.call('channels.messages', {})).total).toBe(3);
});

test('an answer whose confirmation is lost is sent again, and people see it once', async () => {
  const { client } = await start(say('Once.'), { dm: { policy: 'open' } });
  const room = await direct();
  const sends = () => hs.requests.filter(({ path }) => path.includes('/send/m.room.message/')).map(({ path }) => path);
  hs.fault(/PUT .*\/send\/m\.room\.message/, { is: 'cutAfter' });
  ada.say(room, 'hello');
  await expect.poll(() => answers(room)).toEqual(['Once.']);
  await expect.poll(() => client.call('delivery.queue.status', { channel_type: 'matrix' })).toMatchObject({ delivered: 1, pending: 0, unknown: 0 });
  expect(sends()).toHaveLength(2);
  expect(new Set(sends()).size).toBe(1);
  expect(answers(room)).toEqual(['Once.']);
});

test('in a room it answers those who name it, and keeps a thread apart', async () => {
  const started = await start(count, { joinInvitesFrom: { groups: ['*:fake.test'] } });
  const eve = hs.account('eve', 'Eve');
  const room = ada.createRoom({ name: 'Lab', invite: [gate.userId, eve.userId] });
  eve.join(room);
  await expect.poll(() => hs.members(room)[gate.userId]).toBe('join');
  ada.say(room, 'nobody in particular');
  const root = eve.say(room, 'Gate: are you there?', { 'm.mentions': { user_ids: [gate.userId] } });
  await expect.poll(() => answers(room)).toEqual(['Heard 1.']);
  const inThread = { 'm.relates_to': { rel_type: 'm.thread', event_id: root } };
  ada.say(room, 'Gate, in the thread', inThread);
  await expect.poll(() => answers(room)).toHaveLength(2);
  expect(hs.shown(room).at(-1)).toMatchObject({ sender: gate.userId, thread: root, body: 'Heard 1.' });
  ada.say(room, 'hey gate, in the room');
  await expect.poll(() => answers(room)).toEqual(['Heard 1.', 'Heard 1.', 'Heard 2.']);
  const { channels } = await started.client.call('channels.health', {});
  expect(channels.find(({ channelInstanceId }) => channelInstanceId === 'home')).toMatchObject({ state: 'healthy', dropped: { unmentioned: 1 } });
});

test('a file reaches the agent, and one that is gone is named', async () => {
  const { client, provider } = await start(say('Seen.'), { dm: { policy: 'open' } });
  const room = await direct();
  const url = ada.upload(Buffer.from('two lines\nof a note'), 'text/plain');
  ada.say(room, 'read this', { msgtype: 'm.file', filename: 'note.txt', url, info: { mimetype: 'text/plain', size: 20 } });
  await expect.poll(() => answers(room)).toEqual(['Seen.']);
  expect(JSON.stringify(provider.requests.at(-1)?.body)).toContain('note.txt');
  ada.say(room, 'gone.txt', { msgtype: 'm.file', url: 'mxc://fake.test/none' });
  await expect.poll(() => answers(room)).toEqual(['Seen.', 'Seen.']);
  expect(JSON.stringify(provider.requests.at(-1)?.body)).toMatch(/gone\.txt.{0,5} is not shown/);
  expect((await client.call('channels.messages', {})).messages.map(({ state }) => state)).toEqual(['done', 'done']);
});

test('a token that is revoked stops the channel with the reason', async () => {
  const { client } = await start(say(''));
  hs.revoke(gate.token);
  const record = () =>
    client.call('channels.health', {}).then(({ channels }) => channels.find(({ channelInstanceId }) => channelInstanceId === 'home'));
  await expect.poll(record).toMatchObject({ state: 'unauthorized', error: expect.stringContaining('M_UNKNOWN_TOKEN'), retryAt: null });
});

test('an answer is shown while it is written, and becomes one message', async () => {
  const rest = Promise.withResolvers<void>();
  const text = ['Hello '.repeat(50), 'and ', 'the end.'];
  await start(() => ({ text, beforeDelta: (nth) => (nth === 0 ? Promise.resolve() : rest.promise) }), { dm: { policy: 'open' }, streaming: 'edits' });
  const room = await direct();
  ada.say(room, 'a long one');
  await expect.poll(() => answers(room)).toEqual([expect.stringContaining('Hello Hello')]);
  expect(answers(room)[0]).not.toContain('the end');
  rest.resolve();
  await expect.poll(() => answers(room)).toEqual([expect.stringMatching(/Hello and the end\.$/)]);
  expect(hs.shown(room).at(-1)).toMatchObject({ isEdited: true });
});
