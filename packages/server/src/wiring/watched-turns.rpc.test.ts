import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EventKind } from '@gatehouse/contract';
import { createClient, type ServerEvent } from '@gatehouse/client';
import { copyHome, sql, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import type { Tool } from '../runtime/tool.ts';

const secret = 'the-secret-of-this-installation';
const talking: Tool = {
  name: 'talking',
  description: 'Prints while it runs.',
  args: z.strictObject({}),
  risk: 'read',
  effect: 'pure',
  timeoutMs: 60_000,
  async run(_args, { onOutput }) {
    onOutput?.(`line one ${secret.slice(0, 10)}`);
    onOutput?.(`${secret.slice(10)}\nline two\nunfinished`);
    await expect.poll(() => heard.some(({ kind }) => kind === 'tool:output') || onOutput === undefined).toBe(true);
    return { content: `finished with ${secret} and ${'x'.repeat(5000)}` };
  },
};

const counting: Tool = {
  name: 'counting',
  description: 'Returns its number.',
  args: z.strictObject({ n: z.int() }),
  risk: 'read',
  effect: 'pure',
  timeoutMs: 1000,
  run: async ({ n }) => ({ content: String(n) }),
};

let server: TestServer;
let heard: (ServerEvent | { readonly kind: 'gap'; readonly payload: unknown })[] = [];
const watching = new AbortController();

beforeAll(async () => {
  server = await startTestServer({
    tools: [talking, counting],
    secrets: [secret],
    config: { agents: { default: { model: 'mock/mock-fast', tools: { allow: ['talking', 'counting'] } } } },
  });
});
afterAll(async () => {
  watching.abort();
  await server[Symbol.asyncDispose]();
});

/** Follows some kinds of events while `work` runs. */
async function watch(kinds: readonly EventKind[], work: () => Promise<unknown>) {
  heard = [];
  const stop = new AbortController();
  const opened = Promise.withResolvers<void>();
  const reading = (async () => {
    const events = server.client.events({ kinds, signal: stop.signal, onState: (state) => state === 'open' && opened.resolve() });
    try {
      for await (const event of events) heard.push(event);
    } catch (error) {
      if (!stop.signal.aborted) throw error;
    }
  })();
  await opened.promise;
  await work();
  stop.abort();
  await reading;
  return heard;
}

const ask = (message: string, sessionKey: string) => server.client.call('agent.execute', { message, sessionKey });

test('message:thinking has the reasoning of a model, for streams that name it', async () => {
  const answer = { reasoning: ['First this, ', 'then that.'], text: 'Done.' };
  server.provider.queue(answer, answer);
  const seen = await watch(['message:thinking', 'message:sent'], async () => {
    expect((await ask('Think', 'think:one')).response).toBe('Done.');
    await expect.poll(() => heard.some(({ kind }) => kind === 'message:sent')).toBe(true);
  });
  const thoughts = seen.flatMap((event) => (event.kind === 'message:thinking' ? [event.payload] : []));
  expect(thoughts.map(({ delta }) => delta).join('')).toBe('First this, then that.');
  expect(thoughts[0]).toMatchObject({ sessionKey: 'think:one', agentId: 'default', origin: 'rpc' });
  // Text alone is not mixed with it.
  const streamed = await watch(['message:streaming', 'message:sent'], async () => {
    await ask('Think again', 'think:two');
    await expect.poll(() => heard.some(({ kind }) => kind === 'message:sent')).toBe(true);
  });
  expect(streamed.flatMap((event) => (event.kind === 'message:streaming' ? [event.payload.delta] : [])).join('')).toBe('Done.');
});

test('streamed reasoning is stored with its answer for people, and no model gets it back', async () => {
  const address = { sessionKey: 'think:kept' };
  const stream = async (message: string) => {
    for await (const event of server.client.streamTurn({ ...address, message }, { retry: { retries: 0 } }))
      if (event.type === 'done') return event.result;
    return expect.unreachable();
  };
  const call = { id: 'k1', name: 'counting', arguments: '{"n":1}' };
  server.provider.queue({ reasoning: ['Count ', `with ${secret}.`], toolCalls: [call] }, { reasoning: ['Then answer.'], text: 'One.' });
  const { conversationRef } = await stream('How many?');
  const history = async (conversation: string) => (await server.client.call('session.history', { conversationRef: conversation })).messages;
  const thoughts = async (conversation: string) =>
    (await history(conversation)).flatMap(({ role, reasoning }) => (reasoning ? [[role, reasoning.text]] : []));
  const kept = [
    ['assistant', 'Count with [REDACTED].'],
    ['assistant', 'Then answer.'],
  ];
  expect(await thoughts(conversationRef)).toEqual(kept);
  expect((await history(conversationRef))[3]?.reasoning).toEqual({ text: 'Then answer.', durationMs: expect.any(Number) });
  expect(JSON.stringify(server.provider.requests.at(-1)?.body)).not.toContain('Count with');
  const fork = await server.client.call('session.fork', { conversationRef });
  expect(await thoughts(fork.conversationRef)).toEqual(kept);
  expect((await server.client.call('session.export', { conversationRef })).messages[1]?.reasoning?.text).toBe('Count with [REDACTED].');
  server.provider.queue({ reasoning: ['ab'.repeat(20_000)], text: 'Long.' });
  await stream('And now?');
  expect(JSON.stringify(server.provider.requests.at(-1)?.body)).not.toContain('Then answer.');
  expect((await history(conversationRef)).at(-1)?.reasoning).toMatchObject({ text: 'ab'.repeat(16_000), cut: true });
  await server.client.call('agents.update', { agentId: 'default', config: { session: { keepReasoning: false } } });
  server.provider.queue({ reasoning: ['Not this.'], text: 'Quiet.' });
  await stream('Quietly');
  expect((await history(conversationRef)).at(-1)).not.toHaveProperty('reasoning');
  await server.client.call('agents.update', { agentId: 'default', config: { session: { keepReasoning: null } } });
});

test('tool:output shows whole lines while a call runs, and its end the beginning of the result, without secrets', async () => {
  server.provider.queue({ toolCalls: [{ id: 't1', name: 'talking', arguments: '{}' }] }, { text: 'Said.' });
  const seen = await watch(['tool:started', 'tool:output', 'tool:finished'], async () => {
    await ask('Speak', 'talk:one');
    await expect.poll(() => heard.some(({ kind }) => kind === 'tool:finished')).toBe(true);
  });
  expect(seen.map(({ kind }) => kind)).toEqual(['tool:started', 'tool:output', 'tool:finished']);
  const [, output, finished] = seen;
  expect(output?.payload).toMatchObject({ toolName: 'talking', callId: 't1', delta: 'line one [REDACTED]\nline two\n' });
  expect(finished?.payload).toMatchObject({ outcome: 'ok', result: expect.stringMatching(/^finished with \[REDACTED\] and x{100}/) });
  expect(JSON.stringify(finished?.payload).length).toBeLessThan(2600);
});

test('session.stop ends the running turn of a conversation that the caller may use, and keeps what it said', async () => {
  server.provider.queue({ text: ['Begun ', 'never'], breakAfter: { deltas: 1, by: 'stall' } });
  const aborted = server.provider.aborted();
  const running = (async () => {
    const events = [];
    for await (const event of server.client.streamTurn({ message: 'Answer at length', sessionKey: 'stop:one' }, { retry: { retries: 0 } }))
      events.push(event);
    return events;
  })();
  running.catch(() => undefined);
  await expect.poll(async () => (await server.client.call('session.status', { sessionKey: 'stop:one' }).catch(() => undefined))?.running).toBe(true);
  await expect.poll(() => server.provider.served()).toBeGreaterThan(0);
  const { conversationRef } = await server.client.call('session.status', { sessionKey: 'stop:one' });
  const other = await server.as(['rpc']);
  await expect(other.call('session.stop', { conversationRef })).rejects.toMatchObject({ code: 'not_found' });
  expect(server.provider.aborted()).toBe(aborted);
  expect(await server.client.call('session.stop', { conversationRef })).toMatchObject({ conversationRef, sessionKey: 'stop:one', turns: 1 });
  await expect.poll(() => server.provider.aborted()).toBe(aborted + 1);
  await running.catch(() => undefined);
  expect(await server.client.call('session.stop', { sessionKey: 'stop:one' })).toMatchObject({ turns: 0, messages: 0 });
  await expect(server.client.call('session.stop', { sessionKey: 'no:where' })).rejects.toMatchObject({ code: 'not_found' });
});

test('session.steer passes a message to the running turn, which continues with it', async () => {
  const address = { sessionKey: 'steer:one' };
  const steer = (message: string) => server.client.call('session.steer', { ...address, message });
  await expect(steer('Nobody works')).rejects.toMatchObject({ code: 'precondition_failed' });
  let steps = 0;
  server.provider.setAnswer(({ body }) => {
    if (JSON.stringify(body).includes('Only the last quarter.')) return { text: 'The last quarter.' };
    steps += 1;
    // Each step takes as long as a model does, so that the message comes before the limit of steps.
    return { text: `Month ${steps}.`, paceMs: 10, toolCalls: [{ id: `c${steps}`, name: 'counting', arguments: `{"n":${steps}}` }] };
  });
  const asked = ask('Sum it up', address.sessionKey);
  await expect.poll(() => steps).toBeGreaterThan(0);
  const { conversationRef } = await server.client.call('session.status', address);
  const stranger = await server.as(['rpc']);
  await expect(stranger.call('session.steer', { conversationRef, message: 'x' })).rejects.toMatchObject({ code: 'not_found' });
  expect(await steer('Only the last quarter.')).toEqual({ ...address, agentId: 'default', conversationRef, taken: true });
  expect((await asked).response).toMatch(/^Month 1\.\n\n.*The last quarter\.$/s);
  server.provider.setAnswer(undefined);
  const { total } = await server.client.call('session.history', { conversationRef, limit: 1 });
  const { messages } = await server.client.call('session.history', { conversationRef, offset: Math.max(0, total - 200), limit: 200 });
  expect(messages.slice(-3).map(({ role, content }) => [role, content])).toEqual([
    ['tool', `${steps}`],
    ['user', 'Only the last quarter.'],
    ['assistant', 'The last quarter.'],
  ]);
  expect(new Set(messages.map(({ turnId }) => turnId)).size).toBe(1);
});

test('neither a narrower token of the same person nor the stop of the turn lets a message through', async () => {
  const callOf = async (id: string, limit: { readonly agents?: string[] } = {}) =>
    createClient({ url: server.url, token: (await server.client.call('tokens.create', { id, person: 'ada', scopes: ['rpc'], ...limit })).secret })
      .call;
  const [wide, narrow] = [await callOf('wide'), await callOf('narrow', { agents: ['default'] })];
  const address = { sessionKey: 'steer:two' };
  const before = server.provider.served();
  server.provider.queue({ hang: true });
  const asked = wide('agent.execute', { ...address, message: 'Answer at length' }).catch((error: unknown) => error);
  await expect.poll(() => server.provider.served()).toBe(before + 1);
  await expect(narrow('session.steer', { ...address, message: 'Do mine' })).rejects.toMatchObject({
    code: 'denied',
    message: expect.stringMatching(/^message: /),
  });
  const offered = wide('session.steer', { ...address, message: 'Too late' }).catch(({ code }: { code: string }) => code);
  await narrow('session.stop', address);
  expect(await offered).toBe('precondition_failed');
  await asked;
});

/** Starts a turn that has taken two messages and waits for its model; the model fails after `end`. */
async function steered(at: TestServer, sessionKey: string) {
  const address = { sessionKey };
  const last = Promise.withResolvers<void>();
  let steps = 0;
  at.provider.setAnswer(({ body }) => {
    const sent = JSON.stringify(body);
    if (['Only the last quarter.', 'In euros.'].every((text) => sent.includes(text))) return { after: last.promise, status: 400 };
    steps += 1;
    return { text: `Month ${steps}.`, paceMs: 10, toolCalls: [{ id: `c${steps}`, name: 'counting', arguments: `{"n":${steps}}` }] };
  });
  const asked = at.client.call('agent.execute', { ...address, message: 'Sum it up' }).catch((error: unknown) => error);
  await expect.poll(() => steps).toBeGreaterThan(0);
  await at.client.call('session.steer', { ...address, message: 'Only the last quarter.' });
  await at.client.call('session.steer', { ...address, message: 'In euros.' });
  return { asked, address, end: last.resolve };
}

const textsOf = async (at: TestServer, address: { readonly sessionKey: string }) =>
  (await at.client.call('session.history', { ...address, limit: 200 })).messages.map(({ role, content }) => [role, content]);

const config = { agents: { default: { model: 'mock/mock-fast', tools: { allow: ['counting'] } } } };

test.each(['fail', 'stop'] as const)('a message that a turn has taken is stored once with it when the turn ends by: %s', async (by) => {
  await using own = await startTestServer({ tools: [counting], config });
  const { asked, end, address } = await steered(own, `steer:${by}`);
  if (by === 'fail') end();
  else await own.client.call('session.stop', address);
  await asked;
  end();
  const texts = (await textsOf(own, address)).filter(([role]) => role === 'user').map(([, text]) => text);
  expect(texts[0]).toBe('Sum it up');
  expect(texts.slice(1).join('\n\n')).toBe('Only the last quarter.\n\nIn euros.');
  expect(await sql(own.homeDir, 'SELECT id FROM turn_message')).toEqual([]);
});

test('a message that a turn has taken survives the kill of the daemon, and the next turn reads it', async () => {
  const homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-copy-'));
  try {
    await using dying = await startTestServer({ tools: [counting], config });
    const { asked, end, address } = await steered(dying, 'steer:killed');
    await copyHome(dying.homeDir, homeDir);
    end();
    await asked;
    await using restarted = await startTestServer({ tools: [counting], config, homeDir });
    const kept = [
      ['user', 'Only the last quarter.'],
      ['user', 'In euros.'],
    ];
    expect(await textsOf(restarted, address)).toEqual(kept);
    expect(await sql(homeDir, 'SELECT id FROM turn_message')).toEqual([]);
    await restarted.client.call('agent.execute', { ...address, message: 'Go on' });
    const sent = JSON.stringify(restarted.provider.requests.at(-1)?.body);
    for (const [, text = ''] of [...kept, ['user', 'Go on']]) expect(sent).toContain(text);
  } finally {
    await rm(homeDir, { recursive: true, force: true });
  }
});
