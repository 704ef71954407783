import { expect, test } from 'vitest';
import type { ChatEvent } from './chat.ts';
import { createClient } from './client.ts';
import { ConnectionError, RateLimitError } from './errors.ts';
import { answer, type SeenRequest, startGateway } from './testing/gateway.ts';

const request = { model: 'agent/default', messages: [{ role: 'user' as const, content: 'Hi' }] };

function chunk(delta: object, finish: string | null = null, more: object = {}): string {
  return `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`;
}
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
const usageChunk = `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], usage })}\n\n`;
const head = chunk({ role: 'assistant' });
const tail = `${chunk({}, 'length', { gatehouse: { finish_reason: 'max_steps' } })}${usageChunk}data: [DONE]\n\n`;

async function open(handle: (seen: SeenRequest) => unknown) {
  const gateway = await startGateway({ http: handle });
  return { gateway, client: createClient({ url: gateway.url, token: 't' }), [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose]() };
}

function stream(parts: readonly (string | Uint8Array)[]) {
  return ({ response }: SeenRequest): undefined => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    sendNext(response, parts);
  };
}

/** Sends each write after the previous one has left, so that the other end reads them separately. */
function sendNext(response: SeenRequest['response'], [first, ...rest]: readonly (string | Uint8Array)[]): void {
  if (first === undefined) response.end();
  else response.write(first, () => setImmediate(sendNext, response, rest));
}

async function collect(events: AsyncIterable<ChatEvent>): Promise<ChatEvent[]> {
  const all: ChatEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

test('returns a complete completion', async () => {
  const completion = {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
    usage,
  };
  await using session = await open(() => completion);
  expect(await session.client.chat(request)).toEqual(completion);
  expect(JSON.parse(session.gateway.requests[0]?.body ?? '')).toEqual({ ...request, stream: false });
});

test('a stream yields deltas, the finish with its real reason, then usage', async () => {
  await using session = await open(stream([`: keep-alive\n\n${head}`, chunk({ content: 'Hel' }), chunk({ content: 'lo' }), tail]));
  expect(await collect(session.client.streamChat(request))).toEqual([
    { type: 'delta', text: 'Hel' },
    { type: 'delta', text: 'lo' },
    { type: 'finish', reason: 'length', turnReason: 'max_steps' },
    { type: 'usage', usage },
  ]);
  expect(session.gateway.requests[0]?.headers['x-gatehouse-extensions']).toBe('1');
});

test('characters, lines and events may be split anywhere', async () => {
  const text = 'Grüße, 世界 👋';
  const bytes = new TextEncoder().encode((head + chunk({ content: text }) + tail).replaceAll('\n', '\r\n'));
  const parts = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, index) => bytes.subarray(index * 7, index * 7 + 7));
  await using session = await open(stream(parts));
  const [delta] = await collect(session.client.streamChat(request));
  expect(delta).toEqual({ type: 'delta', text });
});

test('a stream without its end mark throws after the received text', async () => {
  await using session = await open(stream([head, chunk({ content: 'half an ans' })]));
  const seen: string[] = [];
  const reading = (async () => {
    for await (const event of session.client.streamChat(request)) if (event.type === 'delta') seen.push(event.text);
  })();
  await expect(reading).rejects.toBeInstanceOf(ConnectionError);
  expect(seen).toEqual(['half an ans']);
});

test('an error line throws its error', async () => {
  const line = `data: ${JSON.stringify({ error: { message: 'The provider asks to wait.', type: 'rate_limit_error', param: null, code: null } })}\n\ndata: [DONE]\n\n`;
  await using session = await open(stream([head, line]));
  const error = await collect(session.client.streamChat(request)).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(RateLimitError);
  expect(error).toMatchObject({ message: 'The provider asks to wait.' });
});

test('a refusal before the first byte throws like any other error', async () => {
  await using session = await open(({ response }) =>
    answer(response, 429, { error: { message: 'Slow down', type: 'rate_limit_error', param: null, code: null } }, { 'retry-after': '2' }),
  );
  await expect(collect(session.client.streamChat(request))).rejects.toMatchObject({ name: 'RateLimitError', retryAfterMs: 2000 });
});

test.each([
  ['text', 'data: hello\n\n'],
  ['other JSON', 'data: {"choices":[1]}\n\n'],
])('a line of %s is a bad reply', async (_what, line) => {
  await using session = await open(stream([line]));
  await expect(collect(session.client.streamChat(request))).rejects.toMatchObject({ code: 'bad_reply' });
});

test('a silent stream times out', async () => {
  await using session = await open(({ response }) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(head));
  await expect(collect(session.client.streamChat(request, { idleTimeoutMs: 20 }))).rejects.toThrow('silent');
});

test('aborting, and leaving the loop, close the connection at the server', async () => {
  const closed: Promise<void>[] = [];
  await using session = await open(({ response }) => {
    closed.push(new Promise((resolve) => response.on('close', resolve)));
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(head + chunk({ content: 'a' }));
  });
  for await (const _ of session.client.streamChat(request)) break;
  await closed[0];

  const controller = new AbortController();
  const reading = (async () => {
    for await (const _ of session.client.streamChat(request, { signal: controller.signal })) controller.abort(new Error('enough'));
  })();
  await expect(reading).rejects.toThrow('enough');
  await closed[1];
});
