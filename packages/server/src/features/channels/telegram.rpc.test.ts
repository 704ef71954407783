import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createStepClock,
  type FakeTelegram,
  startFakeTelegram,
  startTestServer,
  type TelegramPerson,
  type TestServer,
  type TestServerOptions,
} from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';

type Channels = NonNullable<NonNullable<TestServerOptions['config']>['channels']>;
type Telegram = Extract<Channels[string], { readonly type: 'telegram' }>;

const ada: TelegramPerson = { id: 1001, first_name: 'Ada' };
const eve: TelegramPerson = { id: 1002, first_name: 'Eve' };
const group = -100_200_300_400;

let telegram: FakeTelegram;
let server: TestServer;
beforeEach(async () => {
  telegram = await startFakeTelegram();
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await telegram[Symbol.asyncDispose]();
});

async function start(more: Partial<Telegram> = {}, options: TestServerOptions = {}): Promise<TestServer> {
  const bot: Telegram = { type: 'telegram', token: telegram.token, apiUrl: telegram.url, ...more };
  server = await startTestServer({ ...options, config: { agents: { default: { model: 'mock/mock-fast' } }, channels: { bot } } });
  await expect.poll(stateOf).toBe('healthy');
  return server;
}
const stateOf = async () => (await server.client.call('channels.get', { channel_type: 'telegram' })).state;
const healthOf = async () => (await server.client.call('channels.health', {})).channels.at(-1);
const open = { dm: { policy: 'open' as const } };
const said = (chat = ada.id) => telegram.chats.said(chat).map(({ text }) => text);
const textOf = (body: unknown): string => JSON.stringify((body as { readonly messages: readonly unknown[] }).messages.at(-1));

test('a stranger gets a code, is approved with it, and is answered from then on', async () => {
  await start();
  server.provider.setAnswer(() => ({ text: '1 < 2 & <b>3</b>' }));
  telegram.chats.say(ada, 'hello');
  await expect.poll(() => said()).toEqual([expect.stringMatching(/code.*: [A-Z2-9]{8}$/)]);
  const code = said()[0]?.slice(-8) ?? '';
  expect(await server.client.call('channels.pair', { code, person: 'ada' })).toMatchObject({
    senderId: '1001',
    senderName: 'Ada',
    state: 'approved',
  });
  await expect.poll(() => said().at(-1)).toContain('You are approved');
  telegram.chats.say(ada, 'what is new?');
  await expect.poll(() => said().at(-1)).toBe('1 < 2 & <b>3</b>');
  expect(await healthOf()).toMatchObject({ channelType: 'telegram', connectionMode: 'poll', state: 'healthy', lastCheckedAt: expect.any(Number) });
});

test('an agent sends files of its workspace, and none of a repository or of the daemon', async () => {
  const bot: Telegram = { type: 'telegram', token: telegram.token, apiUrl: telegram.url, owners: [String(ada.id)] };
  const approvals = { rules: [{ tools: ['message'], action: 'auto' as const }] };
  const agents = { default: { model: 'mock/mock-fast', tools: { profile: 'messaging' as const } } };
  server = await startTestServer({ config: { agents, approvals, channels: { bot } } });
  await expect.poll(stateOf).toBe('healthy');
  const workspace = join(server.homeDir, 'workspaces', 'default');
  for (const folder of ['.gatehouse/offload', 'notes/.git']) mkdirSync(join(workspace, folder), { recursive: true });
  // The result of somebody else's turn, and the settings of a repository, which name its remotes with their keys.
  const hidden = [`.gatehouse/offload/${'a'.repeat(16)}-${'b'.repeat(16)}-x1.txt`, 'notes/.git/config'];
  for (const path of ['report.txt', ...hidden]) writeFileSync(join(workspace, path), path);
  const calls = ['report.txt', ...hidden].map((file) => ({
    toolCalls: [{ id: `call_${file.length}`, name: 'message', arguments: JSON.stringify({ action: 'send', file }) }],
  }));
  server.provider.setAnswer(() => calls.shift() ?? { text: 'Done.' });
  telegram.chats.say(ada, 'send them');
  await expect.poll(() => said().at(-1)).toBe('Done.');
  expect(telegram.chats.said(ada.id).flatMap(({ file }) => file?.name ?? [])).toEqual(['report.txt']);
});

test('the rest of a long answer is a file', async () => {
  await start({ ...open, maxParts: 2 });
  const lines = Array.from({ length: 900 }, (_, n) => `Line ${n} of a long answer.`);
  server.provider.setAnswer(() => ({ text: lines.join('\n') }));
  telegram.chats.say(ada, 'all of it');
  await expect.poll(() => telegram.chats.said(ada.id).map(({ file }) => file?.name)).toEqual([undefined, undefined, 'answer.md']);
  const [first, second, file] = telegram.chats.said(ada.id);
  expect(first?.text).toMatch(/^Line 0 of/);
  expect(second?.text).toMatch(/… \(the rest is in the file\)$/);
  const shown = `${first?.text}\n${second?.text}`.split('\n').filter((line) => line.startsWith('Line'));
  expect([
    ...shown,
    ...Buffer.from(file?.file?.bytes ?? [])
      .toString()
      .split('\n'),
  ]).toEqual(lines);
  await expect
    .poll(async () => (await server.client.call('delivery.list', {})).deliveries.map(({ state }) => state))
    .toEqual(['accepted', 'accepted', 'accepted']);
});

test('codes cannot be guessed at once either', async () => {
  await start();
  telegram.chats.say(ada, 'hello');
  await expect.poll(() => said()).toHaveLength(1);
  const code = said()[0]?.slice(-8) ?? '';
  const guesses = Array.from({ length: 40 }, () =>
    server.client.call('channels.pair', { code: 'AAAAAAAA' }).catch(({ code: kind }: { code: string }) => kind),
  );
  const ends = await Promise.all(guesses);
  expect(ends.filter((end) => end === 'not_found')).toHaveLength(5);
  expect(ends.filter((end) => end === 'rate_limited')).toHaveLength(35);
  await expect(server.client.call('channels.pair', { code })).rejects.toMatchObject({ code: 'rate_limited' });
});

test('in a group it answers those who name it, where they did', async () => {
  telegram.chats.addGroup({ id: group, title: 'Lab', isForum: true, members: [ada, eve], bot: 'administrator' });
  const topic = telegram.chats.addTopic(group, 'Plans', ada);
  await start();
  server.provider.setAnswer(({ body }) => ({ text: `Heard ${/(?:first|second) one/.exec(textOf(body))?.[0]}` }));
  telegram.chats.say(eve, 'nobody in particular', { chat: group, thread: topic });
  telegram.chats.say(eve, `@${telegram.bot.username} the first one`, { chat: group, thread: topic });
  await expect.poll(() => said(group)).toEqual(['Heard first one']);
  const [answer] = telegram.chats.said(group);
  expect(answer?.threadId).toBe(topic);
  telegram.chats.say(ada, 'the second one', { chat: group, thread: topic, replyTo: answer?.messageId ?? 0 });
  await expect.poll(() => said(group)).toEqual(['Heard first one', 'Heard second one']);
  expect((await healthOf())?.dropped).toEqual({ unmentioned: 1 });
});

test('nothing is lost or doubled by restarts', async () => {
  const homeDir = mkdtempSync(join(tmpdir(), 'gatehouse-telegram-'));
  const answer: NonNullable<NonNullable<TestServerOptions['provider']>['answer']> = ({ body }) => ({
    text: `To ${/number \d/.exec(textOf(body))?.[0]}`,
  });
  try {
    for (let round = 0; round < 3; round += 1) {
      // The first two were written while nobody listened.
      for (const n of [0, 1]) telegram.chats.say(ada, `number ${3 * round + n}`);
      await start(open, { homeDir, provider: { answer } });
      telegram.chats.say(ada, `number ${3 * round + 2}`);
      await expect.poll(() => said().length).toBe(3 * round + 3);
      await server[Symbol.asyncDispose]();
    }
    expect(said()).toEqual(Array.from({ length: 9 }, (_, n) => `To number ${n}`));
    // Without what an earlier daemon had confirmed, no poll after the first asks for older ones.
    expect(telegram.pending().length).toBeLessThanOrEqual(1);
    expect(telegram.callsOf('deleteWebhook').map(({ params }) => params['drop_pending_updates'])).toEqual([false, false, false]);
  } finally {
    rmSync(homeDir, { recursive: true, force: true });
  }
});

test('an answer that may have been sent is not sent again, and its owner is alerted', async () => {
  await start(open);
  server.provider.setAnswer(() => ({ text: 'Only once' }));
  telegram.fail('sendMessage', 'cutAfter');
  telegram.chats.say(ada, 'hello');
  const unknown = async () => (await server.client.call('delivery.queue.status', { channel_type: 'telegram' })).unknown;
  await expect.poll(unknown).toBe(1);
  await expect.poll(async () => (await server.client.call('inbox.list', {})).messages).toMatchObject([{ source: 'channel', level: 'alert' }]);
  expect(said()).toEqual(['Only once']);
  telegram.chats.say(eve, 'and me?');
  await expect.poll(() => said(eve.id)).toEqual(['Only once']);
  expect(said()).toEqual(['Only once']);
  expect(telegram.callsOf('sendMessage')).toHaveLength(2);
});

test('a limit is waited out in full, while others are answered', async () => {
  const clock = createStepClock();
  await telegram[Symbol.asyncDispose]();
  telegram = await startFakeTelegram({ now: clock.now });
  await start(open, { clock });
  server.provider.setAnswer(() => ({ text: 'At last' }));
  telegram.limit(ada.id, 40);
  const statusOf = () =>
    telegram
      .callsOf('sendMessage')
      .filter(({ params }) => params['chat_id'] === ada.id)
      .map(({ status }) => status);
  telegram.chats.say(ada, 'hello');
  await expect.poll(statusOf).toEqual([429]);
  telegram.chats.say(eve, 'me, too');
  await expect.poll(() => said(eve.id)).toEqual(['At last']);
  const retried = async () => (await server.client.call('delivery.list', { state: 'pending' })).deliveries;
  await expect.poll(retried).toMatchObject([{ attempts: 1, notBefore: expect.any(Number) }]);
  const [waiting] = await retried();
  expect(waiting?.notBefore).toBeGreaterThanOrEqual(clock.now() + 39_000);
  clock.advance((waiting?.notBefore ?? 0) - clock.now() - 1);
  expect(said()).toEqual([]);
  await expect.poll(() => (clock.advance(50), said())).toEqual(['At last']);
  expect(statusOf()).toEqual([429, 200]);
});

test('another program that polls is named in the health, and tried again after a minute', async () => {
  const clock = createStepClock();
  await start(open, { clock });
  await expect.poll(() => telegram.isPolled()).toBe(true);
  telegram.setWebhook();
  await expect.poll(stateOf).toBe('disconnected');
  const retryAt = clock.now() + 60_000;
  await expect.poll(healthOf).toMatchObject({ error: expect.stringContaining('another program set a webhook for this bot'), retryAt });
  const before = telegram.callsOf('getMe').length;
  clock.advance(59_000);
  expect(telegram.callsOf('getMe')).toHaveLength(before);
  clock.advance(1_000);
  await expect.poll(stateOf).toBe('healthy');
});

test('a token that Telegram does not accept is said so, without the token', async () => {
  const bot: Telegram = { type: 'telegram', token: '4242:another_secret', apiUrl: telegram.url };
  server = await startTestServer({ config: { channels: { bot } } });
  await expect.poll(stateOf).toBe('unauthorized');
  const shown = JSON.stringify([await healthOf(), await server.client.call('config.read', {})]);
  expect(shown).toContain('@BotFather');
  expect(shown).not.toContain('another_secret');
});

test('a button that somebody presses is a message of that person', async () => {
  await start(open);
  const heard: string[] = [];
  server.provider.setAnswer(({ body }) => {
    heard.push(textOf(body));
    return { text: 'Done' };
  });
  telegram.chats.say(ada, 'hello');
  await expect.poll(() => said()).toEqual(['Done']);
  telegram.push({
    callback_query: {
      id: '1',
      from: { ...ada, is_bot: false },
      message: { message_id: 1, date: 0, chat: { id: ada.id, type: 'private', first_name: 'Ada' } },
      chat_instance: '1',
      data: 'the second choice',
    },
  });
  await expect.poll(() => said()).toEqual(['Done', 'Done']);
  expect(heard.at(-1)).toContain('the second choice');
});

test('an answer is formatted, marks the message while it is made, and shows that it is written', async () => {
  await start({ ...open, ackReaction: '👀' });
  const held = Promise.withResolvers<void>();
  server.provider.setAnswer(() => ({ text: '**Bold** and `a < b`', after: held.promise }));
  const asked = telegram.chats.say(ada, 'hello');
  const reactions = () => telegram.chats.shown(ada.id).find(({ messageId }) => messageId === asked)?.reactions;
  await expect.poll(reactions).toEqual(['👀']);
  await expect.poll(() => telegram.chats.typing).toContainEqual([ada.id, undefined]);
  held.resolve();
  await expect.poll(() => said()).toEqual(['Bold and a < b']);
  expect(telegram.chats.said(ada.id)[0]?.entities.map(({ type }) => type)).toEqual(['bold', 'code']);
  await expect.poll(reactions).toEqual([]);
});

test('an answer appears while it is written, in one message that is edited', async () => {
  const clock = createStepClock();
  await start({ ...open, streaming: 'edits' }, { clock });
  const held = Promise.withResolvers<void>();
  server.provider.setAnswer(() => ({ text: ['First. ', 'Second.'], beforeDelta: (nth) => (nth === 0 ? Promise.resolve() : held.promise) }));
  telegram.chats.say(ada, 'hello');
  await expect.poll(() => (clock.advance(250), said()), { interval: 20 }).toEqual([expect.stringContaining('First.')]);
  held.resolve();
  await expect.poll(() => (clock.advance(250), said()), { interval: 20 }).toEqual(['First. Second.']);
});

test('files reach the agent as far as it takes them, and the others are named to it', async () => {
  const asked: string[] = [];
  await start(open);
  server.provider.setAnswer(({ body }) => {
    asked.push(textOf(body));
    return { text: 'Read.' };
  });
  telegram.chats.say(ada, 'what is this?', { file: { kind: 'document', name: 'plan.txt', type: 'text/plain', bytes: Buffer.from('Meet at ten.') } });
  await expect.poll(() => said()).toEqual(['Read.']);
  expect(asked[0]).toContain('Meet at ten.');
  telegram.chats.say(ada, 'and this?', {
    file: { kind: 'document', name: 'tool.bin', type: 'application/x-thing', bytes: Buffer.from([0, 1, 2, 255]) },
  });
  await expect.poll(() => said()).toEqual(['Read.', 'Read.']);
  expect(asked[1]).toMatch(/The file \\"tool\.bin\\" is not shown/);
});

test('an edit replaces what no turn has seen, and is a note in the next turn otherwise', async () => {
  const asked: string[] = [];
  await start({ ...open }, {});
  const held = Promise.withResolvers<void>();
  server.provider.setAnswer(({ body }) => {
    asked.push(textOf(body));
    return { text: `Answer ${asked.length}`, ...(asked.length === 1 && { after: held.promise }) };
  });
  const first = telegram.chats.say(ada, 'the tea is green');
  await expect.poll(() => asked.length).toBe(1);
  telegram.chats.change(ada.id, first, 'the tea is black');
  await expect.poll(async () => (await healthOf())?.dropped).toEqual({ edited: 1 });
  held.resolve();
  await expect.poll(() => said()).toEqual(['Answer 1']);
  telegram.chats.say(ada, 'which tea?');
  await expect.poll(() => said()).toEqual(['Answer 1', 'Answer 2']);
  expect(asked[1]).toContain('An earlier message was edited: \\"the tea is green\\" is now \\"the tea is black\\"');
  telegram.chats.say(ada, 'thanks');
  await expect.poll(() => said()).toHaveLength(3);
  expect(asked[2]).not.toContain('An earlier message');
});

test('what a turn did is found by the chat, and by the ids of the message and of its answer on the platform', async () => {
  await start(open);
  server.provider.setAnswer(() => ({ text: 'Here.' }));
  telegram.chats.say(ada, 'where?');
  telegram.chats.say(eve, 'and me?');
  await expect.poll(() => [said(), said(eve.id)]).toEqual([['Here.'], ['Here.']]);
  const { client } = server;
  const [received] = (await client.call('channels.messages', {})).messages.filter(({ senderId }) => senderId === String(ada.id));
  const [answer] = (await client.call('delivery.list', {})).deliveries.filter(({ endpoint }) => endpoint.conversationId === String(ada.id));
  const found = async (named: { readonly chatId?: string; readonly messageId?: string }) =>
    (await client.call('obs.trace.search', named)).rows.map(({ kind, sessionId }) => `${kind} ${sessionId === received?.conversationRef}`).toSorted();
  const both = ['delivery true', 'turn true'];
  await expect.poll(() => found({ chatId: String(ada.id) })).toEqual(both);
  for (const messageId of [received?.messageId ?? '', answer?.deliveryId ?? '']) expect(await found({ messageId })).toEqual(both);
  // Ids of Telegram are unique in one chat.
  expect(await found({ messageId: answer?.platformId ?? '', chatId: String(ada.id) })).toEqual(both);
  expect((await found({ chatId: 'bot' })).length).toBe(4);
  expect(await found({ chatId: String(ada.id), messageId: 'nothing' })).toEqual([]);
});
