import {
  type FakeMedia,
  type FakeTelegram,
  silentWav,
  soundOf,
  startFakeMedia,
  startFakeTelegram,
  startTestServer,
  type TelegramPerson,
  type TestServer,
  type TestServerOptions,
} from '@gatehouse/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';

type Config = NonNullable<TestServerOptions['config']>;
const ada: TelegramPerson = { id: 1001, first_name: 'Ada' };
const note = { file: { kind: 'voice', name: 'voice.ogg', type: 'audio/ogg', bytes: soundOf('opus') } } as const;

let fake: FakeMedia;
let telegram: FakeTelegram;
let server: TestServer;
beforeAll(async () => {
  fake = await startFakeMedia();
});
afterAll(() => fake[Symbol.asyncDispose]());
beforeEach(async () => {
  fake.requests.splice(0);
  telegram = await startFakeTelegram();
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await telegram[Symbol.asyncDispose]();
});

async function start(config: Config, owners: readonly string[] = []): Promise<void> {
  server = await startTestServer({
    config: {
      agents: { default: { model: 'mock/mock-fast' } },
      media: { transcription: { providers: [{ type: 'groq', apiKey: 'k', baseUrl: `${fake.url}/v1` }] } },
      ...config,
      channels: { bot: { type: 'telegram', token: telegram.token, apiUrl: telegram.url, dm: { policy: 'open' }, owners: [...owners] } },
    },
  });
  await expect.poll(async () => (await server.client.call('channels.get', { channel_type: 'telegram' })).state).toBe('healthy');
}
const speaking = (autoMode: 'always' | 'never' | 'voice_reply' | 'tagged'): Config => ({
  tts: { autoMode, providers: [{ type: 'openai', apiKey: 'k', baseUrl: `${fake.url}/v1` }] },
});
const said = () => telegram.chats.said(ada.id);
const asked = (nth: number): string =>
  JSON.stringify((server.provider.requests[nth]?.body as { readonly messages: readonly unknown[] } | undefined)?.messages.at(-1));

test('a voice note is read to the agent, fenced as the message of a guest, and answered in the same way', async () => {
  await start(speaking('voice_reply'));
  server.provider.setAnswer(() => ({ text: 'It is **sunny**.' }));
  telegram.chats.say(ada, '', note);
  await expect.poll(() => said().map(({ text, file }) => file?.kind ?? text)).toEqual(['It is sunny.', 'voice']);
  expect(asked(0)).toMatch(/UNTRUSTED-TEXT [0-9a-f]{32} source=\\"telegram message.*\[Voice note, transcribed\] Hello from the recording\./);
  expect(fake.requests.map(({ path }) => path)).toEqual(['/v1/audio/transcriptions', '/v1/audio/speech']);
  // Marks of the text are not read out, and Telegram plays Opus.
  expect(fake.requests[1]?.json).toMatchObject({ input: 'It is sunny.', response_format: 'opus' });
  telegram.chats.say(ada, 'and tomorrow?');
  await expect.poll(() => said()).toHaveLength(3);
  expect(fake.requests).toHaveLength(2);
  const { rows } = await server.client.call('usage.report', { groupBy: ['operation'] });
  expect(rows.map(({ keys }) => keys[0]).sort()).toEqual(['interactive', 'speech', 'transcription']);
});

test('the voice of an owner is the owner’s word; a recording that an owner sends is not', async () => {
  await start({}, ['1001']);
  telegram.chats.say(ada, '', note);
  await expect.poll(() => server.provider.requests.length).toBe(1);
  expect(asked(0)).toContain('[Voice note, transcribed] Hello from the recording.');
  expect(asked(0)).not.toMatch(/UNTRUSTED-TEXT [0-9a-f]{32}/);
  await expect.poll(() => said()).toHaveLength(1);
  telegram.chats.say(ada, 'what is this?', { file: { kind: 'audio', name: 'talk.wav', type: 'audio/wav', bytes: silentWav(1) } });
  await expect.poll(() => server.provider.requests.length).toBe(2);
  expect(asked(1)).toMatch(/what is this\?.*UNTRUSTED-TEXT [0-9a-f]{32} source=\\"recording.*Hello from the recording/);
});

test('what cannot be heard or spoken is said, and the message is answered nevertheless', async () => {
  await start(speaking('always'));
  fake.queue({ status: 500, json: { error: { message: 'broken' } } }, { status: 500, json: { error: { message: 'broken' } } });
  server.provider.setAnswer(() => ({ text: 'Please write.' }));
  telegram.chats.say(ada, '', note);
  await expect.poll(() => said().map(({ text }) => text)).toEqual(['Please write.']);
  expect(asked(0)).toContain('was not understood: The provider failed (server)');
  expect(fake.requests.map(({ path }) => path)).toEqual(['/v1/audio/transcriptions', '/v1/audio/speech']);
});

test('a voice note beyond the hourly cap reaches the agent with the reason and the recording, and is answered', async () => {
  await start({ media: { transcription: { providers: [{ type: 'groq', apiKey: 'k', baseUrl: `${fake.url}/v1` }], maxPerHour: 1 } } });
  server.provider.setAnswer(() => ({ text: 'Noted.' }));
  telegram.chats.say(ada, '', note);
  await expect.poll(() => said()).toHaveLength(1);
  telegram.chats.say(ada, 'listen', note);
  await expect.poll(() => said().map(({ text }) => text)).toEqual(['Noted.', 'Noted.']);
  expect(asked(1)).toMatch(
    /listen.*The recording \\"voice\.ogg\\" \(md_[\w.-]+\) was not understood: Rate limit exceeded: max 1 recordings per hour \(media\.transcription\.maxPerHour\); the next one in 60 min/,
  );
  expect(fake.requests).toHaveLength(1);
});

test('a voice note for an agent that was suspended meanwhile is transcribed when the agent is resumed', async () => {
  await start({});
  const held = Promise.withResolvers<void>();
  fake.queue({ after: held.promise, json: { text: 'First.', duration: 1 } });
  const accepted = server.heard('channel:message');
  telegram.chats.say(ada, '', note);
  await expect.poll(() => fake.requests.length).toBe(1);
  telegram.chats.say(ada, '', note);
  await expect.poll(() => accepted).toHaveLength(2);
  await server.client.call('agents.suspend', { agentId: 'default' });
  held.resolve();
  for (let n = 0; n < 200; n += 1) await server.client.call('agents.list', {});
  await server.client.call('agents.resume', { agentId: 'default' });
  await expect.poll(said).toHaveLength(2);
  expect(fake.requests).toHaveLength(2);
  const both = `${asked(0)}${asked(1)}`;
  for (const text of ['First.', 'Hello from the recording.']) expect(both).toContain(text);
});

test('directives of the agent never reach the chat', async () => {
  await start(speaking('tagged'));
  server.provider.setAnswer(() => ({ text: '[[tts:voice=nova]]Good morning.' }));
  telegram.chats.say(ada, 'hello');
  await expect.poll(() => said().map(({ text, file }) => file?.kind ?? text)).toEqual(['Good morning.', 'voice']);
  expect(fake.requests[0]?.json).toMatchObject({ voice: 'nova', input: 'Good morning.' });
});
