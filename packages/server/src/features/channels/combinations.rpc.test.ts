import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createStepClock,
  type FakeTelegram,
  startFakeTelegram,
  startTestServer,
  type StepClock,
  type TestServer,
  type TestServerOptions,
} from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { mortal } from './testing/mortal-db.ts';

const ada = { id: 1001, first_name: 'Ada' };
const bob = { id: 1002, first_name: 'Bob' };

let telegram: FakeTelegram;
let clock: StepClock;
let homeDir: string;
let server: TestServer;
let made = 0;
beforeEach(async () => {
  made = 0;
  clock = createStepClock();
  telegram = await startFakeTelegram({ now: () => clock.now() });
  homeDir = mkdtempSync(join(tmpdir(), 'gatehouse-combinations-'));
});
afterEach(async () => {
  await stop();
  await telegram[Symbol.asyncDispose]();
  rmSync(homeDir, { recursive: true, force: true });
});

async function start({ config, ...options }: TestServerOptions = {}): Promise<void> {
  const bot = { type: 'telegram' as const, token: telegram.token, apiUrl: telegram.url, owners: [String(ada.id)], dm: { policy: 'open' as const } };
  server = await startTestServer({
    clock,
    homeDir,
    provider: { answer: () => ({ text: `Answer ${(made += 1)}.` }) },
    ...options,
    config: { gateway: { drainTimeoutMs: 20 }, agents: { default: { model: 'mock/mock-fast' } }, channels: { bot }, ...config },
  });
  await connected();
}
const connected = () => later(async () => (await server.client.call('channels.get', { channel_type: 'telegram' })).state).toBe('healthy');
/** Lets time pass while the server stops. */
async function stop(): Promise<void> {
  let isStopped = false;
  const done = () => (isStopped = true);
  const stopped = server[Symbol.asyncDispose]().then(done, done);
  await later(() => isStopped).toBe(true);
  await stopped;
}
const later = <T>(read: () => T) =>
  expect.poll(() => {
    clock.advance(1_000);
    return read();
  });
const said = (to = ada) => telegram.chats.said(to.id).map(({ text }) => text);
const states = async () => (await server.client.call('delivery.list', { channel_instance_id: 'bot' })).deliveries.map(({ state }) => state);
const alerts = async () => (await server.client.call('inbox.list', {})).messages.map(({ text }) => text);
const set = (path: string, value: unknown) => server.client.call('config.patch', { path, value, confirm: true });
/** A message whose answer arrives, and whose confirmation does not. */
async function hang(): Promise<void> {
  const before = said().length;
  telegram.fail('sendMessage', 'hangAfter');
  telegram.chats.say(ada, 'hello');
  await expect.poll(() => said().length).toBe(before + 1);
}

test('an edit of the configuration while an answer is sent leaves it unknown, once, and the next is sent with the new one', async () => {
  await start();
  await hang();
  const edited = set('channels.bot.typing', false);
  await later(states).toEqual(['unknown']);
  await edited;
  await connected();
  telegram.chats.say(ada, 'and now?');
  await later(said).toEqual(['Answer 1.', 'Answer 2.']);
  expect(await alerts()).toEqual([expect.stringContaining('may have been sent')]);
});

test('a channel that is taken out of the configuration while it sends leaves an unknown answer, which a resend does not send elsewhere', async () => {
  await start();
  await hang();
  const removed = set('channels.bot', null);
  await later(states).toEqual(['unknown']);
  await removed;
  expect(await alerts()).toEqual([expect.stringContaining('may have been sent')]);
  const [left] = (await server.client.call('delivery.list', {})).deliveries.filter(({ state }) => state === 'unknown');
  await server.client.call('delivery.resend', { deliveryId: left?.deliveryId ?? '' });
  expect(await states()).toEqual(['pending']);
  clock.advance(60 * 60_000 + 1_000);
  await later(states).toEqual(['expired']);
  expect(said()).toEqual(['Answer 1.']);
});

test('a resent answer that a process dies at is unknown again, and is announced again', async () => {
  await start();
  await hang();
  clock.advance(60_000);
  await later(states).toEqual(['unknown']);
  await stop();
  const dying = mortal('delivery.begin', true);
  await start({ db: dying.wrap });
  const [left] = (await server.client.call('delivery.list', { state: 'unknown' })).deliveries;
  await server.client.call('delivery.resend', { deliveryId: left?.deliveryId ?? '' });
  await dying.died;
  await stop();
  await start();
  await later(states).toEqual(['unknown']);
  expect(await alerts()).toHaveLength(2);
  await server.client.call('delivery.resend', { deliveryId: left?.deliveryId ?? '' });
  await later(states).toEqual(['accepted']);
  expect(said()).toEqual(['Answer 1.', 'Answer 1.']);
});

test('who is removed while an answer is sent gets nothing more, also by a resend', async () => {
  await start();
  await hang();
  telegram.chats.say(ada, 'one more');
  await later(async () => (await states()).length).toBe(2);
  const removed = Promise.all([set('channels.bot.dm.policy', 'disabled'), set('channels.bot.owners', [])]);
  await later(async () => (await states()).toSorted()).toEqual(['rejected', 'unknown']);
  await removed;
  const [left] = (await server.client.call('delivery.list', { state: 'unknown' })).deliveries;
  await server.client.call('delivery.resend', { deliveryId: left?.deliveryId ?? '' });
  await later(states).toEqual(['rejected', 'rejected']);
  expect(said()).toEqual(['Answer 1.']);
});

test('a clock that is set back or forward delays no answer, and repeats none', async () => {
  await start();
  telegram.fail('sendMessage', { code: 429, description: '', retryAfter: 20 });
  telegram.chats.say(ada, 'hello');
  await expect.poll(() => telegram.callsOf('sendMessage').some(({ status }) => status === 429)).toBe(true);
  clock.step(-2 * 60 * 60_000);
  await later(() => said().length).toBe(1);
  clock.step(4 * 60 * 60_000);
  telegram.chats.say(bob, 'me, too');
  await later(() => said(bob).length).toBe(1);
  expect(said()).toHaveLength(1);
});

test('an answer that a budget ends names the limit to the owner, and no figures to others', async () => {
  await start({ config: { agents: { default: { model: 'mock/mock-fast', budgets: { perDayTokens: 1 } } } } });
  telegram.chats.say(bob, 'hello');
  telegram.chats.say(ada, 'hello');
  await later(() => said(bob).length).toBe(1);
  await later(() => said().length).toBe(1);
  expect(said()).toEqual([expect.stringContaining('perDayTokens of 1 tokens')]);
  expect(said(bob)).toEqual(['(I could not finish: what this agent may use is used up for now)']);
});
