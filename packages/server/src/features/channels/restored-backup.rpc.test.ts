import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  copyHome,
  createStepClock,
  type FakeTelegram,
  startFakeTelegram,
  startTestServer,
  type StepClock,
  type TestServer,
} from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';

const minuteMs = 60_000;
const ada = { id: 1001, first_name: 'Ada' };
const eve = { id: 1002, first_name: 'Eve' };

let telegram: FakeTelegram;
let clock: StepClock;
let folder: string;
let server: TestServer;
beforeEach(async () => {
  clock = createStepClock();
  telegram = await startFakeTelegram({ now: () => clock.now() });
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-restored-'));
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await telegram[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function start(homeDir: string): Promise<void> {
  const bot = { type: 'telegram' as const, token: telegram.token, apiUrl: telegram.url, dm: { policy: 'open' as const } };
  server = await startTestServer({
    clock,
    homeDir,
    provider: { answer: () => ({ text: 'Hello.' }) },
    config: { agents: { default: { model: 'mock/mock-fast' } }, channels: { bot } },
  });
  await expect.poll(async () => (await server.client.call('channels.get', { channel_type: 'telegram' })).state).toBe('healthy');
}
const said = (person: { readonly id: number }) => telegram.chats.said(person.id).map(({ text }) => text);
const states = async () =>
  (await server.client.call('delivery.list', { channel_instance_id: 'bot' })).deliveries.map(({ endpoint, state }) => [
    endpoint.conversationId,
    state,
  ]);

/** Makes a copy at a moment at which one answer waits to be sent and one may have been sent; the waiting one is sent after it. */
async function backUp(): Promise<string> {
  const [home, copy] = [join(folder, 'home'), join(folder, 'copy')];
  await start(home);
  telegram.limit(ada.id, 120);
  telegram.chats.say(ada, 'hello');
  await expect.poll(() => telegram.callsOf('sendMessage').map(({ status }) => status)).toEqual([429]);
  await expect.poll(states).toEqual([[String(ada.id), 'pending']]);
  telegram.fail('sendMessage', 'hangAfter');
  telegram.chats.say(eve, 'hello');
  await expect.poll(states).toEqual([
    [String(eve.id), 'sending'],
    [String(ada.id), 'pending'],
  ]);
  await copyHome(home, copy);
  await expect
    .poll(() => {
      clock.advance(5_000);
      return said(ada);
    })
    .toEqual(['Hello.']);
  await server[Symbol.asyncDispose]();
  return copy;
}

test('what waited in a restored backup is not sent when its time is over, and what may have been sent is parked', async () => {
  const copy = await backUp();
  clock.advance(60 * minuteMs);
  await start(copy);
  await expect.poll(states).toEqual([
    [String(eve.id), 'unknown'],
    [String(ada.id), 'expired'],
  ]);
  expect([said(ada), said(eve)]).toEqual([['Hello.'], ['Hello.']]);
  const alerts = (await server.client.call('inbox.list', {})).messages.map(({ text }) => text);
  expect(alerts.toSorted()).toEqual([expect.stringContaining('may have been sent'), expect.stringContaining('could not be sent in time')]);
});

test('within its time it is sent by the restored daemon, once: what the first daemon did after the backup is not known', async () => {
  const copy = await backUp();
  await start(copy);
  await expect
    .poll(() => {
      clock.advance(5_000);
      return said(ada);
    })
    .toEqual(['Hello.', 'Hello.']);
  await server[Symbol.asyncDispose]();
  await start(copy);
  clock.advance(minuteMs);
  await expect.poll(states).toEqual([
    [String(eve.id), 'unknown'],
    [String(ada.id), 'accepted'],
  ]);
  expect([said(ada), said(eve)]).toEqual([['Hello.', 'Hello.'], ['Hello.']]);
});
