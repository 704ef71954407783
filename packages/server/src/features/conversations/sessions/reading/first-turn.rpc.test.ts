import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';

let server: TestServer;
let ada: Awaited<ReturnType<TestServer['as']>>;
const full = { model: 'mock/mock-fast', tools: { profile: 'full' as const } };
beforeAll(async () => {
  server = await startTestServer({
    config: {
      gateway: { drainTimeoutMs: 100 },
      agents: { default: full, backed: { model: 'mock/mock-fast', tools: { profile: 'none' }, fallbackModels: ['mock/mock-other'] } },
    },
  });
  ada = await server.as(['rpc']);
});
afterAll(() => server[Symbol.asyncDispose]());

beforeEach(() => {
  server.provider.setAnswer(undefined);
});

/** Starts the first turn of a conversation and waits for its model call, which ends with `answered`. */
async function begin(sessionKey: string, answered: Promise<void>) {
  const before = server.provider.requests.length;
  server.provider.setAnswer(() => ({ text: 'Done.', after: answered }));
  const turn = ada.call('agent.execute', { message: 'Hello', sessionKey });
  turn.catch(() => {});
  await expect.poll(() => server.provider.requests.length).toBeGreaterThan(before);
  return turn;
}

describe('while its first turn runs, a conversation', () => {
  test('is listed and has a status, only for its owner and admins', async () => {
    const answered = Promise.withResolvers<void>();
    const turn = begin('ada:listed', answered.promise);
    await expect.poll(async () => (await ada.call('session.list', {})).total).toBe(1);
    const [listed] = (await ada.call('session.list', { limit: 1 })).sessions;
    expect(listed).toMatchObject({ sessionKey: 'ada:listed', kind: 'dm', messageCount: 0, totalTokens: 0 });
    const address = { conversationRef: listed?.conversationRef ?? '' };
    for (const client of [ada, server.client])
      expect(await client.call('session.status', address)).toMatchObject({ running: true, queued: 0, stepsExecuted: 0, sessionKey: 'ada:listed' });
    expect(await server.client.call('session.status', { sessionKey: 'ada:listed' })).toMatchObject(address);
    expect(await ada.call('session.history', address)).toMatchObject({ messages: [], total: 0 });
    const eve = await server.as(['rpc']);
    expect((await eve.call('session.list', {})).total).toBe(0);
    await expect(eve.call('session.status', address)).rejects.toMatchObject({ code: 'not_found' });
    answered.resolve();
    await turn;
    const { sessions, total } = await ada.call('session.list', {});
    expect([total, sessions[0]]).toMatchObject([1, { messageCount: 2 }]);
    expect((await ada.call('session.list', { offset: 1 })).sessions).toEqual([]);
  });

  test('accepts messages, which run after it', async () => {
    const answered = Promise.withResolvers<void>();
    const turn = begin('ada:sent', answered.promise);
    await expect.poll(async () => (await ada.call('session.status', { sessionKey: 'ada:sent' })).running).toBe(true);
    expect(await ada.call('session.send', { sessionKey: 'ada:sent', text: 'And then?' })).toMatchObject({ sent: true });
    answered.resolve();
    await turn;
    const said = async () => (await ada.call('session.history', { sessionKey: 'ada:sent' })).messages.map(({ content }) => content);
    await expect.poll(said).toEqual(['Hello', 'Done.', 'And then?', 'Done.']);
  });

  test('is reset and deleted when the turn has ended', async () => {
    const answered = Promise.withResolvers<void>();
    const turn = begin('ada:reset', answered.promise);
    await expect.poll(async () => (await ada.call('session.status', { sessionKey: 'ada:reset' })).running).toBe(true);
    const reset = ada.call('session.reset', { sessionKey: 'ada:reset' });
    answered.resolve();
    expect(await reset).toMatchObject({ reset: true });
    await turn.catch(() => {});
    const later = Promise.withResolvers<void>();
    const other = begin('ada:deleted', later.promise);
    await expect.poll(async () => (await ada.call('session.status', { sessionKey: 'ada:deleted' })).running).toBe(true);
    const deleted = server.client.call('session.delete', { sessionKey: 'ada:deleted' });
    later.resolve();
    expect(await deleted).toMatchObject({ deleted: true, archiveId: expect.any(String) });
    await other.catch(() => {});
    await expect(ada.call('session.status', { sessionKey: 'ada:deleted' })).rejects.toMatchObject({ code: 'not_found' });
    expect((await ada.call('session.list', {})).sessions.map(({ sessionKey }) => sessionKey)).not.toContain('ada:deleted');
  });

  test('is found when the turn ends between the query and its answer', async () => {
    const answered = Promise.withResolvers<void>();
    const looked = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    let isHeld = false;
    await using own = await startTestServer({
      db: (db) => ({
        write: (operation, input) => db.write(operation, input),
        telemetry: (operation, input) => db.telemetry(operation, input),
        search: (operation, input) => db.search(operation, input),
        backup: (path, onProgress) => db.backup(path, onProgress),
        status: () => db.status(),
        async read(operation, input) {
          const output = await db.read(operation, input);
          if (!isHeld || operation.name !== 'sessions.find') return output;
          isHeld = false;
          looked.resolve();
          await ended.promise;
          return output;
        },
        [Symbol.asyncDispose]: () => db[Symbol.asyncDispose](),
      }),
    });
    own.provider.setAnswer(() => ({ text: 'Done.', after: answered.promise }));
    const eve = await own.as(['rpc']);
    const turn = eve.call('agent.execute', { message: 'Hello', sessionKey: 'eve:raced' });
    await expect.poll(() => own.provider.requests.length).toBe(1);
    isHeld = true;
    const reset = eve.call('session.reset', { sessionKey: 'eve:raced' });
    await looked.promise;
    answered.resolve();
    await turn;
    await expect.poll(async () => (await eve.call('session.status', { sessionKey: 'eve:raced' })).running).toBe(false);
    ended.resolve();
    expect(await reset).toMatchObject({ reset: true, previousMessageCount: 2 });
  });

  test('is deleted even when its caller left and nothing was stored; a crash does not restore it', async () => {
    const homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-first-'));
    try {
      {
        await using own = await startTestServer({ homeDir, config: { gateway: { drainTimeoutMs: 50 } } });
        own.provider.setAnswer(() => ({ hang: true }));
        const abort = new AbortController();
        const turn = own.client.call('agent.execute', { message: 'Hello', sessionKey: 'root:gone' }, { signal: abort.signal });
        turn.catch(() => {});
        await expect.poll(() => own.provider.requests.length).toBe(1);
        const deletion = own.client.call('session.delete', { sessionKey: 'root:gone' });
        abort.abort();
        expect(await deletion).toMatchObject({ deleted: true });
        own.client.call('agent.execute', { message: 'Again', sessionKey: 'root:crashed' }).catch(() => {});
        await expect.poll(() => own.provider.requests.length).toBe(2);
      }
      await using next = await startTestServer({ homeDir });
      expect((await next.client.call('session.list', {})).sessions.map(({ sessionKey }) => sessionKey)).not.toContain('root:gone');
      await expect(next.client.call('session.status', { sessionKey: 'root:gone' })).rejects.toMatchObject({ code: 'not_found' });
    } finally {
      await rm(homeDir, { recursive: true, force: true });
    }
  });
});

test('session_status includes the calling turn', async () => {
  const usage = { input: 100, output: 10 };
  server.provider.queue({ toolCalls: [{ id: 'c1', name: 'session_status', arguments: '{}' }], usage }, { text: 'Read.', usage });
  const seen = server.provider.requests.length;
  await ada.call('agent.execute', { message: 'How much?', sessionKey: 'ada:status' });
  const sent = JSON.stringify(server.provider.requests.slice(seen).at(-1)?.body);
  expect(sent).toContain(String.raw`\"totalTokens\":110`);
  expect(sent).toContain(String.raw`\"stepsExecuted\":1`);
});

test('message:streaming covers turns of non-streaming callers while there are listeners', async () => {
  const whole = server.provider.requests.length;
  await ada.call('agent.execute', { message: 'Quiet', sessionKey: 'ada:quiet' });
  expect(server.provider.requests[whole]?.body).not.toMatchObject({ stream: true });
  const heard = server.heard('message:streaming');
  const sent = server.heard('message:sent');
  const { response } = await ada.call('agent.execute', { message: 'Watched', sessionKey: 'ada:watched' });
  expect(heard.map(({ delta }) => delta).join('')).toBe(response);
  expect(heard[0]).toMatchObject({ sessionKey: 'ada:watched', messageId: sent[0]?.messageId });
});

test('a stream read only by watchers does not block other models', async () => {
  server.heard('message:streaming');
  const cut = { text: ['One ', 'two ', 'three.'], breakAfter: { deltas: 2, by: 'cut' as const } };
  server.provider.queue(cut, { text: 'Second.' });
  expect(await ada.call('agent.execute', { message: 'Watched', sessionKey: 'ada:backed', agentId: 'backed' })).toMatchObject({
    response: 'Second.',
    finishReason: 'stop',
  });
});
