import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, type FakeTelegram, startFakeTelegram, startTestServer, type StepClock, type TestServer } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';

const ada = { id: 1001, first_name: 'Ada' };

let telegram: FakeTelegram;
let clock: StepClock;
let homeDir: string;
let server: TestServer | undefined;
const media = () => join(homeDir, 'media');
beforeEach(async ({ skip }) => {
  clock = createStepClock();
  homeDir = mkdtempSync(join(tmpdir(), 'gatehouse-full-disk-'));
  mkdirSync(media(), { mode: 0o700 });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k,mode=700', 'tmpfs', media()], { stdio: 'ignore' });
  } catch {
    skip('mount is not allowed here');
  }
  telegram = await startFakeTelegram({ now: () => clock.now() });
});
afterEach(async () => {
  await server?.[Symbol.asyncDispose]();
  await telegram?.[Symbol.asyncDispose]();
  try {
    execFileSync('umount', [media()], { stdio: 'ignore' });
  } catch {
    // Not mounted.
  }
  rmSync(homeDir, { recursive: true, force: true });
});

const files = () => readdirSync(media()).filter((name) => !name.startsWith('lost'));
const said = () => telegram.chats.said(ada.id).map(({ text }) => text);
const later = <T>(read: () => T) =>
  expect.poll(() => {
    clock.advance(1_000);
    return read();
  });

test('a file that the disk has no space for is tried again, then named to the agent, and nothing of it is kept', async () => {
  const asked: string[] = [];
  const bot = { type: 'telegram' as const, token: telegram.token, apiUrl: telegram.url, dm: { policy: 'open' as const } };
  server = await startTestServer({
    clock,
    homeDir,
    config: { storage: { minFreeBytes: 0 }, agents: { default: { model: 'mock/mock-fast' } }, channels: { bot } },
  });
  server.provider.setAnswer(({ body }) => {
    asked.push(JSON.stringify((body as { readonly messages: readonly unknown[] }).messages.at(-1)));
    return { text: 'Read.' };
  });
  await expect.poll(async () => (await server?.client.call('channels.get', { channel_type: 'telegram' }))?.state).toBe('healthy');
  const before = files();
  const tries = () => telegram.callsOf('getFile').length;
  telegram.chats.say(ada, 'keep this', { file: { kind: 'document', name: 'big.txt', type: 'text/plain', bytes: Buffer.alloc(400_000, 'x') } });
  await expect.poll(tries).toBe(1);
  await later(tries).toBe(2);
  await expect.poll(files).toEqual(before);
  expect(asked).toEqual([]);
  await later(said).toEqual(['Read.']);
  expect(tries()).toBe(5);
  expect(asked).toHaveLength(1);
  expect(asked[0]).toContain('keep this');
  expect(asked[0]).toMatch(/The file \\"big\.txt\\" is not shown: The media file could not be stored: the disk is full or rejects writes/);
  expect(files()).toEqual(before);
  // A file that there is space for is not affected.
  telegram.chats.say(ada, 'and this', { file: { kind: 'document', name: 'small.txt', type: 'text/plain', bytes: Buffer.from('Meet at ten.') } });
  await later(() => said().length).toBe(2);
  expect(asked[1]).toContain('Meet at ten.');
});

test('a file whose disk has space again is fetched by a later try', async () => {
  const bot = { type: 'telegram' as const, token: telegram.token, apiUrl: telegram.url, dm: { policy: 'open' as const } };
  server = await startTestServer({
    clock,
    homeDir,
    provider: { answer: ({ body }) => ({ text: JSON.stringify(body).includes('Meet at ten.') ? 'Seen.' : 'Not seen.' }) },
    config: { storage: { minFreeBytes: 0 }, agents: { default: { model: 'mock/mock-fast' } }, channels: { bot } },
  });
  await expect.poll(async () => (await server?.client.call('channels.get', { channel_type: 'telegram' }))?.state).toBe('healthy');
  const text = `Meet at ten.${' '.repeat(60_000)}`;
  writeFileSync(join(media(), '.filler'), Buffer.alloc(220_000));
  telegram.chats.say(ada, 'when?', { file: { kind: 'document', name: 'plan.txt', type: 'text/plain', bytes: Buffer.from(text) } });
  await later(() => telegram.callsOf('getFile').length).toBe(2);
  rmSync(join(media(), '.filler'));
  await later(said).toEqual(['Seen.']);
});
