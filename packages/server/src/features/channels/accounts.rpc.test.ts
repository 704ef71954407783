import { createStepClock, type FakeTelegram, startFakeTelegram, startTestServer, type StepClock, type TestServer } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';

const ada = { id: 1001, first_name: 'Ada' };
const open = { type: 'telegram' as const, dm: { policy: 'open' as const } };

const fakes: FakeTelegram[] = [];
let clock: StepClock;
let server: TestServer;
beforeEach(() => {
  clock = createStepClock();
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  for (const fake of fakes.splice(0)) await fake[Symbol.asyncDispose]();
});

async function fakeOf(token: string): Promise<FakeTelegram> {
  const fake = await startFakeTelegram({ token, now: () => clock.now() });
  fakes.push(fake);
  return fake;
}
const channelOf = ({ token, url }: FakeTelegram) => ({ ...open, token, apiUrl: url });
const said = (fake: FakeTelegram) => fake.chats.said(ada.id).map(({ text }) => text);
const stateOf = async (id: string) => (await server.client.call('channels.get', { channel_type: 'telegram', channel_instance_id: id })).state;
const healthOf = async (id: string) =>
  (await server.client.call('channels.health', {})).channels.find(({ channelInstanceId }) => channelInstanceId === id);

test('two accounts of one platform are two channels, also for a person who writes to both', async () => {
  const [one, two] = [await fakeOf('4242:TEST-token_of_one'), await fakeOf('4343:TEST-token_of_two')];
  server = await startTestServer({
    clock,
    config: {
      agents: { default: { model: 'mock/mock-fast' }, helper: { model: 'mock/mock-fast' } },
      channels: { one: channelOf(one), two: { ...channelOf(two), agent: 'helper' } },
    },
  });
  const asked: string[] = [];
  server.provider.setAnswer(({ body }) => {
    const { messages } = body as { readonly messages: readonly { readonly role: string; readonly content: unknown }[] };
    asked.push(JSON.stringify(messages.filter(({ role }) => role === 'user')));
    return { text: `Answer ${/to the \w+/.exec(asked.at(-1) ?? '')?.[0]}` };
  });
  await expect.poll(async () => [await stateOf('one'), await stateOf('two')]).toEqual(['healthy', 'healthy']);
  one.chats.say(ada, 'to the first');
  two.chats.say(ada, 'to the second');
  await expect.poll(() => [said(one), said(two)]).toEqual([['Answer to the first'], ['Answer to the second']]);
  // The conversations are not the same one.
  expect(asked.every((texts) => !(texts.includes('to the first') && texts.includes('to the second')))).toBe(true);
  const { messages } = await server.client.call('channels.messages', {});
  expect(new Set(messages.map(({ conversationRef }) => conversationRef)).size).toBe(2);
  expect(messages.map(({ agentId, endpoint }) => `${endpoint.channelInstanceId} ${agentId}`).toSorted()).toEqual(['one default', 'two helper']);
  await expect(server.client.call('channels.restart', { channel_type: 'telegram' })).rejects.toMatchObject({ code: 'invalid_params' });
  // What happens to one does not touch the other.
  one.fail('getUpdates', 'cutBefore', 'cutBefore');
  one.cut();
  await server.client.call('channels.disable', { channel_type: 'telegram', channel_instance_id: 'one' });
  two.chats.say(ada, 'to the same');
  await expect.poll(() => said(two)).toHaveLength(2);
  expect(said(one)).toHaveLength(1);
  expect(await healthOf('two')).toMatchObject({ state: 'healthy', consecutiveFailures: 0 });
});

test('one account in two channels is a conflict that is named, and each message is answered once', async () => {
  const fake = await fakeOf('4242:TEST-token_of_both');
  server = await startTestServer({
    clock,
    provider: { answer: () => ({ text: 'Once.' }) },
    config: { agents: { default: { model: 'mock/mock-fast' } }, channels: { one: channelOf(fake), two: channelOf(fake) } },
  });
  const states = async () => [await stateOf('one'), await stateOf('two')].toSorted();
  await expect.poll(states).toEqual(['disconnected', 'healthy']);
  const away = (await stateOf('one')) === 'disconnected' ? 'one' : 'two';
  expect(await healthOf(away)).toMatchObject({ error: expect.stringMatching(/other|another/i) });
  for (let minute = 1; minute <= 4; minute += 1) {
    fake.chats.say(ada, `message ${minute}`);
    await expect.poll(() => said(fake).length).toBe(minute);
    // The one that is away tries once a minute.
    const tries = fake.callsOf('getMe').length;
    clock.advance(60_000);
    await expect.poll(() => fake.callsOf('getMe').length).toBe(tries + 1);
    await expect.poll(states).toEqual(['disconnected', 'healthy']);
  }
  await expect.poll(async () => (await server.client.call('delivery.queue.status', {})).delivered).toBeGreaterThanOrEqual(4);
  expect(said(fake)).toHaveLength(4);
});
