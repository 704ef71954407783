import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const say = (message: string, sessionKey: string, client = server.client) => client.call('agent.execute', { message, sessionKey });
const rated = async (sessionKey: string, client = server.client) =>
  (await client.call('session.history', { sessionKey })).messages.flatMap(({ seq, feedback }) =>
    feedback === undefined ? [] : [[seq, feedback.rating, feedback.note]],
  );

describe('session.feedback', () => {
  test('marks the newest answer, or that of a turn; the last mark counts, and null removes it', async () => {
    await say('one', 'marks:desk');
    await say('two', 'marks:desk');
    const { messages } = await server.client.call('session.history', { sessionKey: 'marks:desk' });
    expect(await server.client.call('session.feedback', { sessionKey: 'marks:desk', rating: 'good' })).toMatchObject({
      seq: 4,
      feedback: { rating: 'good', by: 'token:root' },
    });
    const turnId = messages[0]?.turnId;
    await server.client.call('session.feedback', { sessionKey: 'marks:desk', turnId, rating: 'good' });
    await server.client.call('session.feedback', { sessionKey: 'marks:desk', turnId, rating: 'bad', note: 'Wrong year.' });
    expect(await rated('marks:desk')).toEqual([
      [2, 'bad', 'Wrong year.'],
      [4, 'good', undefined],
    ]);
    expect(await server.client.call('session.feedback', { sessionKey: 'marks:desk', turnId, rating: null })).not.toHaveProperty('feedback');
    expect(await rated('marks:desk')).toEqual([[4, 'good', undefined]]);
    const { rows } = await server.client.call('obs.audit.query', { actionType: 'session.feedback', limit: 1 });
    expect(rows).toMatchObject([{ refs: { turnId, rating: 'none' } }]);
    expect(JSON.stringify(rows)).not.toContain('year');
  });

  test('marks the answer that a result named by its trace, also when there are newer ones', async () => {
    const first = await say('one', 'traces:desk');
    const second = await say('two', 'traces:desk');
    const mark = (more: object) => server.client.call('session.feedback', { sessionKey: 'traces:desk', rating: 'good', ...more });
    await mark({ traceId: first.traceId });
    expect(await rated('traces:desk')).toEqual([[2, 'good', undefined]]);
    const { turnId } = await mark({ traceId: second.traceId });
    expect(await rated('traces:desk')).toEqual([
      [2, 'good', undefined],
      [4, 'good', undefined],
    ]);
    await expect(mark({ traceId: 'a'.repeat(32) })).rejects.toMatchObject({ code: 'not_found' });
    await expect(mark({ traceId: first.traceId, turnId })).rejects.toMatchObject({ code: 'invalid_params' });
    const elsewhere = await say('three', 'traces:other');
    await expect(mark({ traceId: elsewhere.traceId })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('a token marks only answers in conversations that it owns', async () => {
    const { conversationRef } = await say('mine', 'own:desk');
    const other = await server.as(['rpc']);
    await expect(other.call('session.feedback', { conversationRef, rating: 'good' })).rejects.toMatchObject({ code: 'not_found' });
    await say('theirs', 'own:desk', other);
    await other.call('session.feedback', { sessionKey: 'own:desk', rating: 'bad' });
    expect(await rated('own:desk', other)).toEqual([[2, 'bad', undefined]]);
    await expect(other.call('session.feedback', { sessionKey: 'own:desk', turnId: 'tn_none', rating: 'bad' })).rejects.toMatchObject({
      code: 'not_found',
    });
    await expect(other.call('session.feedback', { sessionKey: 'own:desk', rating: 'bad', note: 'ä'.repeat(1025) })).rejects.toMatchObject({
      code: 'invalid_params',
    });
  });

  test('it survives a reset and is not copied to forks; erasing the messages and deleting the conversation remove it', async () => {
    const { conversationRef } = await say('kept', 'reset:desk');
    await server.client.call('session.feedback', { conversationRef, rating: 'good', note: 'CANARY-NOTE' });
    await server.client.call('session.reset', { conversationRef });
    expect(await rated('reset:desk')).toEqual([[2, 'good', 'CANARY-NOTE']]);
    const fork = await server.client.call('session.fork', { conversationRef });
    expect(JSON.stringify(await server.client.call('session.history', { conversationRef: fork.conversationRef }))).not.toContain('CANARY-NOTE');
    await server.client.call('session.reset_conversation', { conversationRef });
    await say('again', 'reset:desk');
    expect(await rated('reset:desk')).toEqual([]);
    await server.client.call('session.feedback', { conversationRef, rating: 'bad' });
    await server.client.call('session.delete', { conversationRef });
    await say('new', 'reset:desk');
    expect(await rated('reset:desk')).toEqual([]);
  });

  test('is in the trace of the turn, for those who see it, without the note', async () => {
    const { traceId } = await say('traced', 'traced:desk');
    await server.client.call('session.feedback', { sessionKey: 'traced:desk', rating: 'bad', note: 'CANARY-NOTE' });
    const found = await server.client.call('obs.trace.get', { ref: traceId });
    expect(found.records[0]?.facts['feedback']).toBe('bad');
    expect(JSON.stringify(found)).not.toContain('CANARY-NOTE');
    const other = await server.as(['rpc']);
    await expect(other.call('obs.trace.get', { ref: traceId })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('survives a restart', async () => {
    const first = await startTestServer();
    let homeDir: string;
    {
      await using before = await startTestServer({ homeDir: `${first.homeDir}-kept` });
      homeDir = before.homeDir;
      await before.client.call('agent.execute', { message: 'hello', sessionKey: 'a:b' });
      await before.client.call('session.feedback', { sessionKey: 'a:b', rating: 'good' });
    }
    await first[Symbol.asyncDispose]();
    await using after = await startTestServer({ homeDir });
    const { messages } = await after.client.call('session.history', { sessionKey: 'a:b' });
    expect(messages[1]?.feedback?.rating).toBe('good');
  });
});
