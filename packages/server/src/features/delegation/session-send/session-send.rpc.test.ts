import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client } from '@gatehouse/client';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { interceptDb } from '../../access/approvals/testing/intercept-db.ts';

const withTools = { model: 'mock/mock-fast', tools: { profile: 'full' as const } };
/** The mark of a turn that received a message: it has read text from outside. */
const mayAnswer = [{ tools: ['sessions_send'], action: 'auto' as const, tainted: true }];
/** Runs around each write to the database. */
type Around = Parameters<typeof interceptDb>[0];
const writeAtOnce: Around = (_, write) => write();
let around = writeAtOnce;
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    db: interceptDb((call, write) => around(call, write)),
    config: { approvals: { rules: mayAnswer }, agents: { default: withTools, other: withTools } },
  });
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(() => server.provider.setAnswer(() => ({ text: 'Yes.', usage: { input: 10, output: 2 } })));

type Ada = Awaited<ReturnType<TestServer['as']>>;

const key = (peer: string) => ({ userId: 'ada', channelId: peer });
/** Creates a conversation and returns its reference. */
async function begin(client: Pick<Client, 'call'>, peer: string, message = `I am ${peer}`): Promise<string> {
  return (await client.call('agent.execute', { message, sessionKey: key(peer) })).conversationRef;
}
const said = async (client: Pick<Client, 'call'>, conversationRef: string) =>
  (await client.call('session.history', { conversationRef, limit: 100 })).messages.map(({ role, content }) => `${role}: ${content}`);

const Asked = z.object({ messages: z.array(z.object({ role: z.string(), content: z.string().catch('') })) });
const lastMessage = (body: unknown) => Asked.parse(body).messages.at(-1) ?? { role: 'none', content: '' };

describe('a token', () => {
  let ada: Ada;
  beforeAll(async () => {
    ada = await server.as(['rpc']);
  });

  test('sends its own text to a conversation; the answer is kept, and announced in the inbox when nobody waits', async () => {
    const conversationRef = await begin(ada, 'desk');
    const sent = server.heard('session:cross_send');
    using socket = server.socket(ada.token);
    for (const client of [ada, socket]) {
      server.provider.setAnswer(() => ({ text: 'Noted.' }));
      expect(await client.call('session.send', { conversationRef, text: 'The build is green.' })).toEqual({
        sent: true,
        conversationRef,
        sessionKey: 'ada:desk',
        agentId: 'default',
        mode: 'fire-and-forget',
      });
    }
    await expect
      .poll(async () => (await said(ada, conversationRef)).slice(2))
      .toEqual(['user: The build is green.', 'assistant: Noted.', 'user: The build is green.', 'assistant: Noted.']);
    await expect
      .poll(async () => (await ada.call('inbox.list', {})).messages.map(({ text, source }) => `${source} ${text}`))
      .toEqual(['turn Noted.', 'turn Noted.']);
    expect(sent).toMatchObject([
      { fromRef: null, toRef: conversationRef, toSessionKey: 'ada:desk', mode: 'fire-and-forget' },
      { fromRef: null, toRef: conversationRef },
    ]);
  });

  test('waits for the answer and its cost; nothing goes to the inbox', async () => {
    const conversationRef = await begin(ada, 'waiting');
    const { unread } = await ada.call('inbox.list', {});
    const reply = await ada.call('session.send', { conversationRef, text: 'Done?', mode: 'wait' });
    expect(reply).toMatchObject({ sent: true, mode: 'wait', response: 'Yes.', announced: false, stats: { totalTokens: 12, totalCost: 14e-6 } });
    expect(reply.turnsCompleted).toBeUndefined();
    expect((await ada.call('inbox.list', {})).unread).toBe(unread);
  });

  test('gets an error when the wait times out or the turn fails; the turn continues, and its answer goes to the inbox', async () => {
    const conversationRef = await begin(ada, 'slow');
    const answered = Promise.withResolvers<void>();
    server.provider.queue({ text: 'Late.', after: answered.promise });
    await expect(ada.call('session.send', { conversationRef, text: 'Quick!', mode: 'wait', timeoutMs: 100 })).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringContaining('100 ms'),
    });
    answered.resolve();
    await expect.poll(async () => (await said(ada, conversationRef)).at(-1)).toBe('assistant: Late.');
    await expect.poll(async () => (await ada.call('inbox.list', {})).messages[0]?.text).toBe('Late.');
    server.provider.setAnswer(() => ({ status: 400, error: { message: 'no' } }));
    await expect(ada.call('session.send', { conversationRef, text: 'Again', mode: 'wait' })).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('did not answer'),
    });
  });

  test('lets its own conversation and another answer each other, fenced, until one skips', async () => {
    const conversationRef = await begin(ada, 'partner');
    const turns = server.heard('session:ping_pong_turn');
    let count = 0;
    server.provider.setAnswer(() => ({ text: `Answer ${(count += 1)}` }));
    const own = await ada.call('session.send', { conversationRef, text: 'Let us talk.', mode: 'ping-pong', maxTurns: 3 });
    expect(own).toMatchObject({ response: 'Answer 4', announced: false, turnsCompleted: 3 });
    expect(turns.map(({ turnNumber, totalTurns, toRef }) => [turnNumber, totalTurns, toRef === conversationRef])).toEqual([
      [1, 3, true],
      [2, 3, false],
      [3, 3, true],
    ]);
    const partner = await said(ada, conversationRef);
    expect(partner.slice(2).map((line) => line.slice(0, 40))).toEqual([
      'user: Let us talk.',
      'assistant: Answer 1',
      expect.stringContaining('user: The conversation'),
      'assistant: Answer 3',
    ]);
    expect(partner[4]).toMatch(/<<<UNTRUSTED-TEXT [0-9a-f]{32} provenance="clean" source="conversation">>>\nAnswer 2\n/);
    server.provider.setAnswer(() => ({ text: 'Bye. [ANNOUNCE_SKIP]' }));
    const ended = await ada.call('session.send', { conversationRef, text: 'Bye.', mode: 'ping-pong' });
    expect(ended).toMatchObject({ response: 'Bye. [ANNOUNCE_SKIP]', turnsCompleted: 0 });
    await expect(ada.call('session.send', { text: 'me', mode: 'ping-pong' })).rejects.toMatchObject({
      code: 'precondition_failed',
      message: expect.stringContaining('cannot wait for itself'),
    });
  });

  test('sends nothing to a conversation that is deleted before its turn, and does not recreate it', async () => {
    const conversationRef = await begin(ada, 'doomed');
    const answered = Promise.withResolvers<void>();
    server.provider.queue({ text: 'Late.', after: answered.promise });
    const sent = { conversationRef, mode: 'wait' as const, timeoutMs: 20_000 };
    const first = ada.call('session.send', { ...sent, text: 'One' }).catch(({ code }: { code: string }) => code);
    await expect.poll(() => server.provider.requests.some(({ body }) => lastMessage(body).content === 'One')).toBe(true);
    let isAccepted = false;
    around = async ({ operation }, write) => {
      const output = await write();
      isAccepted ||= operation === 'sessionSend.accept';
      return output;
    };
    const second = ada.call('session.send', { ...sent, text: 'Two' }).catch(({ code }: { code: string }) => code);
    await expect.poll(() => isAccepted).toBe(true);
    around = writeAtOnce;
    await server.client.call('session.delete', { conversationRef });
    answered.resolve();
    expect(await first).toBe('unavailable');
    expect(await second).toBe('unavailable');
    await expect(ada.call('session.history', { conversationRef })).rejects.toMatchObject({ code: 'not_found' });
    expect(server.provider.requests.some(({ body }) => lastMessage(body).content === 'Two')).toBe(false);
  });

  test('sends nothing to a conversation that is deleted between lookup and acceptance', async () => {
    const conversationRef = await begin(ada, 'gone');
    const asked = server.provider.requests.length;
    // The deletion is stored when the message has been looked up and is about to be accepted.
    const lookedUp = Promise.withResolvers<void>();
    let deletion: Promise<unknown> | undefined;
    around = async ({ operation }, write) => {
      if (operation === 'sessionSend.accept') {
        lookedUp.resolve();
        await deletion;
      }
      if (operation !== 'sessions.delete') return write();
      deletion = lookedUp.promise.then(write);
      return deletion;
    };
    const deleted = server.client.call('session.delete', { conversationRef });
    await expect.poll(() => deletion !== undefined).toBe(true);
    const sent = ada.call('session.send', { conversationRef, text: 'Too late.' }).catch(({ code }: { code: string }) => code);
    expect(await deleted).toMatchObject({ deleted: true });
    expect(await sent).toBe('not_found');
    around = writeAtOnce;
    // Any accepted work would run before it.
    await begin(ada, 'later');
    expect(server.provider.requests.length).toBe(asked + 1);
    await expect(ada.call('session.status', { conversationRef })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('learns nothing about conversations of others; an admin reaches them, and their owner is notified', async () => {
    const bob = await server.as(['rpc']);
    const conversationRef = await begin(bob, 'bobs');
    const unknown = 'cv_0000000000000000000000000000000000000000000';
    const refusals = await Promise.all(
      [conversationRef, unknown].map((ref) => ada.call('session.send', { conversationRef: ref, text: 'Hello' }).catch((error: unknown) => error)),
    );
    const { code, message } = refusals[0] as Error & { code: string };
    expect(refusals[1]).toMatchObject({ code, message });
    expect(code).toBe('not_found');
    const reply = await server.client.call('session.send', { conversationRef, text: 'From the operator', mode: 'wait' });
    expect(reply).toMatchObject({ response: 'Yes.', announced: true });
    expect((await bob.call('inbox.list', {})).messages[0]).toMatchObject({ text: 'Yes.', conversationRef });
    await expect((await server.as(['api'])).call('session.send', { conversationRef, text: 'x' })).rejects.toMatchObject({
      code: 'insufficient_scope',
    });
    for (const bad of [{ text: '' }, { text: 'x', mode: 'shout' }, { text: 'x', maxTurns: 6 }, { text: 'x', timeoutMs: 0 }, { text: 'x', more: 1 }])
      await expect(ada.call('session.send', { conversationRef, ...bad } as never), JSON.stringify(bad)).rejects.toMatchObject({
        code: 'invalid_params',
      });
  });
});

describe('an agent', () => {
  let ada: Ada;
  beforeEach(async () => {
    ada = await server.as(['rpc']);
  });

  /** Runs a turn whose agent calls the tool once; returns the tool result. */
  async function use(peer: string, args: Record<string, unknown>): Promise<string> {
    server.provider.setAnswer((request) => {
      const last = lastMessage(request.body);
      if (last.role !== 'user' || !last.content.endsWith('use the tool')) return { text: 'Answered.' };
      return { toolCalls: [{ id: 'c1', name: 'sessions_send', arguments: JSON.stringify(args) }] };
    });
    const { conversationRef } = await ada.call('agent.execute', { message: 'use the tool', sessionKey: key(peer) });
    const { messages } = await ada.call('session.history', { conversationRef, limit: 50 });
    return messages.findLast(({ role }) => role === 'tool')?.content ?? '(the tool was not called)';
  }

  test('sends to its own conversation with the same person: the message and the answer are fenced', async () => {
    const target = await begin(ada, 'target');
    const answer = await use('asking', { conversationRef: target, text: 'What is the state?', mode: 'wait' });
    expect(answer).toMatch(/^<<<UNTRUSTED-TEXT [0-9a-f]{32} provenance="clean" source="conversation">>>\nAnswered\.\n/);
    const lines = await said(ada, target);
    expect(lines.at(-2)).toMatch(
      /^user: The conversation ada:asking \(agent default, cv_[\w-]{43}\) sent a message here\. It is waiting for your answer\.\n\n<<<UNTR/,
    );
    expect(lines.at(-1)).toBe('assistant: Answered.');
    expect(await use('sending', { conversationRef: target, text: 'Just so you know.' })).toBe('Sent to agent default.');
    await expect.poll(async () => (await ada.call('inbox.list', {})).messages.map(({ text }) => text)).toEqual(['Answered.']);
  });

  test('does not wait for itself, and does not reach foreign conversations', async () => {
    const own = await begin(ada, 'self');
    expect(await use('self', { conversationRef: own, text: 'Me', mode: 'wait' })).toContain('cannot wait for itself');
    expect(await use('self', { conversationRef: own, text: 'Me' })).toBe('Sent to agent default.');
    await expect.poll(async () => (await said(ada, own)).some((line) => line.includes('sent a message here'))).toBe(true);
    const bob = await server.as(['rpc']);
    const foreign = await begin(bob, 'bobs');
    const otherAgent = (await ada.call('agent.execute', { message: 'Hello', agentId: 'other' })).conversationRef;
    const unknown = 'cv_0000000000000000000000000000000000000000000';
    const answers = new Set<string>();
    for (const conversationRef of [foreign, otherAgent, unknown]) answers.add(await use('asking', { conversationRef, text: 'Hello' }));
    expect([...answers]).toEqual(['Conversation not found']);
  });

  test('reaches exactly the sub-agents that its own conversation requested, and grants them no additional tools', async () => {
    const heard = server.heard('session:sub_agent_completed');
    const callOnce = (name: string, args: Record<string, unknown>) => (body: unknown) => {
      const last = lastMessage(body);
      return last.role === 'user' && last.content.endsWith('use the tool')
        ? { toolCalls: [{ id: 'c1', name, arguments: JSON.stringify(args) }] }
        : { text: 'Answered.' };
    };
    server.provider.setAnswer(({ body }) => callOnce('sessions_spawn', { task: 'Count to ten.', toolGroups: ['files'] })(body));
    await ada.call('agent.execute', { message: 'use the tool', sessionKey: key('parent') });
    await expect.poll(() => heard.length).toBe(1);
    const { sessions } = await ada.call('session.list', { kind: 'all' });
    const child = sessions.find(({ sessionKey }) => sessionKey.startsWith('subagent:gateway:'))?.conversationRef ?? '';
    const offered: unknown[] = [];
    server.provider.setAnswer(({ body }) => {
      if (lastMessage(body).content.includes('And on to twenty')) offered.push(z.object({ tools: z.array(z.unknown()) }).parse(body).tools);
      return callOnce('sessions_send', { conversationRef: child, text: 'And on to twenty.', mode: 'wait' })(body);
    });
    // The sub-agent's answer was added to the conversation, where it counts as text from outside.
    const { conversationRef } = await ada.call('agent.execute', { message: 'use the tool', sessionKey: key('parent') });
    const { messages } = await ada.call('session.history', { conversationRef, limit: 50 });
    expect(messages.findLast(({ role }) => role === 'tool')?.content).toContain('Answered.');
    expect(JSON.stringify(offered)).toContain('"grep"');
    expect(JSON.stringify(offered)).not.toContain('"web_fetch"');
    expect(await use('stranger', { conversationRef: child, text: 'Hello' })).toBe('Conversation not found');
  });

  test('sends nothing after its run is killed: open messages end with it', async () => {
    const target = await begin(ada, 'busy');
    let hung = 0;
    server.provider.setAnswer(({ body }) => {
      const last = lastMessage(body);
      if (last.content.includes('Never answer')) {
        hung += 1;
        return { hang: true };
      }
      if (last.role !== 'user' || !last.content.endsWith('use the tool')) return { text: 'Answered.' };
      return {
        toolCalls: [{ id: 'c1', name: 'sessions_send', arguments: JSON.stringify({ conversationRef: target, text: 'Never answer', mode: 'wait' }) }],
      };
    });
    const decided = server.heard('capability:audited');
    const turn = ada.call('agent.execute', { message: 'use the tool', sessionKey: key('killed') });
    await expect.poll(() => hung).toBe(1);
    await server.client.call('run.kill', { rootRunId: decided[0]?.rootRunId ?? '' });
    await expect(turn).resolves.toMatchObject({ finishReason: 'aborted' });
    server.provider.setAnswer(() => ({ text: 'Free again.' }));
    expect((await ada.call('agent.execute', { message: 'Hello', sessionKey: key('busy') })).response).toBe('Free again.');
    expect(await said(ada, target)).not.toContain('assistant: Answered.');
  });

  test('ping-pong conversations answer each other once the turn that started it has ended', async () => {
    const target = await begin(ada, 'pong');
    expect(await use('ping', { conversationRef: target, text: 'Begin.', mode: 'ping-pong', maxTurns: 2 })).toContain('once your turn has ended');
    await expect.poll(async () => (await ada.call('inbox.list', {})).messages.map(({ text }) => text)).toEqual(['Answered.']);
    const ping = (await ada.call('session.list', {})).sessions.find(({ sessionKey }) => sessionKey === 'ada:ping');
    const lines = await said(ada, ping?.conversationRef ?? '');
    expect(lines.at(-2)).toContain('The conversation ada:pong (agent default');
    expect(lines.at(-2)).toContain('Answered.');
  });

  test('is refused at once when two conversations would wait for each other', async () => {
    const first = await begin(ada, 'first');
    const second = await begin(ada, 'second');
    const send = (id: string, conversationRef: string) => ({
      toolCalls: [
        { id, name: 'sessions_send', arguments: JSON.stringify({ conversationRef, text: 'over to you', mode: 'wait', timeoutMs: 60_000 }) },
      ],
    });
    server.provider.setAnswer((request) => {
      const text = JSON.stringify(request.body);
      if (lastMessage(request.body).role === 'tool') return { text: 'So be it.' };
      return text.includes('I am second') ? send('c2', first) : send('c1', second);
    });
    await ada.call('agent.execute', { message: 'Ask the other one', sessionKey: key('first') });
    const { messages } = await ada.call('session.history', { conversationRef: second, limit: 50 });
    expect(messages.find(({ role }) => role === 'tool')?.content).toContain('is waiting for this one');
  });
});

test('an exchange survives a restart at each of its answers, and no answer is repeated', async () => {
  const homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-send-'));
  const config = { gateway: { drainTimeoutMs: 50, tokens: [{ id: 'owner', secret: 'x'.repeat(40), scopes: ['*' as const] }] } };
  /** Answers this many model calls, and then none. */
  async function runUntil(answers: readonly string[], work: (server: TestServer) => Promise<void>) {
    const remaining = [...answers];
    // From the start: what was interrupted continues at once.
    const answer = () => (remaining.length === 0 ? { hang: true as const } : { text: remaining.shift() ?? '' });
    await using own = await startTestServer({ homeDir, config, provider: { answer } });
    await work(own);
  }
  const servedBy = (own: TestServer, calls: number) => expect.poll(() => own.provider.served()).toBe(calls);
  try {
    let conversationRef = '';
    await runUntil(['Hello.'], async (own) => {
      conversationRef = await begin(own.client, 'kept');
      const send = { conversationRef, text: 'Do it once.', mode: 'ping-pong' as const, maxTurns: 2 };
      void own.client.call('session.send', send).catch(() => {});
      await servedBy(own, 2);
    });
    await runUntil(['One.'], (own) => servedBy(own, 2));
    await runUntil(['Two.'], (own) => servedBy(own, 2));
    await runUntil(['Three.'], async (own) => {
      const inbox = async () => (await own.client.call('inbox.list', {})).messages.map(({ text }) => text);
      await expect.poll(inbox).toEqual(['Three.']);
      const answers = (await said(own.client, conversationRef)).filter((line) => line.startsWith('assistant'));
      expect(answers).toEqual(['assistant: Hello.', 'assistant: One.', 'assistant: Three.']);
      const { messages } = await own.client.call('session.history', { limit: 50 });
      expect(messages.filter(({ role }) => role === 'assistant').map(({ content }) => content)).toEqual(['Two.']);
    });
  } finally {
    await rm(homeDir, { recursive: true, force: true });
  }
});

test('nothing is sent when the policy is off', async () => {
  await using off = await startTestServer({ config: { security: { agentToAgent: { enabled: false } } } });
  const conversationRef = await begin(off.client, 'desk');
  await expect(off.client.call('session.send', { conversationRef, text: 'Hello' })).rejects.toMatchObject({
    code: 'denied',
    message: expect.stringContaining('security.agentToAgent.enabled'),
  });
});

test('a conversation has at most fifty open messages, after which senders are refused; maxTurns is only allowed with ping-pong', async () => {
  const bob = await server.as(['rpc']);
  const conversationRef = await begin(bob, 'crowded');
  for (const mode of ['wait', 'fire-and-forget'] as const)
    await expect(bob.call('session.send', { conversationRef, text: 'x', mode, maxTurns: 2 })).rejects.toMatchObject({
      code: 'invalid_params',
      issues: [{ path: 'maxTurns' }],
    });
  const answered = Promise.withResolvers<void>();
  server.provider.setAnswer(() => ({ text: 'Slow.', after: answered.promise }));
  const settled = await Promise.allSettled(Array.from({ length: 60 }, () => bob.call('session.send', { conversationRef, text: 'One more' })));
  const refused = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
  expect(refused).toHaveLength(10);
  for (const error of refused)
    expect(error).toMatchObject({
      code: 'rate_limited',
      message: expect.stringContaining('Too many messages are waiting for this conversation (limit 50)'),
    });
  // Another conversation of the same agent has its own limit.
  server.provider.setAnswer(() => ({ text: 'Yes.' }));
  const roomy = await begin(bob, 'roomy');
  expect(await bob.call('session.send', { conversationRef: roomy, text: 'Hi' })).toMatchObject({ sent: true });
  answered.resolve();
  await server.client.call('session.delete', { conversationRef });
});
