import { type StepClock, createStepClock, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createBell, createObeyingModel, follow, page } from '../features/access/approvals/testing/obeying-model.ts';

let clock: StepClock;
let server: TestServer;
/** Whether the provider refuses a request: by the text of its last user message, and whether it has the result of a tool. */
let isDown: (text: string, hasResult: boolean) => boolean;
let rung: number;

beforeEach(async () => {
  const model = createObeyingModel();
  [clock, isDown, rung] = [createStepClock(), () => false, 0];
  const agent = { model: 'mock/mock-fast', tools: { profile: 'full' as const }, circuitBreaker: { failures: 1 } };
  server = await startTestServer({
    clock,
    tools: [page, createBell(() => (rung += 1))],
    provider: {
      answer: ({ body }) => {
        const { messages } = body as { readonly messages: readonly { readonly role: string; readonly content: unknown }[] };
        const text = String(messages.findLast(({ role }) => role === 'user')?.content);
        return isDown(text, messages.at(-1)?.role === 'tool') ? { status: 500 } : model.answer(body);
      },
    },
    config: {
      agents: { default: agent, spare: agent },
      webhooks: { mappings: [{ id: 'hook', messageTemplate: '{{text}}', sessionKey: 'hook', agentId: 'spare' }] },
    },
  });
});
afterEach(() => server[Symbol.asyncDispose]());

const waiting = async () => (await server.client.call('run.list', {})).runs.filter((run) => run.waiting?.kind === 'provider');
/** Lets time pass until that many runs wait for the provider. */
const untilWaiting = (count: number) => expect.poll(async () => (clock.advance(500), (await waiting()).length)).toBe(count);
const untilNothingWaits = () =>
  expect.poll(async () => (await server.client.call('run.list', {})).runs.filter((run) => run.waiting !== undefined)).toEqual([]);

test('a root with several waiting turns is listed once', async () => {
  const refs: string[] = [];
  for (const sessionKey of ['ada:x', 'ada:y'])
    refs.push((await server.client.call('agent.execute', { message: 'Hello', sessionKey })).conversationRef);
  isDown = (text) => text.includes('SENT') && !text.includes('STEPS');
  const sends = refs.map((conversationRef) => ['sessions_send', { conversationRef, text: 'SENT' }] as const);
  await server.client.call('agent.execute', { message: follow(...sends), sessionKey: 'ada:main' });
  await untilWaiting(1);
  expect(await server.client.call('run.list', {})).toMatchObject({ total: 1, runs: [{ state: 'active' }] });
  await server.client.call('run.kill', { rootRunId: (await waiting())[0]?.rootRunId ?? 'none' });
  await untilNothingWaits();
});

test('a waiting run is active, also when its row says that it ended', async () => {
  isDown = () => true;
  await server.client.call('webhooks.test', { mapping: 'hook', payload: { text: 'Hello' }, run: true });
  await untilWaiting(1);
  const rootRunId = (await waiting())[0]?.rootRunId ?? 'none';
  await server.client.call('autonomy.evict', { rootRunId });
  const { runs } = await server.client.call('run.list', { state: 'active' });
  expect(runs).toMatchObject([{ rootRunId, evicted: true, state: 'active', waiting: { kind: 'provider' } }]);
  expect(runs[0]).not.toHaveProperty('endedAt');
  expect(await server.client.call('run.list', { state: 'completed' })).toMatchObject({ total: 0, runs: [] });
  isDown = () => false;
  await server.client.call('providers.retry', { provider: 'mock' });
  await untilNothingWaits();
  await expect.poll(async () => (await server.client.call('run.list', { state: 'completed' })).runs.map((run) => run.rootRunId)).toEqual([rootRunId]);
});

test('tokens.revoke ends work waiting for a suspended agent at once', async () => {
  const ada = await server.as(['rpc']);
  const { conversationRef } = await ada.call('agent.execute', { agentId: 'spare', message: 'Hello' });
  isDown = () => true;
  await ada.call('session.send', { conversationRef, text: 'Hello again' });
  await ada.call('cron.add', { name: 'job', agentId: 'spare', schedule: { kind: 'in', seconds: 1 }, payload: { kind: 'agent_turn', message: 'Go' } });
  await untilWaiting(2);
  await server.client.call('agents.suspend', { agentId: 'spare' });
  await server.client.call('tokens.revoke', { id: ada.tokenId });
  await untilNothingWaits();
});

test('a waiting turn that is killed keeps what it did in its conversation, and one that did nothing its question', async () => {
  isDown = (text, hasResult) => hasResult || text.includes('webhook');
  const payload = { kind: 'agent_turn', message: follow(['bell', {}], ['ls', { path: '.' }]) } as const;
  await server.client.call('cron.add', { name: 'job', schedule: { kind: 'in', seconds: 1 }, payload });
  await server.client.call('webhooks.test', { mapping: 'hook', payload: { text: 'Dear all' }, run: true });
  await untilWaiting(2);
  expect(rung).toBe(1);
  for (const { rootRunId } of await waiting()) await server.client.call('run.kill', { rootRunId });
  await untilNothingWaits();
  const { sessions } = await server.client.call('session.list', { allAgents: true });
  const said = async (agentId: string) => {
    const found = sessions.filter((one) => one.agentId === agentId);
    expect(found).toHaveLength(1);
    return (await server.client.call('session.history', { conversationRef: found[0]?.conversationRef ?? 'none' })).messages;
  };
  await expect
    .poll(() => said('default'))
    .toMatchObject([
      { role: 'user', content: expect.stringContaining('bell') },
      { role: 'assistant' },
      { role: 'tool' },
      { role: 'assistant', content: '[Ended before it was done: aborted. What is above was done.]' },
    ]);
  await expect
    .poll(() => said('spare'))
    .toMatchObject([
      { role: 'user', content: expect.stringContaining('Dear all') },
      { role: 'assistant', content: '[Ended before it was done: killed. Nothing was done.]' },
    ]);
});

test('a turn that is killed while a call waits for approval shows that the call was not run', async () => {
  const payload = { kind: 'agent_turn', message: follow(['page', {}], ['bell', {}]) } as const;
  await server.client.call('cron.add', { name: 'job', schedule: { kind: 'in', seconds: 1 }, payload });
  const asking = async () => (await server.client.call('run.list', {})).runs.find((run) => run.waiting?.kind === 'approval');
  await expect.poll(async () => (clock.advance(500), await asking())).toBeDefined();
  await server.client.call('run.kill', { rootRunId: (await asking())?.rootRunId ?? 'none' });
  await untilNothingWaits();
  const said = async () => {
    const [session] = (await server.client.call('session.list', {})).sessions;
    return (await server.client.call('session.history', { conversationRef: session?.conversationRef ?? 'none' })).messages.slice(-3);
  };
  await expect
    .poll(said)
    .toMatchObject([
      { role: 'assistant' },
      { role: 'tool', content: 'Not run: the turn was stopped before' },
      { role: 'assistant', content: expect.stringContaining('What is above was done, unless its result says otherwise.') },
    ]);
  expect(rung).toBe(0);
});

test('session.delete ends a webhook queued behind a turn of the conversation, which does not come back', async () => {
  const conversationRef = (await server.client.call('webhooks.test', { mapping: 'hook', payload: { text: 'x' } })).conversationRef ?? '';
  const deliver = (text: string) => server.client.call('webhooks.test', { mapping: 'hook', payload: { text }, run: true });
  const newest = async () => (await server.client.call('webhooks.deliveries', {})).deliveries[0];
  await deliver('first');
  await expect.poll(async () => (await newest())?.state).toBe('done');
  await server.client.call('session.send', { conversationRef, text: follow(['page', {}], ['bell', {}]) });
  await expect.poll(async () => (await server.client.call('admin.approval.pending', {})).requests.length).toBe(1);
  await deliver('second');
  await expect.poll(async () => (clock.advance(100), (await newest())?.waiting?.kind)).toBe('conversation');
  await server.client.call('session.delete', { conversationRef });
  await expect.poll(async () => (clock.advance(1_000), await newest())).toMatchObject({ state: 'failed', errorKind: 'deleted' });
  expect((await server.client.call('session.list', { allAgents: true })).sessions).toEqual([]);
});
