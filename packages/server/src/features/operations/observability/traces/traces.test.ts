import { startTestServer } from '@gatehouse/testkit';
import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import * as z from 'zod';
import type { Tool } from '../../../../runtime/tool.ts';
import { type SentSpan, startCollector } from './testing/collector.ts';

const canary = 'the-canary-sings-at-midnight';

/** Returns `name` of each span with those of its children, from the one without a parent among them. */
function tree(spans: readonly SentSpan[], parent?: string): object {
  const children = spans
    .filter((span) => (parent === undefined ? !spans.some((other) => other.spanId === span.parentSpanId) : span.parentSpanId === parent))
    .toSorted((a, b) => Number(a.startTimeUnixNano - b.startTimeUnixNano));
  return children.map((span) => ({ [span.name]: tree(spans, span.spanId) }));
}

const tool: Tool = {
  name: 'look_up',
  description: 'Looks something up.',
  args: z.strictObject({ what: z.string() }),
  risk: 'read',
  effect: 'pure',
  timeoutMs: 1_000,
  run: async () => ({ content: `found ${canary}` }),
};

const traced = (endpoint: string, sampleRatio = 1) =>
  startTestServer({
    tools: [tool],
    config: {
      observability: { traces: { endpoint, headers: { 'x-key': 'collector-key' }, sampleRatio } },
      agents: { default: { model: 'mock/mock-fast', tools: { allow: ['look_up'] } } },
    },
  });

const callId = { id: 'c1', name: 'look_up', arguments: JSON.stringify({ what: canary }) };

it('records a chat with a tool as one tree below the caller’s own span, and never its text', async () => {
  await using collector = await startCollector();
  await using server = await traced(collector.endpoint);
  server.provider.queue({ toolCalls: [callId], usage: { input: 100, output: 10 } }, { text: `About ${canary}.`, usage: { input: 120, output: 20 } });
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${server.token}`,
      'content-type': 'application/json',
      traceparent: `00-${traceId}-00f067aa0ba902b7-01`,
    },
    body: JSON.stringify({ model: 'mock/mock-fast', messages: [{ role: 'user', content: `Explain ${canary}` }] }),
  });
  expect(await response.text()).toContain(canary);
  await expect.poll(() => collector.spans().length).toBe(5);

  const spans = collector.spans();
  expect(tree(spans)).toEqual([
    {
      'POST /v1/chat/completions': [{ 'invoke_agent default': [{ 'chat mock-fast': [] }, { 'execute_tool look_up': [] }, { 'chat mock-fast': [] }] }],
    },
  ]);
  const byName = (name: string) => spans.filter((span) => span.name === name).toSorted((a, b) => Number(a.startTimeUnixNano - b.startTimeUnixNano));
  const [entry] = byName('POST /v1/chat/completions');
  expect(entry).toMatchObject({
    traceId,
    parentSpanId: '00f067aa0ba902b7',
    kind: 2,
    attributes: { 'http.route': '/v1/chat/completions', 'http.response.status_code': 200 },
  });
  const [agent] = byName('invoke_agent default');
  expect(agent?.attributes).toMatchObject({
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.id': 'default',
    'gen_ai.conversation.id': expect.stringMatching(/^cv_/),
    'gen_ai.usage.input_tokens': 220,
    'gen_ai.usage.output_tokens': 30,
    'gen_ai.response.finish_reasons': ['stop'],
  });
  expect(byName('chat mock-fast').map((span) => [span.kind, span.attributes])).toEqual([
    [3, expect.objectContaining({ 'gen_ai.provider.name': 'mock', 'gen_ai.request.model': 'mock-fast', 'gen_ai.usage.input_tokens': 100 })],
    [3, expect.objectContaining({ 'gen_ai.response.finish_reasons': ['stop'], 'gen_ai.usage.output_tokens': 20 })],
  ]);
  expect(byName('execute_tool look_up')[0]?.attributes).toMatchObject({
    'gen_ai.tool.name': 'look_up',
    'gen_ai.conversation.id': agent?.attributes['gen_ai.conversation.id'],
  });
  // Attributes set by hand and bits of the protocol: sampled, and whether the parent is of another process.
  expect(spans.map((span) => [span.name, span.flags]).toSorted()).toEqual([
    ['POST /v1/chat/completions', 0x301],
    ['chat mock-fast', 0x101],
    ['chat mock-fast', 0x101],
    ['execute_tool look_up', 0x101],
    ['invoke_agent default', 0x101],
  ]);
  for (const one of collector.exports()) {
    expect(one.resource.attributes).toEqual({ 'service.name': 'gatehouse', 'service.version': '0.0.0-test' });
    expect(one.scopeSpans.map(({ scope }) => scope)).toEqual([{ name: 'gatehouse', version: '0.0.0-test' }]);
  }
  for (const { headers, path } of collector.requests)
    expect([path, headers]).toEqual(['/v1/traces', expect.objectContaining({ 'x-key': 'collector-key', 'content-type': 'application/json' })]);
  const all = collector.requests.map(({ body }) => body).join('');
  for (const secret of [canary, server.token, 'mock-key']) expect(all).not.toContain(secret);
});

it('a call over a WebSocket starts a trace under the id in the answer; failures are marked without their text', async () => {
  await using collector = await startCollector();
  await using server = await traced(collector.endpoint);
  server.provider.queue({ status: 400, error: { message: `no ${canary}` } });
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}/ws`, { headers: { authorization: `Bearer ${server.token}` } });
  const reply = await new Promise<string>((resolve, reject) => {
    socket.on('error', reject);
    socket.on('open', () => socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'agent.execute', params: { message: canary } })));
    socket.on('message', (data: Buffer) => resolve(data.toString()));
  });
  socket.terminate();
  expect(JSON.parse(reply)).toMatchObject({ id: 1 });
  await expect.poll(() => collector.spans().length).toBe(3);
  const spans = collector.spans();
  expect(tree(spans)).toEqual([{ 'agent.execute': [{ 'invoke_agent default': [{ 'chat mock-fast': [] }] }] }]);
  expect(new Set(spans.map((span) => span.traceId)).size).toBe(1);
  const chat = spans.find((span) => span.name === 'chat mock-fast');
  expect(chat).toMatchObject({ status: { code: 2 }, attributes: { 'error.type': 'bad_request' } });
  expect(collector.requests.map(({ body }) => body).join('')).not.toContain(canary);
});

it('a request that fails through its client’s fault has its status, and does not count as a server error', async () => {
  await using collector = await startCollector();
  {
    await using server = await traced(collector.endpoint);
    const headers = { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' };
    expect((await fetch(`${server.url}/v1/chat/completions`, { method: 'POST', headers, body: '{}' })).status).toBe(400);
    expect((await fetch(`${server.url}/v1/models/no/such`, { headers })).status).toBe(404);
    server.provider.queue({ status: 400, error: { message: 'no' } });
    const failed = await fetch(`${server.url}/api/chat`, { method: 'POST', headers, body: '{"message":"Hello"}' });
    expect(failed.status).toBe(500);
  }
  const calls = collector.spans().filter((span) => span.kind === 2);
  expect(calls.map(({ name, status, attributes }) => [name, status.code, attributes['http.response.status_code'], attributes['error.type']])).toEqual(
    [
      ['POST /v1/chat/completions', 0, 400, undefined],
      ['GET /v1/models/*id', 0, 404, undefined],
      ['POST /api/chat', 2, 500, expect.any(String)],
    ],
  );
});

it('keeps the configured share, and obeys the caller’s own decision', async () => {
  await using collector = await startCollector();
  {
    await using server = await traced(collector.endpoint, 0);
    const ping = (traceparent?: string) =>
      fetch(`${server.url}/rpc`, {
        method: 'POST',
        headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json', ...(traceparent !== undefined && { traceparent }) },
        body: '{"jsonrpc":"2.0","id":1,"method":"system.ping"}',
      });
    await ping();
    await ping('00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00');
    await ping('00-5bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01');
  }
  // Closing the server has sent what was left.
  expect(tree(collector.spans())).toEqual([{ 'POST /rpc': [{ 'system.ping': [] }] }]);
  expect(collector.spans()[0]?.traceId).toBe('5bf92f3577b34da6a3ce929d0e0e4736');
});

it('is not affected by a missing collector', async () => {
  const server = await traced('http://127.0.0.1:9/v1/traces');
  expect(await server.client.call('system.ping', {})).toMatchObject({ pong: true });
  await server[Symbol.asyncDispose]();
});
