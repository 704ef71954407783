import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type FakeDiscord,
  type FakeTelegram,
  startFakeDiscord,
  startFakeTelegram,
  startTestServer,
  type TelegramPerson,
  type TestServer,
  type TestServerOptions,
} from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';

type Channels = NonNullable<NonNullable<TestServerOptions['config']>['channels']>;

const ada: TelegramPerson = { id: 1001, first_name: 'Ada' };

let homeDir: string;
const open: AsyncDisposable[] = [];
beforeEach(async () => {
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-replaced-'));
});
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one[Symbol.asyncDispose]();
  await rm(homeDir, { recursive: true });
});

async function fakeTelegram(token?: string): Promise<FakeTelegram> {
  const fake = await startFakeTelegram(token === undefined ? {} : { token });
  open.push(fake);
  return fake;
}
async function start(bot: Channels[string]): Promise<TestServer> {
  const server = await startTestServer({ homeDir, config: { agents: { default: { model: 'mock/mock-fast' } }, channels: { bot } } });
  open.push(server);
  server.provider.setAnswer(() => ({ text: 'Heard.' }));
  await expect.poll(async () => (await server.client.call('channels.get', { channel_type: bot.type })).state).toBe('healthy');
  return server;
}
async function stop(server: TestServer): Promise<void> {
  open.splice(open.indexOf(server), 1);
  await server[Symbol.asyncDispose]();
}
const telegramOf = (fake: FakeTelegram): Channels[string] => ({
  type: 'telegram',
  token: fake.token,
  apiUrl: fake.url,
  dm: { policy: 'open' },
});

test('another bot under the same name gets all of its messages', async () => {
  const first = await fakeTelegram();
  const before = await start(telegramOf(first));
  for (const text of ['one', 'two', 'three']) first.chats.say(ada, text);
  await expect.poll(() => first.chats.said(ada.id).length).toBe(3);
  await stop(before);
  const second = await fakeTelegram('5151:another_bot');
  second.chats.say(ada, 'hello, other bot');
  await start(telegramOf(second));
  second.chats.say(ada, 'and again');
  await expect.poll(() => second.chats.said(ada.id).length).toBe(2);
});

test('what waits for a platform is not sent to another one under the same name', async () => {
  const telegram = await fakeTelegram();
  const discord: FakeDiscord = await startFakeDiscord();
  open.push(discord);
  const before = await start(telegramOf(telegram));
  const held = Promise.withResolvers<void>();
  before.provider.setAnswer(() => ({ text: 'For Ada', after: held.promise }));
  telegram.chats.say(ada, 'hello');
  await expect.poll(() => before.provider.served()).toBe(1);
  await before.client.call('channels.disable', { channel_type: 'telegram' });
  held.resolve();
  await expect.poll(async () => (await before.client.call('delivery.list', { channel_instance_id: 'bot' })).deliveries[0]?.state).toBe('pending');
  await stop(before);
  const { client } = await start({ type: 'discord', token: discord.token, apiUrl: discord.apiUrl });
  await expect
    .poll(async () => (await client.call('delivery.list', { channel_instance_id: 'bot' })).deliveries)
    .toMatchObject([{ state: 'rejected', errorKind: 'replaced', endpoint: { channelType: 'telegram' } }]);
  expect((await client.call('inbox.list', {})).messages).toMatchObject([{ level: 'alert', text: expect.stringContaining('was not sent') }]);
});
