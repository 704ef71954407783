import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';

const rung: string[] = [];
/** A tool with an outward effect, and one that only reads. */
const tools = [
  {
    name: 'bell',
    description: 'Rings.',
    args: z.object({}),
    risk: 'outward' as const,
    effect: 'once' as const,
    timeoutMs: 1000,
    run: async () => (rung.push('bell'), { content: 'rang' }),
  },
  {
    name: 'clock',
    description: 'Returns the time.',
    args: z.object({}),
    risk: 'read' as const,
    effect: 'pure' as const,
    timeoutMs: 1000,
    run: async () => ({ content: 'noon' }),
  },
];

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ tools, config: { approvals: { mode: 'auto' } } });
  await server.client.call('agents.create', { agentId: 'ringer', config: { tools: { profile: 'full' } } });
  await server.client.call('agents.create', { agentId: 'other', config: { name: 'Other' } });
});
afterAll(() => server[Symbol.asyncDispose]());

const turnsOf = async (conversationRef: string) => [
  ...new Set((await server.client.call('session.history', { conversationRef })).messages.map(({ turnId }) => turnId)),
];
const sent = () =>
  (server.provider.requests.at(-1)?.body as { model: string; messages: { role: string; content: string }[] } | undefined) ?? {
    model: '',
    messages: [],
  };

describe('obs.trace.replay', () => {
  test('asks the question of another model in a fork that ends before it; the original stays', async () => {
    const say = (message: string) => server.client.call('agent.execute', { message, sessionKey: 'again:desk' });
    const { conversationRef } = await say('one');
    await say('two');
    await say('three');
    const [, second = ''] = await turnsOf(conversationRef);
    const replay = await server.client.call('obs.trace.replay', { ref: second, model: 'mock/mock-other' });
    expect(sent().model).toBe('mock-other');
    expect(
      sent()
        .messages.filter(({ role }) => role === 'user')
        .map(({ content }) => content),
    ).toEqual(['one', 'two']);
    expect(replay).toMatchObject({
      agentId: 'default',
      model: 'mock/mock-other',
      finishReason: 'stop',
      original: { turnId: second, model: 'mock/mock-fast' },
    });
    expect(replay.conversationRef).not.toBe(conversationRef);
    const fork = await server.client.call('session.history', { conversationRef: replay.conversationRef });
    expect(fork.session).toMatchObject({ forkedFrom: conversationRef, synthetic: true, messageCount: 4 });
    expect(fork.messages.at(-1)?.turnId).toBe(replay.turnId);
    expect((await server.client.call('session.history', { conversationRef })).total).toBe(6);
    const { rows } = await server.client.call('usage.report', { groupBy: ['operation'] });
    expect(rows).toContainEqual(expect.objectContaining({ keys: ['evaluation'], calls: 1 }));
  });

  test('nothing is learned from a replay: its conversation is not reviewed', async () => {
    await server.client.call('agents.create', { agentId: 'learner', config: { memory: { review: { minMessages: 2 } } } });
    const { conversationRef } = await server.client.call('agent.execute', { message: 'learn', agentId: 'learner', sessionKey: 'learn:desk' });
    const [ref = ''] = await turnsOf(conversationRef);
    await server.client.call('obs.trace.replay', { ref });
    server.provider.queue({ text: '{"memories":[]}' }, { text: '{"memories":[]}' });
    const { conversationsReviewed, conversationsFailed } = await server.client.call('memory.review', { agentId: 'learner' });
    expect(conversationsReviewed + conversationsFailed).toBe(1);
  });

  test('the first question of a conversation, by another agent', async () => {
    const { conversationRef } = await server.client.call('agent.execute', { message: 'first', sessionKey: 'first:desk' });
    const [turnId = ''] = await turnsOf(conversationRef);
    const replay = await server.client.call('obs.trace.replay', { ref: turnId, agentId: 'other' });
    expect(replay).toMatchObject({ agentId: 'other', original: { agentId: 'default' } });
    expect((await server.client.call('session.history', { conversationRef: replay.conversationRef })).messages.map(({ content }) => content)[0]).toBe(
      'first',
    );
  });

  test('never has an effect: such tools are refused with the reason, and reading ones run', async () => {
    const call = (name: string) => ({ toolCalls: [{ id: `c-${name}`, name, arguments: '{}' }] });
    server.provider.queue(call('bell'), { text: 'done' });
    const { conversationRef } = await server.client.call('agent.execute', { message: 'ring', agentId: 'ringer', sessionKey: 'ring:desk' });
    expect(rung).toEqual(['bell']);
    const [turnId = ''] = await turnsOf(conversationRef);
    server.provider.queue(
      call('bell'),
      call('clock'),
      { toolCalls: [{ id: 'm', name: 'memory_store', arguments: '{"content":"CANARY"}' }] },
      { text: 'done' },
    );
    const replay = await server.client.call('obs.trace.replay', { ref: turnId });
    expect(rung).toEqual(['bell']);
    const { messages } = await server.client.call('session.history', { conversationRef: replay.conversationRef });
    const results = messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
    expect(results).toEqual([expect.stringMatching(/^Not run: this turn is an evaluation or a replay/), 'noon', expect.stringMatching(/^Not run/)]);
  });

  test('is for administrators, names what is missing, and creates nothing then', async () => {
    const { conversationRef } = await server.client.call('agent.execute', { message: 'x', sessionKey: 'missing:desk' });
    const [ref = ''] = await turnsOf(conversationRef);
    const forks = async () => (await server.client.call('session.list', { allAgents: true })).total;
    const before = await forks();
    const member = await server.as(['rpc']);
    await expect(member.call('obs.trace.replay', { ref })).rejects.toMatchObject({ code: 'insufficient_scope' });
    const narrow = await server.as(['admin'], { agents: ['other'] });
    await expect(narrow.call('obs.trace.replay', { ref })).rejects.toMatchObject({ code: 'not_found' });
    await expect(server.client.call('obs.trace.replay', { ref, model: 'mock/none' })).rejects.toMatchObject({ code: 'precondition_failed' });
    await expect(server.client.call('obs.trace.replay', { ref, agentId: 'nobody' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(server.client.call('obs.trace.replay', { ref: 'tn_none' })).rejects.toMatchObject({ code: 'not_found' });
    expect(await forks()).toBe(before);
    await server.client.call('session.reset_conversation', { conversationRef });
    await expect(server.client.call('obs.trace.replay', { ref })).rejects.toMatchObject({ code: 'not_found' });
  });
});

test('an operator test of a webhook is charged as an evaluation', async () => {
  await using hooked = await startTestServer({
    config: { webhooks: { enabled: true, token: 'x'.repeat(40), mappings: [{ id: 'hook', match: { path: 'hook' }, messageTemplate: 'Say hello' }] } },
  });
  await hooked.client.call('webhooks.test', { mapping: 'hook', payload: { text: 'x' }, run: true });
  await expect.poll(async () => (await hooked.client.call('webhooks.deliveries', {})).deliveries[0]?.state).toBe('done');
  const { rows } = await hooked.client.call('usage.report', { groupBy: ['operation'] });
  expect(rows).toMatchObject([{ keys: ['evaluation'], calls: 1 }]);
});
