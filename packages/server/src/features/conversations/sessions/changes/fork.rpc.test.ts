import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

function sent(): string[] {
  const body = server.provider.requests.at(-1)?.body as { messages: { role: string; content: string }[] };
  return body.messages.filter(({ role }) => role === 'user').map(({ content }) => content);
}

const contents = async (conversationRef: string) =>
  (await server.client.call('session.history', { conversationRef })).messages.map(({ seq, role, content }) => [seq, role, content]);

describe('session.fork', () => {
  test('copies the messages up to one of them, and both conversations continue independently', async () => {
    using socket = server.socket();
    const created = server.heard('session:created');
    const say = (message: string) => server.client.call('agent.execute', { message, sessionKey: 'fork:desk' });
    const { conversationRef } = await say('one');
    await say('two');
    await say('three');
    const before = await contents(conversationRef);
    const fork = await socket.call('session.fork', { conversationRef, seq: 4 });
    expect(fork).toMatchObject({ agentId: 'default', forkedFrom: conversationRef, messageCount: 4 });
    expect(fork.sessionKey).toMatch(/^fork:desk~[0-9a-f]{12}$/);
    expect(await contents(fork.conversationRef)).toEqual(before.slice(0, 4));
    expect(created.map((event) => event.conversationRef)).toEqual([conversationRef, fork.conversationRef]);

    await server.client.call('agent.execute', { message: 'other', conversationRef: fork.conversationRef });
    expect(sent()).toEqual(['one', 'two', 'other']);
    await say('four');
    expect(sent()).toEqual(['one', 'two', 'three', 'four']);
    expect(created).toHaveLength(2);
    const { session } = await server.client.call('session.history', { conversationRef: fork.conversationRef });
    expect(session).toMatchObject({ forkedFrom: conversationRef, title: 'one', messageCount: 6, totalTokens: 25, kind: 'dm' });
  });

  test('starts over without a message, and is then titled by its own first one', async () => {
    const { client } = server;
    const { conversationRef } = await client.call('agent.execute', { message: 'first', sessionKey: 'over:desk' });
    const fork = await client.call('session.fork', { conversationRef, seq: 0 });
    expect(fork).toMatchObject({ forkedFrom: conversationRef, messageCount: 0 });
    const titleOf = async () => (await client.call('session.history', { conversationRef: fork.conversationRef })).session.title;
    expect(await titleOf()).toBe('first');
    await client.call('agent.execute', { message: 'instead', conversationRef: fork.conversationRef });
    expect([sent(), await titleOf()]).toEqual([['instead'], 'instead']);
  });

  test('copies all messages by default under a given key, once', async () => {
    const { client } = server;
    await client.call('agent.execute', { message: 'hello', sessionKey: 'all:desk' });
    const fork = await client.call('session.fork', { sessionKey: 'all:desk', forkKey: { userId: 'all', channelId: 'desk', peerId: 'group' } });
    expect(fork).toMatchObject({ sessionKey: 'all:desk:group', messageCount: 2 });
    await expect(client.call('session.fork', { sessionKey: 'all:desk', forkKey: 'all:desk:group' })).rejects.toMatchObject({ code: 'conflict' });
    await expect(client.call('session.fork', { sessionKey: 'all:desk', forkKey: 'all:desk' })).rejects.toMatchObject({ code: 'conflict' });
  });

  test('an unknown message is rejected by name, and so is an empty conversation', async () => {
    const { client } = server;
    await client.call('agent.execute', { message: 'hello', sessionKey: 'short:desk' });
    await expect(client.call('session.fork', { sessionKey: 'short:desk', seq: 3 })).rejects.toMatchObject({
      code: 'precondition_failed',
      message: 'seq: expected at most 2, the last message of the conversation',
    });
    await expect(client.call('session.fork', { sessionKey: 'short:desk', seq: -1 })).rejects.toMatchObject({ code: 'invalid_params' });
    await client.call('session.reset_conversation', { sessionKey: 'short:desk' });
    await expect(client.call('session.fork', { sessionKey: 'short:desk' })).rejects.toMatchObject({ code: 'precondition_failed' });
  });

  test('tool calls keep their results', async () => {
    const calls = ['a', 'b'].map((id) => ({ id, name: 'ls', arguments: '{"path":"."}' }));
    server.provider.queue({ toolCalls: calls }, { text: 'done' });
    await server.client.call('agents.create', { agentId: 'tooled', config: { model: 'mock/mock-fast', tools: { allow: ['ls'] } } });
    const { conversationRef } = await server.client.call('agent.execute', { message: 'look', agentId: 'tooled', sessionKey: 'tools:desk' });
    expect((await contents(conversationRef)).map(([, role]) => role)).toEqual(['user', 'assistant', 'tool', 'tool', 'assistant']);
    for (const [seq, count] of [
      [1, 1],
      [2, 4],
      [3, 4],
      [4, 4],
      [5, 5],
    ]) {
      const fork = await server.client.call('session.fork', { conversationRef, seq });
      expect([seq, fork.messageCount]).toEqual([seq, count]);
    }
  });

  test('a fork of a reset conversation starts at the reset, unless it is taken from before', async () => {
    const { client } = server;
    const { conversationRef } = await client.call('agent.execute', { message: 'before', sessionKey: 'floor:desk' });
    await client.call('session.reset', { conversationRef });
    await client.call('agent.execute', { message: 'after', conversationRef });
    const whole = await client.call('session.fork', { conversationRef });
    await client.call('agent.execute', { message: 'next', conversationRef: whole.conversationRef });
    expect(sent()).toEqual(['after', 'next']);
    const early = await client.call('session.fork', { conversationRef, seq: 2 });
    await client.call('agent.execute', { message: 'instead', conversationRef: early.conversationRef });
    expect(sent()).toEqual(['before', 'instead']);
    await client.call('session.reset', { conversationRef });
    const fresh = await client.call('session.fork', { conversationRef });
    await client.call('agent.execute', { message: 'again', conversationRef: fresh.conversationRef });
    expect(sent()).toEqual(['again']);
  });

  test('belongs to the caller', async () => {
    const one = await server.as(['rpc']);
    const two = await server.as(['rpc']);
    const { conversationRef } = await one.call('agent.execute', { message: 'mine' });
    await expect(two.call('session.fork', { conversationRef })).rejects.toMatchObject({ code: 'not_found' });
    const fork = await one.call('session.fork', { conversationRef });
    expect((await one.call('session.list')).sessions.map((session) => session.conversationRef).toSorted()).toEqual(
      [conversationRef, fork.conversationRef].toSorted(),
    );
    const taken = await server.client.call('session.fork', { conversationRef });
    await expect(one.call('session.history', { conversationRef: taken.conversationRef })).rejects.toMatchObject({ code: 'not_found' });
  });
});
