import type { TraceRecord } from '@gatehouse/contract';
import type { Client } from '@gatehouse/client';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import type { Tool } from '../../../runtime/tool.ts';

const note: Tool = {
  name: 'note',
  description: 'Notes a text.',
  args: z.strictObject({ text: z.string() }),
  risk: 'read',
  effect: 'pure',
  timeoutMs: 1000,
  run: async (args) => {
    const { text } = args as { readonly text: string };
    return text === 'fail' ? { content: 'the pen is dry', isError: true } : { content: `noted ${text}` };
  },
};

const calls = (text: string) => ({ toolCalls: [{ id: 'c1', name: 'note', arguments: JSON.stringify({ text }) }] });

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    tools: [note],
    config: { agents: { default: { model: 'mock/mock-fast', tools: { profile: 'minimal', allow: ['note'] } } } },
    provider: {
      answer: ({ body }) => {
        const text = JSON.stringify(body);
        if (text.includes('REFUSE')) return { status: 401, error: { message: 'Bananas are not accepted' } };
        if (text.includes('"role":"tool"')) return { text: 'All written down' };
        return calls(text.includes('FAIL') ? 'fail' : 'bread');
      },
    },
  });
});
afterAll(() => server[Symbol.asyncDispose]());

let questions = 0;
/** Returns the trace of a new conversation with one question. */
async function traceOf(message: string, client: Client = server.client): Promise<TraceRecord[]> {
  questions += 1;
  const { traceId } = await client.call('agent.execute', { message, sessionKey: { userId: 'ada', channelId: 'gateway', peerId: `p${questions}` } });
  return (await client.call('obs.trace.get', { ref: traceId })).records;
}

test('a turn keeps its model calls and tool calls with their tokens, cost and outcome', async () => {
  const [record, ...others] = await traceOf('Write this down');
  expect(others).toEqual([]);
  expect(record).toMatchObject({
    kind: 'turn',
    outcome: 'ok',
    endReason: 'stop',
    error: null,
    modelCalls: 2,
    toolCalls: 1,
    toolErrors: 0,
    agentId: 'default',
  });
  const steps = record?.steps.map(({ kind, name, parent, outcome }) => ({ kind, name, parent, outcome }));
  expect(steps).toEqual([
    { kind: 'context', name: 'model context', parent: undefined, outcome: 'ok' },
    { kind: 'model', name: 'mock/mock-fast', parent: undefined, outcome: 'ok' },
    { kind: 'attempt', name: 'mock/mock-fast', parent: 1, outcome: 'ok' },
    { kind: 'tool', name: 'note', parent: undefined, outcome: 'ok' },
    { kind: 'model', name: 'mock/mock-fast', parent: undefined, outcome: 'ok' },
    { kind: 'attempt', name: 'mock/mock-fast', parent: 4, outcome: 'ok' },
    { kind: 'outcome', name: 'success', parent: undefined, outcome: 'ok' },
  ]);
  const sum = (record?.steps ?? []).filter(({ kind }) => kind === 'attempt').reduce((total, { costNano }) => total + (costNano ?? 0), 0);
  expect(record?.costNano).toBe(sum);
  expect(sum).toBeGreaterThan(0);
});

test.each([
  { content: 'off', text: 'bread', kept: [] },
  { content: 'off', text: 'fail', kept: [] },
  { content: 'errors', text: 'bread', kept: [] },
  { content: 'errors', text: 'fail', kept: ['{"text":"fail"}', 'the pen is dry'] },
  { content: 'full', text: 'bread', kept: ['{"text":"bread"}', 'noted bread', 'All written down'] },
] as const)('with content "$content" a call with "$text" keeps $kept', async ({ content, text, kept }) => {
  await server.client.call('config.patch', { path: 'observability.content', value: content, confirm: true });
  const [record] = await traceOf(text === 'fail' ? 'FAIL' : 'Write this down');
  const tool = record?.steps.find(({ kind }) => kind === 'tool');
  expect(tool?.input).toMatchObject({ bytes: JSON.stringify({ text }).length, digest: expect.stringMatching(/^[0-9a-f]{16}$/) });
  const previews = record?.steps.flatMap(({ input, output }) => [input?.preview, output?.preview]).filter((one) => one !== undefined);
  for (const one of kept) expect(previews).toContainEqual(expect.stringContaining(one));
  if (kept.length === 0) expect(JSON.stringify(record)).not.toMatch(/"preview"|bread|dry/);
});

test('a failed turn keeps what the provider said for owners, and only its kind for others', async () => {
  await server.client.call('config.patch', { path: 'observability.content', value: 'errors', confirm: true });
  const ada = await server.as(['rpc']);
  for (const client of [server.client, ada]) {
    const records = await traceOf('REFUSE', client);
    expect(records).toMatchObject([{ outcome: 'failed', error: { kind: 'auth' } }]);
    expect(JSON.stringify(records).includes('Bananas')).toBe(client === server.client);
  }
});

test.each(['session.delete', 'session.reset_conversation'] as const)('%s removes the texts from the traces of the conversation', async (method) => {
  await server.client.call('config.patch', { path: 'observability.content', value: 'full', confirm: true });
  const { traceId, conversationRef } = await server.client.call('agent.execute', { message: 'FAIL', sessionKey: `root:${method}` });
  const { traceId: other } = await server.client.call('agent.execute', { message: 'FAIL', sessionKey: `other:${method}` });
  if (method === 'session.delete') await server.client.call(method, { conversationRef });
  else await server.client.call(method, { conversationRef, memory: false });
  const textOf = async (ref: string) => JSON.stringify((await server.client.call('obs.trace.get', { ref })).records);
  expect(await textOf(traceId)).toContain('"digest"');
  expect(await textOf(traceId)).not.toMatch(/"preview"|"text"|dry/);
  expect(await textOf(other)).toContain('the pen is dry');
});

test('nobody sees the trace of another principal', async () => {
  const { traceId } = await server.client.call('agent.execute', { message: 'Hi', sessionKey: 'root:gateway' });
  const ada = await server.as(['rpc']);
  await expect(ada.call('obs.trace.get', { ref: traceId })).rejects.toThrow('No trace has this reference');
});

test('without persistence nothing is kept', async () => {
  await server.client.call('config.patch', { path: 'observability.persistence.enabled', value: false, confirm: true });
  await expect(traceOf('Hello')).rejects.toThrow('No trace has this reference');
});
