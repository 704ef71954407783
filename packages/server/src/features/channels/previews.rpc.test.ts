import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createStepClock,
  type FakeTelegram,
  startFakeTelegram,
  startTestServer,
  type StepClock,
  type TelegramPerson,
  type TestServer,
} from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';

const ada: TelegramPerson = { id: 1001, first_name: 'Ada' };

let homeDir: string;
let telegram: FakeTelegram;
let clock: StepClock;
let server: TestServer;
let rest: PromiseWithResolvers<void>;
beforeEach(async () => {
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-previews-'));
  telegram = await startFakeTelegram();
  clock = createStepClock();
  await start();
  await expect.poll(stateOf).toBe('healthy');
});
afterEach(async () => {
  rest.resolve();
  await server[Symbol.asyncDispose]();
  await telegram[Symbol.asyncDispose]();
  await rm(homeDir, { recursive: true });
});

async function start(): Promise<void> {
  const bot = {
    type: 'telegram' as const,
    token: telegram.token,
    apiUrl: telegram.url,
    dm: { policy: 'open' as const },
    streaming: 'edits' as const,
  };
  server = await startTestServer({
    homeDir,
    clock,
    config: { gateway: { drainTimeoutMs: 20 }, agents: { default: { model: 'mock/mock-fast' } }, channels: { bot } },
  });
  rest = Promise.withResolvers();
  const { promise } = rest;
  server.provider.setAnswer(() => ({
    text: ['The first half', ' and the second.'],
    beforeDelta: (nth) => (nth === 0 ? Promise.resolve() : promise),
  }));
}
const stateOf = async () => (await server.client.call('channels.get', { channel_type: 'telegram' })).state;
const said = () => telegram.chats.said(ada.id).map(({ text }) => text);
const settled = (holds: () => unknown) => expect.poll(() => (clock.advance(500), holds()));
async function beginPreview(): Promise<void> {
  telegram.chats.say(ada, 'hello');
  await settled(said).toEqual(['The first half …']);
}

/** Lets time pass while the server stops. */
async function stop(): Promise<void> {
  let isStopped = false;
  const stopped = server[Symbol.asyncDispose]().then(() => (isStopped = true));
  await settled(() => isStopped).toBe(true);
  await stopped;
}

test('an agent that is suspended leaves no unfinished preview', async () => {
  await beginPreview();
  await server.client.call('agents.suspend', { agentId: 'default' });
  await settled(said).toEqual([expect.stringMatching(/^The first half\n\(I could not finish: .*suspended/)]);
});

test('a preview that nothing can find is named in the answer that is sent next to it', async () => {
  telegram.fail('sendMessage', 'cutAfter');
  await beginPreview();
  rest.resolve();
  await settled(said).toEqual(['The first half …', expect.stringMatching(/^\(A message above may show [^]*\n\nThe first half and the second\.$/)]);
});

test('the edit that finishes a preview is repeated by the next process when the first died at it', async () => {
  await beginPreview();
  telegram.fail('editMessageText', 'hang');
  rest.resolve();
  await settled(async () => (await server.client.call('delivery.list', {})).deliveries[0]?.state).toBe('sending');
  await stop();
  await start();
  await settled(async () => (await server.client.call('delivery.list', {})).deliveries[0]?.state).toBe('accepted');
  expect(said()).toEqual(['The first half and the second.']);
});

test('the next process finishes a preview, also when its turn runs before the channel is connected', async () => {
  await beginPreview();
  await settled(async () => (await server.client.call('channels.messages', {})).messages[0]?.state).toBe('running');
  await stop();
  telegram.fail('getMe', { code: 502, description: 'Bad Gateway' });
  await start();
  rest.resolve();
  await expect.poll(async () => (await server.client.call('delivery.list', {})).deliveries.length).toBe(1);
  expect(await stateOf()).not.toBe('healthy');
  await settled(stateOf).toBe('healthy');
  await settled(async () => (await server.client.call('delivery.list', {})).deliveries[0]?.state).toBe('accepted');
  expect(said()).toEqual(['The first half and the second.']);
});
