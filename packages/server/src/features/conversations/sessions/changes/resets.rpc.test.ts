import { createStepClock, sql, startTestServer, type StepClock, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

let server: TestServer;
let clock: StepClock;
// 2026-09-21T14:13:20Z
const startMs = 1_790_000_000_000;
beforeAll(async () => {
  clock = createStepClock(startMs);
  server = await startTestServer({
    clock,
    config: {
      agents: {
        default: { model: 'mock/mock-fast' },
        daily: { model: 'mock/mock-fast', session: { reset: { mode: 'daily', hour: 4, timeZone: 'Europe/Berlin', group: { mode: 'none' } } } },
        idle: { model: 'mock/mock-fast', session: { reset: { mode: 'none', thread: { mode: 'idle', idleMinutes: 10 } } } },
      },
    },
  });
});
afterAll(() => server[Symbol.asyncDispose]());

/** Returns the last messages sent to the model, without system texts. */
function sent(): string[] {
  const body = server.provider.requests.at(-1)?.body as { messages: { role: string; content: string }[] };
  return body.messages.filter(({ role }) => role === 'user').map(({ content }) => content);
}

const say = (message: string, sessionKey: string, agentId = 'default') => server.client.call('agent.execute', { message, sessionKey, agentId });

async function count(text: string): Promise<number> {
  return Number((await sql(server.homeDir, text))[0]?.['n']);
}

describe('session.reset', () => {
  test('the model starts without history, the messages stay; a second reset changes nothing', async () => {
    using socket = server.socket();
    const expired = server.heard('session:expired');
    const audited = server.heard('audit:event');
    const { conversationRef, sessionKey } = await say('one', 'reset:desk');
    await say('two', 'reset:desk');
    expect(sent()).toEqual(['one', 'two']);
    const identity = { conversationRef, sessionKey, agentId: 'default' };
    expect(await socket.call('session.reset', { conversationRef })).toEqual({ ...identity, reset: true, previousMessageCount: 4 });
    expect(await server.client.call('session.reset', { sessionKey })).toEqual({ ...identity, reset: true, previousMessageCount: 0 });
    expect(expired).toEqual([{ ...identity, reason: 'reset', timestamp: startMs }]);
    expect(audited.filter((event) => event.actionType === 'session.reset').map((event) => event.target)).toEqual([conversationRef, conversationRef]);
    await say('three', 'reset:desk');
    expect(sent()).toEqual(['three']);
    const history = await server.client.call('session.history', { conversationRef });
    expect(history.messages.filter(({ role }) => role === 'user').map(({ content }) => content)).toEqual(['one', 'two', 'three']);
    expect(history.session).toMatchObject({ resetCount: 1, resetSeq: 4, messageCount: 6, title: 'one' });
  });

  test("a caller's own conversation without messages has nothing to reset", async () => {
    const one = await server.as(['rpc']);
    expect(await one.call('session.reset', {})).toMatchObject({ reset: true, previousMessageCount: 0 });
    await expect(one.call('session.reset', { sessionKey: 'no:where' })).rejects.toMatchObject({ code: 'not_found' });
  });
});

describe('session.reset_conversation', () => {
  test('erases content and keeps identity and usage; a repeat is a no-op', async () => {
    const { client } = server;
    const expired = server.heard('session:expired');
    const created = server.heard('session:created');
    const { conversationRef, sessionKey } = await say('a secret wish', 'erase:desk');
    await client.call('session.reset', { conversationRef });
    expect(await client.call('session.reset_conversation', { sessionKey })).toEqual({
      conversationRef,
      messagesDeleted: 2,
      summariesDeleted: 0,
      runtimeSessionDestroyed: true,
    });
    const nothing = { conversationRef, messagesDeleted: 0, summariesDeleted: 0, runtimeSessionDestroyed: false };
    expect(await client.call('session.reset_conversation', { sessionKey })).toEqual(nothing);
    expect(expired.map(({ reason }) => reason)).toEqual(['reset', 'reset_conversation']);
    const history = await client.call('session.history', { conversationRef });
    expect(history).toMatchObject({ total: 0, messages: [], session: { messageCount: 0, totalTokens: 25, resetSeq: 0 } });
    expect(history.session.title).toBeUndefined();
    expect(await count(`SELECT count(*) AS n FROM conversation WHERE title LIKE '%secret wish%'`)).toBe(0);

    await say('again', 'erase:desk');
    expect(sent()).toEqual(['again']);
    expect((await client.call('session.history', { conversationRef })).messages.map(({ seq }) => seq)).toEqual([1, 2]);
    expect(created.filter((event) => event.conversationRef === conversationRef)).toHaveLength(1);
  });

  test('absent layers are not errors, and purging derived data requires deleting the memories', async () => {
    const { client } = server;
    const conversationRef = `cv_${'B'.repeat(43)}`;
    const zeros = { messagesDeleted: 0, summariesDeleted: 0, runtimeSessionDestroyed: false };
    const noMemories = { memoriesDeleted: 0, derivedDeleted: 0, derivedUnlinked: 0 };
    expect(await client.call('session.reset_conversation', { conversationRef })).toEqual({ conversationRef, ...zeros });
    for (const purge of [{}, { purgeDerived: true }, { purge_derived: true }]) {
      expect(await client.call('session.reset_conversation', { conversationRef, memory: true, ...purge })).toEqual({
        conversationRef,
        ...zeros,
        ...noMemories,
      });
    }
    for (const purge of [{ purgeDerived: true }, { purge_derived: true }]) {
      await expect(client.call('session.reset_conversation', { conversationRef, ...purge })).rejects.toMatchObject({
        code: 'invalid_params',
        issues: [{ path: 'memory' }],
      });
    }
  });

  test('a token limited to another agent erases nothing, and gets the same answer as for an unknown conversation', async () => {
    const limited = await server.as(['*'], { agents: ['idle'] });
    const { conversationRef } = await say('stay', 'kept:desk');
    const unknown = `cv_${'C'.repeat(43)}`;
    for (const memory of [false, true]) {
      const foreign = await limited.call('session.reset_conversation', { conversationRef, memory });
      const missing = await limited.call('session.reset_conversation', { conversationRef: unknown, memory });
      expect({ ...foreign, conversationRef: '' }).toEqual({ ...missing, conversationRef: '' });
    }
    expect((await server.client.call('session.history', { conversationRef })).total).toBe(2);
  });

  test('E19: 100 messages that race one reset are each fully erased or fully kept, with matching counts', async () => {
    const { client } = server;
    const key = 'race:desk';
    const { conversationRef } = await say('first', key);
    server.provider.setAnswer(() => ({ text: 'ok', delayMs: 2 }));
    let erased: Promise<{ messagesDeleted: number }> | undefined;
    const turns: Promise<unknown>[] = [];
    // A lane queues fifty: two waves, with the reset in the middle of the first.
    for (let wave = 0; wave < 2; wave++) {
      for (let i = 0; i < 50; i++) {
        turns.push(say(`m${wave * 50 + i}`, key));
        if (wave === 0 && i === 24) erased = client.call('session.reset_conversation', { conversationRef });
      }
      await expect.poll(async () => (await client.call('session.status', { conversationRef })).queued, { timeout: 20_000 }).toBe(0);
    }
    await Promise.all(turns);
    server.provider.setAnswer(undefined);
    const deleted = (await erased)?.messagesDeleted ?? 0;
    const { messages, total } = await client.call('session.history', { conversationRef, limit: 200 });
    expect(deleted + total).toBe(202);
    expect(deleted % 2).toBe(0);
    expect(messages.map(({ role }) => role)).toEqual(messages.map((_, i) => (i % 2 === 0 ? 'user' : 'assistant')));
    expect(messages.map(({ seq }) => seq)).toEqual(messages.map((_, i) => i + 1));
    // Pairs belong to one turn, and the kept messages are the latest.
    for (let i = 0; i < messages.length; i += 2) expect(messages[i]?.turnId).toBe(messages[i + 1]?.turnId);
    expect(new Set(messages.map(({ turnId }) => turnId)).size).toBe(messages.length / 2);
    expect(deleted).toBeGreaterThan(0);
    expect(deleted).toBeLessThan(202);
    expect((await client.call('session.history', { conversationRef })).session.messageCount).toBe(total);
    const rest = await client.call('session.reset_conversation', { conversationRef });
    expect(rest.messagesDeleted).toBe(total);
    expect((await client.call('session.reset_conversation', { conversationRef })).messagesDeleted).toBe(0);
  });
});

test('E21: fifty parallel messages to one key run as fifty turns, one at a time and in order', async () => {
  let running = 0;
  let most = 0;
  const calls: Promise<unknown>[] = [];
  server.provider.setAnswer(() => {
    most = Math.max(most, ++running);
    setTimeout(() => (running -= 1), 1);
    return { text: 'ok', delayMs: 2 };
  });
  for (let i = 0; i < 50; i++) calls.push(say(`m${i}`, 'parallel:desk'));
  await Promise.all(calls);
  server.provider.setAnswer(undefined);
  const { messages } = await server.client.call('session.history', { sessionKey: 'parallel:desk', limit: 100 });
  expect(messages.filter(({ role }) => role === 'user').map(({ content }) => content)).toEqual(Array.from({ length: 50 }, (_, i) => `m${i}`));
  expect(most).toBe(1);
});

describe('reset policy', () => {
  test('daily: the first message of a new day is sent alone; a group with the rule none continues', async () => {
    const expired = server.heard('session:expired');
    const { conversationRef, sessionKey } = await say('yesterday', 'day:desk', 'daily');
    await say('group yesterday', 'day:desk:group', 'daily');
    clock.advance(60_000);
    await say('still yesterday', 'day:desk', 'daily');
    expect(sent()).toEqual(['yesterday', 'still yesterday']);
    // 02:00 UTC is four o'clock in Berlin in summer.
    clock.advance(Date.UTC(2026, 8, 22, 2, 0) - clock.now());
    await say('today', 'day:desk', 'daily');
    expect(sent()).toEqual(['today']);
    await say('group today', 'day:desk:group', 'daily');
    expect(sent()).toEqual(['group yesterday', 'group today']);
    await say('more today', 'day:desk', 'daily');
    expect(sent()).toEqual(['today', 'more today']);
    expect(expired).toEqual([{ conversationRef, sessionKey, agentId: 'daily', reason: 'daily', timestamp: Date.UTC(2026, 8, 22, 2, 0) }]);
    expect((await server.client.call('session.history', { conversationRef })).session).toMatchObject({ resetCount: 1, messageCount: 8 });
  });

  test('idle: an idle thread is reset, a conversation without a rule is not', async () => {
    const expired = server.heard('session:expired');
    await say('before', 'idle:desk::7', 'idle');
    await say('dm before', 'idle:desk', 'idle');
    clock.advance(9 * 60_000);
    await say('in time', 'idle:desk::7', 'idle');
    expect(sent()).toEqual(['before', 'in time']);
    clock.advance(10 * 60_000);
    await say('too late', 'idle:desk::7', 'idle');
    expect(sent()).toEqual(['too late']);
    await say('dm later', 'idle:desk', 'idle');
    expect(sent()).toEqual(['dm before', 'dm later']);
    expect(expired.map(({ reason, sessionKey }) => [reason, sessionKey])).toEqual([['idle', 'idle:desk::7']]);
  });
});

describe('session.compact', () => {
  test('a short conversation has nothing to compact', async () => {
    const { conversationRef } = await say('short', 'compact:short');
    expect(await server.client.call('session.compact', { conversationRef })).toMatchObject({ compacted: false, method: 'none', summaries: 0 });
    expect((await server.client.call('session.history', { conversationRef })).session.compactions).toBe(0);
  });

  test('a long one is summarised and keeps every message, and the model gets fewer tokens', async () => {
    using socket = server.socket();
    const key = 'compact:long';
    for (let i = 0; i < 12; i++) await say(`message ${i} ${'about the harbour and its ships '.repeat(30)}`, key);
    server.provider.setAnswer((request) =>
      JSON.stringify(request.body).includes('Dwell on tides') ? { text: 'They spoke about the harbour.' } : { text: 'ok' },
    );
    const done = await socket.call('session.compact', { sessionKey: key, instructions: 'Dwell on tides' });
    expect(done).toMatchObject({ compacted: true, method: 'summary', messageCount: 24 });
    expect(done.summaries).toBeGreaterThan(0);
    expect(done.tokensAfter).toBeLessThan(done.tokensBefore / 2);
    await say('and now?', key);
    server.provider.setAnswer(undefined);
    const body = JSON.stringify(server.provider.requests.at(-1)?.body);
    expect(body).toContain('They spoke about the harbour.');
    expect(body).not.toContain('message 0 about');
    const { session } = await server.client.call('session.history', { sessionKey: key });
    expect(session).toMatchObject({ compactions: 1, messageCount: 26 });
  });
});

test('E20: deleting a conversation keeps its memories, and its archive keeps the transcript', async () => {
  const expired = server.heard('session:expired');
  const { conversationRef } = await say('archive me', 'delete:desk');
  await server.client.call('memory.store', { content: 'Ada likes archives' });
  const memories = await count('SELECT count(*) AS n FROM memory');
  expect(memories).toBeGreaterThan(0);
  const { archiveId } = await server.client.call('session.delete', { conversationRef });
  expect(await count('SELECT count(*) AS n FROM memory')).toBe(memories);
  expect(await count(`SELECT count(*) AS n FROM session_archive WHERE id = '${archiveId}' AND messages_json LIKE '%archive me%'`)).toBe(1);
  expect(expired.map(({ reason }) => reason)).toEqual(['deleted']);
});
