import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

describe('sessions', () => {
  test('a fresh key creates the conversation; history holds both messages, oldest first, and pages', async () => {
    const { client } = server;
    const created = server.heard('session:created');
    const sessionKey = { userId: 'ada', channelId: 'desk' };
    const first = await client.call('agent.execute', { message: 'one', sessionKey });
    const second = await client.call('agent.execute', { message: 'two', sessionKey });
    expect(second.conversationRef).toBe(first.conversationRef);
    expect(created.map((event) => event.conversationRef)).toEqual([first.conversationRef]);

    const history = await client.call('session.history', { sessionKey: 'ada:desk' });
    expect(history.messages.map(({ seq, role, content }) => ({ seq, role, content }))).toEqual([
      { seq: 1, role: 'user', content: 'one' },
      { seq: 2, role: 'assistant', content: first.response },
      { seq: 3, role: 'user', content: 'two' },
      { seq: 4, role: 'assistant', content: second.response },
    ]);
    expect(history).toMatchObject({ total: 4, hasMore: false, session: { messageCount: 4, inputTokens: 40, outputTokens: 10 } });
    const page = await client.call('session.history', { conversationRef: first.conversationRef, offset: 1, limit: 2 });
    expect(page.messages.map((message) => message.seq)).toEqual([2, 3]);
    expect(page.hasMore).toBe(true);
  });

  test('the model receives the conversation so far', async () => {
    const sessionKey = { userId: 'eve', channelId: 'desk' };
    const first = await server.client.call('agent.execute', { message: 'remember the number 41', sessionKey });
    await server.client.call('agent.execute', { message: 'which number?', sessionKey });
    const body = server.provider.requests.at(-1)?.body as { messages: { role: string; content: string }[] };
    expect(body.messages.filter((message) => message.role !== 'system')).toEqual([
      { role: 'user', content: 'remember the number 41' },
      { role: 'assistant', content: first.response },
      { role: 'user', content: 'which number?' },
    ]);
  });

  test('without an address each token has its own conversation', async () => {
    const one = await server.as(['rpc']);
    const two = await server.as(['rpc']);
    const first = await one.call('agent.execute', { message: 'mine' });
    const second = await two.call('agent.execute', { message: 'mine too' });
    expect(first.conversationRef).not.toBe(second.conversationRef);
    expect((await one.call('session.status')).tokensUsed.totalTokens).toBe(25);
    expect((await one.call('session.list')).sessions.map((session) => session.conversationRef)).toEqual([first.conversationRef]);
  });

  test('one key under two tokens is two conversations, and a foreign reference answers like an unknown one', async () => {
    const one = await server.as(['rpc']);
    const two = await server.as(['rpc']);
    const sessionKey = { userId: 'shared', channelId: 'key' };
    const mine = await one.call('agent.execute', { message: 'private', sessionKey });
    const theirs = await two.call('agent.execute', { message: 'other', sessionKey });
    expect(theirs.conversationRef).not.toBe(mine.conversationRef);

    const unknown = `cv_${'A'.repeat(43)}`;
    for (const method of ['session.history', 'session.export', 'session.status'] as const) {
      const foreign = await two.call(method, { conversationRef: mine.conversationRef }).catch((error: Error) => error);
      const missing = await two.call(method, { conversationRef: unknown }).catch((error: Error) => error);
      expect(foreign).toMatchObject({ code: 'not_found' });
      expect({ ...(foreign as object), requestId: '' }).toEqual({ ...(missing as object), requestId: '' });
      expect((foreign as Error).message).toBe((missing as Error).message);
    }
    await expect(two.call('agent.execute', { message: 'intrude', conversationRef: mine.conversationRef })).rejects.toMatchObject({
      code: 'not_found',
    });
    await expect(server.client.call('session.history', { sessionKey })).rejects.toMatchObject({ code: 'precondition_failed' });
    expect((await server.client.call('session.history', { conversationRef: mine.conversationRef })).messages[0]?.content).toBe('private');
  });

  test('no key can imitate another: separators inside a part are escaped', async () => {
    const { client } = server;
    const refs = new Set<string>();
    for (const sessionKey of [
      { userId: 'a', channelId: 'b', peerId: 'c' },
      { userId: 'a:b', channelId: 'c' },
      { userId: 'a', channelId: 'b:c' },
      { userId: 'a%3Ab', channelId: 'c' },
    ]) {
      const reply = await client.call('agent.execute', { message: 'x', sessionKey });
      refs.add(reply.conversationRef);
      const again = await client.call('session.history', { sessionKey: reply.sessionKey });
      expect(again.session.conversationRef).toBe(reply.conversationRef);
    }
    expect(refs.size).toBe(4);
  });

  test('export contains everything; delete archives it, is audited, and needs admin', async () => {
    const { client } = server;
    const audited = server.heard('audit:event');
    const { conversationRef } = await client.call('agent.execute', { message: 'keep me', sessionKey: 'gone:desk' });
    const exported = await client.call('session.export', { conversationRef });
    expect(exported).toMatchObject({ messageCount: 2, metadata: { turns: 1, tokensUsed: { input: 20, output: 5, total: 25 }, totalCost: 0.00003 } });
    const plain = await server.as(['rpc']);
    await expect(plain.call('session.delete', { conversationRef })).rejects.toThrow("Insufficient scope: requires 'admin'");
    const deleted = await client.call('session.delete', { conversationRef });
    expect(deleted).toMatchObject({ deleted: true, transcript: { messageCount: 2 } });
    expect(audited.find((event) => event.actionType === 'session.delete')).toMatchObject({ target: conversationRef, classification: 'destructive' });
    await expect(client.call('session.history', { conversationRef })).rejects.toMatchObject({ code: 'not_found' });
    const again = await client.call('agent.execute', { message: 'afresh', sessionKey: 'gone:desk' });
    expect((await client.call('session.history', { conversationRef: again.conversationRef })).total).toBe(2);
  });

  test('turns of one conversation run sequentially, in order, without loss', async () => {
    const { client, provider } = server;
    let seen = 0;
    provider.setAnswer((request) => {
      const { messages } = request.body as { messages: { role: string }[] };
      // A turn that did not wait for the previous one would not see its answer.
      expect(messages.filter((message) => message.role !== 'system')).toHaveLength(2 * seen++ + 1);
      return { text: 'ok', delayMs: 3 };
    });
    const sessionKey = { userId: 'busy', channelId: 'desk' };
    const replies = await Promise.all(Array.from({ length: 20 }, (_, i) => client.call('agent.execute', { message: `m${i}`, sessionKey })));
    expect(replies.every((reply) => reply.finishReason === 'stop')).toBe(true);
    const { messages } = await client.call('session.history', { sessionKey, limit: 100 });
    expect(messages.filter((message) => message.role === 'user').map((message) => message.content)).toEqual(
      Array.from({ length: 20 }, (_, i) => `m${i}`),
    );
    expect(messages.map((message) => message.role)).toEqual(Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? 'user' : 'assistant')));
    expect(seen).toBe(20);
    provider.setAnswer(undefined);
  });

  test('completions of /v1 are listed only on request by kind, with their usage and without messages', async () => {
    const { client } = server;
    await client.chat({ model: 'mock/mock-fast', messages: [{ role: 'user', content: 'hi' }] });
    expect((await client.call('session.list', { limit: 200 })).sessions.some((session) => session.kind === 'v1')).toBe(false);
    const { sessions } = await client.call('session.list', { kind: 'v1' });
    expect(sessions[0]).toMatchObject({ kind: 'v1', totalTokens: 25, messageCount: 0 });
    expect(sessions[0]?.sessionKey).toMatch(/^compat-api:compat:chatcmpl-/);
    await expect(client.call('session.history', { conversationRef: sessions[0]!.conversationRef })).rejects.toMatchObject({ code: 'not_found' });
  });
});
