import { ResponseCompaction, type ResponseObject } from '@gatehouse/contract';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { post } from '../../testing/gateway-fixture.ts';
import { openResponseSocket } from '../../testing/response-socket.ts';

// The compliance suite of Open Responses for WebSocket and compaction, against a whole server with a scripted provider.

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ config: { gateway: { compat: { tools: 'none' }, wsMaxMessageBytes: 65_536 } } });
});
afterAll(() => server[Symbol.asyncDispose]());

const model = 'mock/mock-fast';
const open = (token = server.token) => openResponseSocket(server.url, token);
const say = (text: string) => server.provider.queue({ text, usage: { input: 20, output: 5 } });
const sent = () => JSON.stringify(server.provider.requests.at(-1)?.body);

function textOf(response: ResponseObject | undefined): string {
  return (response?.output ?? []).flatMap((item) => (item.type === 'message' ? item.content.map((part) => part.text) : [])).join('');
}

async function compact(body: object) {
  const response = await post(`${server.url}/v1/responses/compact`, server.token, body);
  return { status: response.status, body: await response.json() };
}

describe('Open Responses over WebSocket', () => {
  it('response', async () => {
    await using socket = await open();
    server.provider.queue({ text: ['1, ', '2, "3"'] });
    const { events, final } = await socket.create({ model, input: [{ type: 'message', role: 'user', content: 'Count from 1 to 3.' }] });
    expect(events.map((event) => event.type)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ]);
    expect([final?.status, textOf(final)]).toEqual(['completed', '1, 2, "3"']);
  });

  it('sequential responses', async () => {
    await using socket = await open();
    say('first');
    say('second');
    for (const word of ['first', 'second'])
      expect(textOf((await socket.create({ model, store: false, input: `Reply with exactly: ${word}` })).final)).toBe(word);
  });

  it('continuation of a response that is not stored', async () => {
    await using socket = await open();
    say('OK');
    const first = await socket.create({ model, store: false, input: 'Remember the code word: cobalt. Reply with OK.' });
    say('cobalt');
    const second = await socket.create({ model, store: false, previous_response_id: first.final?.id, input: 'What is the code word?' });
    expect(textOf(second.final)).toBe('cobalt');
    expect(second.final?.previous_response_id).toBe(first.final?.id);
    expect(sent()).toContain('Remember the code word: cobalt');
    expect((await fetch(`${server.url}/v1/responses/${first.final?.id}`, { headers: { authorization: `Bearer ${server.token}` } })).status).toBe(404);
  });

  it('a new socket does not know an unstored response, and starts a new chain', async () => {
    let id: string | undefined;
    {
      await using socket = await open();
      say('OK');
      id = (await socket.create({ model, store: false, input: 'Remember: copper.' })).final?.id;
    }
    await using socket = await open();
    const { error } = await socket.create({ model, store: false, previous_response_id: id, input: 'Go on.' });
    expect(error).toMatchObject({ status: 404, error: { code: 'previous_response_not_found', param: 'previous_response_id' } });
    say('recovered');
    expect(textOf((await socket.create({ model, store: false, input: 'Start again.' })).final)).toBe('recovered');
  });

  it('a missing previous response', async () => {
    await using socket = await open();
    const { error } = await socket.create({ model, store: false, previous_response_id: 'resp_openresponses_missing_1', input: 'x' });
    expect(error?.error.code).toBe('previous_response_not_found');
  });

  it('a failed continuation evicts its previous response', async () => {
    await using socket = await open();
    say('OK');
    const { final } = await socket.create({ model, store: false, input: 'Remember: ember.' });
    const output = { type: 'function_call_output', call_id: 'call_missing', output: 'x' };
    const failed = await socket.create({ model, store: false, previous_response_id: final?.id, input: [output] });
    expect(failed.error).toMatchObject({ status: 400, error: { code: 'invalid_request' } });
    const retry = await socket.create({ model, store: false, previous_response_id: final?.id, input: 'stale' });
    expect(retry.error?.error.code).toBe('previous_response_not_found');
  });

  it('a compaction starts a new chain', async () => {
    say('The code word is slate.');
    const condensed = await compact({
      model,
      input: [
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Remember the code word: slate.' }] },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'OK.' }] },
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Compress this conversation.' }] },
      ],
    });
    const { output } = ResponseCompaction().parse(condensed.body);
    await using socket = await open();
    say('compacted');
    const input = [...output, { type: 'message', role: 'user', content: 'Continue from here.' }];
    expect(textOf((await socket.create({ model, store: false, input, tools: [] })).final)).toBe('compacted');
    expect(sent()).toContain('The code word is slate.');
    expect(sent()).not.toContain('Remember the code word');
  });
});

describe('Open Responses compaction', () => {
  it('condenses a conversation', async () => {
    say('Launch on Tuesday; support first.');
    const { status, body } = await compact({
      model,
      prompt_cache_key: 'k',
      input: [
        { type: 'message', role: 'user', content: 'We agreed to launch on Tuesday and notify support first.' },
        { type: 'message', role: 'assistant', content: 'Understood.' },
      ],
    });
    expect(status).toBe(200);
    expect(ResponseCompaction().parse(body)).toMatchObject({
      object: 'response.compaction',
      output: [{ type: 'compaction' }],
      usage: { input_tokens: 20, output_tokens: 5, total_tokens: 25 },
    });
    expect(sent()).toContain('We agreed to launch on Tuesday');
  });

  it('reports a missing model, and another server’s compaction as unreadable', async () => {
    expect(await compact({ input: 'x' })).toMatchObject({ status: 400, body: { error: { param: 'model' } } });
    expect(await compact({ model })).toMatchObject({ status: 400, body: { error: { param: 'input' } } });
    const foreign = await post(`${server.url}/v1/responses`, server.token, {
      model,
      input: [
        { type: 'compaction', encrypted_content: 'gAAAAA' },
        { role: 'user', content: 'x' },
      ],
    });
    expect([foreign.status, await foreign.json()]).toMatchObject([400, { error: { param: 'input.0.encrypted_content' } }]);
  });
});

describe('a socket', () => {
  it.each([
    ['without a token', {}, 401],
    ['with a wrong token', { authorization: `Bearer ${'x'.repeat(40)}` }, 401],
  ])('is refused %s', async (_what, headers, status) => {
    const socket = new WebSocket(`${server.url.replace('http', 'ws')}/v1/responses?token=${server.token}`, { headers });
    const refused = await new Promise<number | undefined>((resolve) => {
      socket.on('unexpected-response', (_request, response) => resolve(response.statusCode));
      socket.on('error', () => {});
    });
    expect(refused).toBe(status);
  });

  it('is refused without the scope, and plain requests get an upgrade error', async () => {
    const { token } = await server.as(['mcp-client']);
    await expect(open(token)).rejects.toThrow('403');
    const plain = await fetch(`${server.url}/v1/responses`, { headers: { authorization: `Bearer ${server.token}` } });
    expect(plain.status).toBe(426);
  });

  it('names what it does not support, and continues', async () => {
    await using socket = await open();
    socket.socket.send('no json');
    expect((await socket.read()).error).toMatchObject({ status: 400, error: { code: 'invalid_json' } });
    socket.socket.send(JSON.stringify({ type: 'response.cancel' }));
    expect((await socket.read()).error).toMatchObject({ status: 400, error: { param: 'type' } });
    for (const [body, code, param] of [
      [{ input: 'x' }, 'invalid_request', 'model'],
      [{ model, input: 'x', conversation: 'c' }, 'invalid_request', 'conversation'],
      [{ model: 'nowhere', input: 'x' }, 'model_not_found', 'model'],
      [{ model, input: 'x', background: true }, 'invalid_request', 'background'],
      [{ model, input: 'x', generate: false }, 'invalid_request', 'generate'],
    ] as const)
      expect((await socket.create(body)).error?.error).toMatchObject({ code, param });
    server.provider.queue({ status: 400, error: { message: 'this schema is not allowed' } });
    expect((await socket.create({ model, input: 'x' })).error).toMatchObject({ status: 400, error: { code: 'upstream_rejected' } });
    say('fine');
    expect(textOf((await socket.create({ model, input: 'x' })).final)).toBe('fine');
  });

  it('is closed with 1009 by a frame above gateway.wsMaxMessageBytes, which no model sees', async () => {
    await using socket = await open();
    say('fine');
    expect(textOf((await socket.create({ model, input: 'x'.repeat(60_000) })).final)).toBe('fine');
    const before = server.provider.served();
    socket.send({ model, input: 'x'.repeat(70_000) });
    expect([await socket.closed, server.provider.served()]).toEqual([1009, before]);
  });

  it('runs one response at a time, and stops it with the socket', async () => {
    const before = server.provider.aborted();
    const socket = await open();
    server.provider.queue({ text: Array.from({ length: 500 }, () => 'word '), paceMs: 20 });
    socket.send({ model, input: 'long' });
    await socket.frame();
    socket.send({ model, input: 'another' });
    let parsed: { type?: string } = {};
    while (parsed.type !== 'error') parsed = JSON.parse(await socket.frame()) as { type?: string };
    expect(parsed).toMatchObject({ status: 409, error: { code: 'response_in_progress' } });
    await socket[Symbol.asyncDispose]();
    await expect.poll(() => server.provider.aborted()).toBe(before + 1);
  });

  it('ends with its token, and the running response says why', async () => {
    const brief = await server.as(['api']);
    await using socket = await open(brief.token);
    server.provider.queue({ text: Array.from({ length: 500 }, () => 'word '), paceMs: 20 });
    socket.send({ model, input: 'long' });
    await socket.frame();
    await server.client.call('tokens.revoke', { id: brief.tokenId });
    let last: { type?: string; response?: { error?: unknown } } = {};
    while (last.type !== 'response.failed') last = JSON.parse(await socket.frame()) as typeof last;
    expect(JSON.stringify(last.response?.error)).toContain('revoked');
    expect(await socket.closed).toBe(4001);
  });

  it('may continue its caller’s stored response on another socket, while it exists', async () => {
    say('OK');
    await using one = await open();
    const first = await one.create({ model, input: 'Remember: jade.' });
    const id = first.final?.id;
    await using two = await open();
    const other = await server.as(['api']);
    await using foreign = await open(other.token);
    say('from one');
    say('from two');
    const turns = await Promise.all([one, two].map((socket) => socket.create({ model, previous_response_id: id, input: 'Go on.' })));
    expect(turns.map(({ final }) => final?.status)).toEqual(['completed', 'completed']);
    expect((await foreign.create({ model, previous_response_id: id, input: 'x' })).error?.error.code).toBe('previous_response_not_found');
    await fetch(`${server.url}/v1/responses/${id}`, { method: 'DELETE', headers: { authorization: `Bearer ${server.token}` } });
    for (const previous of [id, turns[0]?.final?.id])
      expect((await one.create({ model, previous_response_id: previous, input: 'x' })).error?.error.code).toBe('previous_response_not_found');
  });

  it('refuses a frame above the limit of bodies', async () => {
    await using socket = await open();
    socket.send({ model, input: 'x'.repeat(1_100_000) });
    expect(await socket.closed).toBe(1009);
  });
});

describe('what is stored of a response', () => {
  const get = (path: string) => fetch(`${server.url}/v1/responses/${path}`, { headers: { authorization: `Bearer ${server.token}` } });

  it('lists its input', async () => {
    say('fine');
    const input = [
      { role: 'user', content: 'one' },
      { type: 'message', role: 'assistant', content: 'two' },
      { role: 'user', content: [{ type: 'input_text', text: 'three' }] },
    ];
    const { id } = (await (await post(`${server.url}/v1/responses`, server.token, { model, input })).json()) as { id: string };
    const all = (await (await get(`${id}/input_items?order=asc`)).json()) as { data: { id: string; content: unknown }[] };
    expect(all).toMatchObject({
      object: 'list',
      has_more: false,
      data: [
        { type: 'message', role: 'user', status: 'completed', content: [{ type: 'input_text', text: 'one' }] },
        { role: 'assistant', content: [{ type: 'output_text', text: 'two' }] },
        { role: 'user', content: [{ type: 'input_text', text: 'three' }] },
      ],
    });
    const page = await (await get(`${id}/input_items?limit=1&after=${all.data[2]?.id}`)).json();
    expect(page).toMatchObject({ has_more: true, data: [{ id: all.data[1]?.id }], first_id: all.data[1]?.id, last_id: all.data[1]?.id });
    expect((await get(`${id}/input_items?limit=0`)).status).toBe(400);
    expect((await get(`${id}?stream=true`)).status).toBe(400);
    const cancelled = await post(`${server.url}/v1/responses/${id}/cancel`, server.token, {});
    expect([cancelled.status, await cancelled.text()]).toEqual([400, expect.stringContaining('Only background responses')]);
    expect((await post(`${server.url}/v1/responses/resp_${'0'.repeat(8)}-0000-0000-0000-${'0'.repeat(12)}/cancel`, server.token, {})).status).toBe(
      404,
    );
  });

  it('counts tokens', async () => {
    const count = await post(`${server.url}/v1/responses/input_tokens`, server.token, { model, input: 'one two three' });
    expect(await count.json()).toEqual({ object: 'response.input_tokens', input_tokens: expect.any(Number) });
  });
});
