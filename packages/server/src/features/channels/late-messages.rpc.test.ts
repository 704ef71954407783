import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, type FakeTelegram, startFakeTelegram, startTestServer, type StepClock, type TestServer } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';

const hourMs = 3_600_000;
const ada = { id: 1001, first_name: 'Ada' };
const eve = { id: 1002, first_name: 'Eve' };

let telegram: FakeTelegram;
let clock: StepClock;
let homeDir: string;
let server: TestServer;
let asked: string[];
beforeEach(async () => {
  clock = createStepClock(Date.parse('2026-11-27T08:00:00Z'));
  telegram = await startFakeTelegram({ now: () => clock.now() });
  homeDir = mkdtempSync(join(tmpdir(), 'gatehouse-late-'));
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await telegram[Symbol.asyncDispose]();
  rmSync(homeDir, { recursive: true, force: true });
});

async function start(): Promise<void> {
  const bot = { type: 'telegram' as const, token: telegram.token, apiUrl: telegram.url, owners: [String(ada.id)], dm: { policy: 'open' as const } };
  server = await startTestServer({ clock, homeDir, config: { agents: { default: { model: 'mock/mock-fast' } }, channels: { bot } } });
  await expect.poll(async () => (await server.client.call('channels.get', { channel_type: 'telegram' })).state).toBe('healthy');
  asked = [];
  server.provider.setAnswer(({ body }) => {
    const { content } = (body as { readonly messages: readonly { readonly content: unknown }[] }).messages.at(-1) ?? { content: '' };
    asked.push(typeof content === 'string' ? content : JSON.stringify(content));
    return { text: `Answer ${asked.length}` };
  });
}
const said = (chat: number) => telegram.chats.said(chat).map(({ text }) => text);
const later = <T>(read: () => T) =>
  expect.poll(() => {
    clock.advance(1_000);
    return read();
  });

test('what people wrote while the channel was away is answered once for each of them, with what they write now', async () => {
  await start();
  await server[Symbol.asyncDispose]();
  telegram.chats.say(ada, 'buy milk');
  clock.advance(hourMs);
  telegram.chats.say(eve, 'is anybody there?');
  telegram.chats.say(ada, 'no, buy bread');
  clock.advance(3 * hourMs);
  telegram.chats.say(ada, 'hello?');
  await start();
  await later(() => [...said(ada.id), ...said(eve.id)].toSorted()).toEqual(['Answer 1', 'Answer 2']);
  const [own, other] = asked.toSorted((a, b) => Number(a.includes('anybody')) - Number(b.includes('anybody')));
  expect(own).toContain(
    '[3 messages that come late. Answer them together, as things are now.]\n\n[2026-11-27 08:00 UTC] buy milk\n\n[2026-11-27 09:00 UTC] no, buy bread\n\n[2026-11-27 12:00 UTC] hello?',
  );
  expect(other).toContain('[This message comes late. Answer it as things are now.]\n\n[2026-11-27 09:00 UTC] is anybody there?');
  telegram.chats.say(ada, 'thanks');
  await later(() => said(ada.id).length).toBe(2);
  expect(asked.at(-1)).toBe('thanks');
  const { messages } = await server.client.call('channels.messages', {});
  expect(messages.map(({ text, verdict }) => `${text} ${verdict}`)).toHaveLength(5);
});

test('pending late messages survive a restart, and commands among them are carried out alone', async () => {
  await start();
  await server[Symbol.asyncDispose]();
  telegram.chats.say(ada, 'one');
  telegram.chats.say(ada, '/status');
  telegram.chats.say(ada, 'two');
  clock.advance(3 * hourMs);
  await start();
  await expect.poll(() => said(ada.id)).toEqual([expect.stringContaining('default')]);
  expect(asked).toEqual([]);
  await server[Symbol.asyncDispose]();
  await start();
  await later(() => said(ada.id).length).toBe(2);
  expect(asked).toEqual([expect.stringMatching(/^\[2 messages that come late.*one\n\n.*two$/s)]);
});
