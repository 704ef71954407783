import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FakeSlack, startFakeSlack, startTestServer, type TestServer, type TestServerOptions } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Db } from '../../kernel/db/db.ts';

let slack: FakeSlack;
let homeDir: string;
let ada: string;
const servers: TestServer[] = [];
beforeEach(async () => {
  slack = await startFakeSlack();
  homeDir = mkdtempSync(join(tmpdir(), 'gatehouse-slack-'));
  ada = slack.person('Ada');
});
afterEach(async () => {
  for (const server of servers.splice(0)) await server[Symbol.asyncDispose]();
  await slack[Symbol.asyncDispose]();
  rmSync(homeDir, { recursive: true, force: true });
});

type Channels = NonNullable<NonNullable<TestServerOptions['config']>['channels']>;
type SlackChannel = Extract<Channels[string], { readonly type: 'slack' }>;

async function start(more: Partial<SlackChannel> = {}, options: TestServerOptions = {}): Promise<TestServer> {
  const { apiUrl, appToken, botToken } = slack;
  const work: SlackChannel = { type: 'slack', apiUrl, appToken, botToken, ...more };
  const server = await startTestServer({ homeDir, ...options, config: { agents: { default: { model: 'mock/mock-fast' } }, channels: { work } } });
  servers.push(server);
  await expect.poll(async () => (await server.client.call('channels.get', { channel_type: 'slack' })).state).toBe('healthy');
  return server;
}
const texts = (channel: string, threadTs?: string) => slack.seen(channel, threadTs).map(({ from, text }) => `${from}: ${text}`);

test('a stranger gets a code in the direct conversation, is approved with it, and is answered from then on', async () => {
  const server = await start();
  server.provider.setAnswer(() => ({ text: 'Hello & <welcome>' }));
  const im = slack.im(ada);
  slack.write(ada, im, 'hello');
  await expect.poll(() => texts(im)).toEqual(['Ada: hello', expect.stringMatching(/^gate: .*code.*: [A-Z2-9]{8}$/)]);
  const code = texts(im)[1]?.slice(-8) ?? '';
  expect(await server.client.call('channels.pair', { code, person: 'ada' })).toMatchObject({ senderName: 'Ada', senderId: ada, state: 'approved' });
  await expect.poll(() => texts(im).at(-1)).toContain('You are approved');
  slack.write(ada, im, 'what is new?');
  await expect.poll(() => texts(im).at(-1)).toBe('gate: Hello & <welcome>');
  expect(slack.seen(im).flatMap(({ notified }) => notified)).toEqual([]);
  const { messages } = await server.client.call('channels.messages', {});
  expect(messages.map(({ verdict, state }) => [verdict, state])).toEqual([
    ['turn', 'done'],
    ['pairing', null],
  ]);
  await expect.poll(() => slack.unacknowledged).toBe(0);
});

test('a mention in a channel is answered there, one in a thread in the thread', async () => {
  const server = await start();
  server.provider.setAnswer(() => ({ text: 'Here.' }));
  const lab = slack.channel('lab', 'channel', [ada]);
  const root = slack.write(ada, lab, 'nobody in particular');
  slack.write(ada, lab, '<@UBOT00001> are you there?');
  await expect.poll(() => texts(lab).at(-1)).toBe('gate: Here.');
  slack.write(ada, lab, '<@UBOT00001> and here?', { threadTs: root });
  await expect.poll(() => texts(lab, root)).toEqual(['Ada: nobody in particular', 'Ada: <@UBOT00001> and here?', 'gate: Here.']);
  // A further message of the thread is for us.
  slack.write(ada, lab, 'thank you', { threadTs: root });
  await expect.poll(() => texts(lab, root).length).toBe(5);
  expect(texts(lab)).toHaveLength(3);
  // One mention is two events and one message.
  expect((await server.client.call('channels.messages', {})).messages.filter(({ verdict }) => verdict === 'turn')).toHaveLength(3);
});

test('what was written while the daemon was away is answered once by the next one', async () => {
  const first = await start({ dm: { policy: 'open' } });
  first.provider.setAnswer(() => ({ text: 'One.' }));
  const im = slack.im(ada);
  slack.write(ada, im, 'one');
  await expect.poll(() => texts(im)).toEqual(['Ada: one', 'gate: One.']);
  await servers.pop()?.[Symbol.asyncDispose]();
  expect(slack.open).toBe(0);
  slack.write(ada, im, 'two');
  const second = await start({ dm: { policy: 'open' } }, { provider: { answer: () => ({ text: 'Two.' }) } });
  await expect.poll(() => texts(im)).toEqual(['Ada: one', 'gate: One.', 'Ada: two', 'gate: Two.']);
  // Slack sends again what nobody acknowledged, whatever the history has shown before.
  slack.repeat();
  await expect.poll(() => slack.unacknowledged).toBe(0);
  expect((await second.client.call('channels.messages', {})).messages).toHaveLength(2);
  expect(await second.client.call('delivery.queue.status', {})).toMatchObject({ delivered: 2, pending: 0, unknown: 0 });
  expect(texts(im)).toHaveLength(4);
});

test('an envelope is acknowledged only after the commit of its message', async () => {
  const committing = Promise.withResolvers<void>();
  let asked = 0;
  const wrap = (db: Db): Db => ({
    ...db,
    read: (one, input) => db.read(one, input),
    telemetry: (one, input) => db.telemetry(one, input),
    async write(one, input) {
      if (one.name === 'channels.accept') {
        asked += 1;
        await committing.promise;
      }
      return db.write(one, input);
    },
    [Symbol.asyncDispose]: () => db[Symbol.asyncDispose](),
  });
  const server = await start({}, { db: wrap });
  slack.write(ada, slack.im(ada), 'hello');
  await expect.poll(() => asked).toBe(1);
  slack.repeat();
  // What is sent over the connection afterwards is handled, so an acknowledgement would have come.
  const { pongs } = slack;
  slack.ping();
  await expect.poll(() => slack.pongs).toBeGreaterThan(pongs);
  expect(slack.acknowledged).toEqual([]);
  committing.resolve();
  await expect.poll(() => slack.unacknowledged).toBe(0);
  expect((await server.client.call('channels.messages', {})).messages).toHaveLength(1);
});

test('a send that is limited or cut is not doubled', async () => {
  const server = await start({ dm: { policy: 'open' } });
  server.provider.setAnswer(() => ({ text: 'Once.' }));
  const im = slack.im(ada);
  slack.fault('chat.postMessage', { is: 'limited', seconds: 0 }, { is: 'cutAfter' });
  slack.write(ada, im, 'hello');
  await expect.poll(() => texts(im)).toEqual(['Ada: hello', 'gate: Once.']);
  await expect.poll(async () => (await server.client.call('delivery.list', {})).deliveries.map(({ state }) => state)).toEqual(['accepted']);
  expect(slack.callsOf('chat.postMessage')).toHaveLength(2);
  expect(texts(im)).toHaveLength(2);
});

test('a refused account is shown, and its tokens are in no answer', async () => {
  const { apiUrl, appToken } = slack;
  const server = await startTestServer({
    homeDir,
    config: { agents: { default: { model: 'mock/mock-fast' } }, channels: { work: { type: 'slack', apiUrl, appToken, botToken: 'xoxb-SECRET' } } },
  });
  servers.push(server);
  const health = async () => (await server.client.call('channels.health', {})).channels.at(-1);
  await expect.poll(async () => (await health())?.state).toBe('unauthorized');
  expect(await health()).toMatchObject({ error: 'Slack refused: invalid_auth', connectionMode: 'socket' });
  expect(JSON.stringify([await health(), await server.client.call('config.read', {})])).not.toContain('xoxb-SECRET');
  expect(await server.client.call('channels.capabilities', { channel_type: 'slack' })).toMatchObject({ sendKey: 'lookup', threading: 'native' });
});
