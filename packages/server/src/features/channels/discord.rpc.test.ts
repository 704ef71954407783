import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FakeDiscord, startFakeDiscord, startTestServer, type TestServer, type TestServerOptions } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';

type Channels = NonNullable<NonNullable<TestServerOptions['config']>['channels']>;
type DiscordConfig = Extract<Channels[string], { type: 'discord' }>;

let fake: FakeDiscord;
let server: TestServer;
let homeDir: string;
beforeEach(async () => {
  fake = await startFakeDiscord();
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-discord-'));
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await fake[Symbol.asyncDispose]();
  await rm(homeDir, { recursive: true });
});

const start = async (more: Partial<DiscordConfig> = {}) => {
  const lab = { type: 'discord' as const, token: fake.token, apiUrl: fake.apiUrl, ...more };
  server = await startTestServer({ homeDir, config: { agents: { default: { model: 'mock/mock-fast' } }, channels: { lab } } });
  await expect.poll(stateOf).toBe('healthy');
};
const stateOf = async () => (await server.client.call('channels.get', { channel_type: 'discord' })).state;
const contentsOf = (channel: Parameters<FakeDiscord['shown']>[0]) => () => fake.shown(channel).map(({ author, content }) => `${author}: ${content}`);
/** Answers with the number of messages that the conversation has. */
const count = () =>
  server.provider.setAnswer(({ body }) => {
    const { messages } = body as { readonly messages: readonly { readonly role: string }[] };
    return { text: `Heard ${messages.filter(({ role }) => role === 'user').length}.` };
  });

test('a stranger gets a code, is approved with it, and is answered, also what was written while the daemon was away', async () => {
  await start();
  count();
  const ada = fake.person('ada');
  const direct = fake.directChannel(ada);
  fake.write(ada, direct, 'hello');
  await expect.poll(contentsOf(direct)).toEqual(['ada: hello', expect.stringMatching(/^gate: .*code.*: [A-Z2-9]{8}$/)]);
  const code = fake.shown(direct)[1]?.content.slice(-8) ?? '';
  expect(await server.client.call('channels.pair', { code, person: 'ada' })).toMatchObject({ state: 'approved', senderName: 'ada' });
  await expect.poll(contentsOf(direct)).toHaveLength(3);
  fake.write(ada, direct, 'what is new?');
  await expect.poll(() => contentsOf(direct)().at(-1)).toBe('gate: Heard 1.');
  await server[Symbol.asyncDispose]();
  fake.write(ada, direct, 'while you were away');
  await start();
  count();
  await expect.poll(() => contentsOf(direct)().slice(-2)).toEqual(['ada: while you were away', 'gate: Heard 2.']);
  expect(fake.gateway.log.at(-1)).toMatch(/^resume/);
  // Once more, and this time the session is gone, too.
  await server[Symbol.asyncDispose]();
  fake.write(ada, direct, 'and again');
  fake.gateway.forgetSessions();
  await start();
  count();
  await expect.poll(() => contentsOf(direct)().slice(-2)).toEqual(['ada: and again', 'gate: Heard 3.']);
  expect(fake.gateway.log.at(-1)).toMatch(/^identify/);
  expect((await server.client.call('channels.messages', {})).total).toBe(4);
  expect(contentsOf(direct)()).toHaveLength(9);
});

test('an answer whose confirmation was lost is sent again with its key, and seen once', async () => {
  await start({ dm: { policy: 'open' } });
  server.provider.setAnswer(() => ({ text: 'Once.' }));
  const ada = fake.person('ada');
  const direct = fake.directChannel(ada);
  fake.rest.fail(/POST .*messages/, 'cutAfter');
  fake.write(ada, direct, 'a question');
  await expect
    .poll(() => server.client.call('delivery.queue.status', { channel_type: 'discord' }))
    .toMatchObject({ delivered: 1, pending: 0, unknown: 0 });
  expect(contentsOf(direct)()).toEqual(['ada: a question', 'gate: Once.']);
  const sends = fake.rest.requests.filter(({ method, path }) => method === 'POST' && path.endsWith('/messages'));
  expect(sends).toHaveLength(2);
  expect(sends[0]?.body).toEqual(sends[1]?.body);
});

test('in a guild it answers mentions, where they are, and keeps threads apart', async () => {
  const ada = fake.person('ada');
  const channel = fake.channel(fake.guild('guild'), 'general');
  await start();
  count();
  const thread = fake.thread(channel, 'side');
  const say = (where: typeof channel, text: string) => fake.write(ada, where, `<@${fake.bot.id}> ${text}`, { mentionsBot: true });
  fake.write(ada, channel, 'nobody in particular');
  say(channel, 'one');
  await expect.poll(() => contentsOf(channel)().at(-1)).toBe('gate: Heard 1.');
  say(thread, 'in the thread');
  await expect.poll(() => contentsOf(thread)().at(-1)).toBe('gate: Heard 1.');
  say(channel, 'two');
  await expect.poll(() => contentsOf(channel)().at(-1)).toBe('gate: Heard 2.');
  const { messages } = await server.client.call('channels.messages', {});
  expect(messages.map(({ text, endpoint }) => [text, endpoint.conversationId, endpoint.threadId])).toEqual([
    ['two', channel.id, undefined],
    ['in the thread', channel.id, thread.id],
    ['one', channel.id, undefined],
  ]);
  const { channels } = await server.client.call('channels.health', {});
  expect(channels.at(-1)).toMatchObject({ state: 'healthy', account: 'gate', dropped: { unmentioned: 1 } });
});

test('the agent gets a file of a message', async () => {
  await start({ dm: { policy: 'open' } });
  const asked: string[] = [];
  server.provider.setAnswer(({ body }) => {
    asked.push(JSON.stringify(body));
    return { text: 'Read.' };
  });
  const ada = fake.person('ada');
  const direct = fake.directChannel(ada);
  fake.write(ada, direct, 'read this', { files: [{ name: 'note.txt', type: 'text/plain', data: Buffer.from('the secret of the note') }] });
  await expect.poll(() => contentsOf(direct)().at(-1)).toBe('gate: Read.');
  expect(asked[0]).toContain('note.txt');
});

test('a token that is refused stops the channel, and is in no message', async () => {
  const lab = { type: 'discord' as const, token: 'a-wrong-token', apiUrl: fake.apiUrl };
  server = await startTestServer({ homeDir, config: { agents: { default: { model: 'mock/mock-fast' } }, channels: { lab } } });
  await expect.poll(stateOf).toBe('unauthorized');
  const health = await server.client.call('channels.health', {});
  expect(health.channels.at(-1)?.error).toContain('refuses the token (401)');
  expect(JSON.stringify(health)).not.toContain('a-wrong-token');
});
