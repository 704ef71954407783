import { toFragment } from '../../../kernel/json-fragment.ts';
import { MessageObject, MessagesError, MessageStreamEvent } from '@gatehouse/contract';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CompletionRequest } from '../../../features/conversations/turns/api.ts';
import { AppError } from '../../../kernel/app-error.ts';
import { post, type ScriptedTurn, startGateway, testTokens, wrongToken } from '../../testing/gateway-fixture.ts';

const user = { role: 'user', content: 'Hi' };
const tool = { name: 'look', description: 'Looks', input_schema: { type: 'object' } };
const calls = [{ id: 'toolu_1', name: 'look', arguments: '{"at":"a \\"b\\""}' }];
const thinking = { type: 'thinking' as const, thinking: 'Hm "so".', signature: 'sig' };

let script: ScriptedTurn = async () => ({});
let last: CompletionRequest | undefined;
let fixture: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  fixture = await startGateway({
    turn: (request, call, sink) => {
      last = request;
      return script(request, call, sink);
    },
  });
});
afterAll(() => fixture[Symbol.asyncDispose]());

const path = '/v1/messages';
const send = (body: object, headers: Record<string, string> = {}) =>
  post(fixture.address + path, testTokens.api, { model: 'm', max_tokens: 100, messages: [user], ...body }, headers);

async function asked(body: object): Promise<CompletionRequest> {
  script = async () => ({});
  last = undefined;
  const response = await send(body);
  expect(response.status, await response.clone().text()).toBe(200);
  if (last === undefined) throw new Error('no turn was asked for');
  return last;
}

async function stream(body: object = {}) {
  const response = await send({ stream: true, ...body });
  const text = await response.text();
  const events = text
    .split('\n\n')
    .filter((frame) => frame !== '')
    .map((frame) => {
      const [name, data] = frame.split('\n');
      const event = MessageStreamEvent().parse(JSON.parse(data?.slice('data: '.length) ?? ''));
      expect(name).toBe(`event: ${event.type}`);
      return event;
    });
  return { response, events, types: events.map((event) => event.type) };
}

describe('a request', () => {
  it('accepts instructions among the messages as part of the system prompt', async () => {
    const note = { role: 'system', content: [{ type: 'text', text: 'Be kind.' }] };
    const { messages } = await asked({ system: 'Be brief.', messages: [user, note], context_management: { edits: [] } });
    expect(messages).toEqual([{ role: 'system', content: 'Be brief.' }, { role: 'system', content: 'Be kind.' }, user]);
    const begun = await send({ messages: [user, { role: 'assistant', content: 'So' }, note] });
    expect([begun.status, (await send({ messages: [note] })).status]).toEqual([400, 400]);
  });

  it('passes everything that it asks for to the turn', async () => {
    const request = await asked({
      system: [
        { type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral', ttl: '1h' } },
        { type: 'text', text: 'Be kind.' },
      ],
      temperature: 0.5,
      top_p: 0.9,
      top_k: 5,
      stop_sequences: ['END'],
      metadata: { user_id: 'u-1' },
      tools: [{ ...tool, type: 'custom', cache_control: { type: 'ephemeral' }, eager_input_streaming: true }],
      tool_choice: { type: 'tool', name: 'look', disable_parallel_tool_use: true },
      output_config: { effort: 'high', format: { type: 'json_schema', schema: { type: 'object' } } },
      service_tier: 'auto',
      context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
    });
    expect(request).toEqual({
      completionId: expect.stringMatching(/^msg_[0-9a-f-]{36}$/),
      channelId: 'messages',
      model: 'm',
      messages: [{ role: 'system', content: 'Be brief.' }, { role: 'system', content: 'Be kind.' }, user],
      temperature: 0.5,
      maxTokens: 100,
      maxTokensIsBound: true,
      clientTools: [{ name: 'look', description: 'Looks', parameters: { type: 'object' } }],
      options: {
        topP: 0.9,
        topK: 5,
        stop: ['END'],
        endUser: 'u-1',
        toolChoice: { name: 'look' },
        parallelToolCalls: false,
        effort: 'high',
        responseFormat: { type: 'json_schema', name: 'output', schema: { type: 'object' }, strict: true },
        systemCacheMark: true,
      },
    });
    expect((await asked({ thinking: { type: 'enabled', budget_tokens: 2_000 }, max_tokens: 3_000 })).options).toEqual({
      thinking: { type: 'enabled', budgetTokens: 2_000 },
    });
    expect((await asked({ tool_choice: { type: 'any' }, tools: [tool] })).options).toEqual({ toolChoice: 'required' });
  });

  it('carries a whole history: images, documents, reasoning, calls and their results', async () => {
    const png = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } };
    const image = { type: 'image', url: 'data:image/png;base64,AAAA' };
    const { messages } = await asked({
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'see' },
            png,
            { type: 'image', source: { type: 'url', url: 'https://example.org/a.png' } },
            { type: 'document', title: 'T', source: { type: 'text', media_type: 'text/plain', data: 'words' } },
            { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERg==' }, cache_control: { type: 'ephemeral' } },
          ],
        },
        {
          role: 'assistant',
          content: [
            thinking,
            { type: 'redacted_thinking', data: 'xyz' },
            { type: 'text', text: 'I look.', citations: null },
            { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 1 }, caller: { type: 'direct' } },
            { type: 'tool_use', id: 'toolu_2', name: 'look', input: {} },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: 'seen' }, png] },
            { type: 'tool_result', tool_use_id: 'toolu_2', is_error: true, cache_control: { type: 'ephemeral' } },
            { type: 'text', text: 'and?' },
          ],
        },
      ],
    });
    expect(messages).toEqual([
      {
        role: 'user',
        content: 'see\nT\nwords',
        parts: [
          { type: 'text', text: 'see' },
          image,
          { type: 'image', url: 'https://example.org/a.png' },
          { type: 'text', text: 'T' },
          { type: 'text', text: 'words' },
          { type: 'file', url: 'data:application/pdf;base64,JVBERg==', name: 'file.pdf' },
        ],
        cacheMark: true,
      },
      {
        role: 'assistant',
        content: 'I look.',
        toolCalls: [
          { id: 'toolu_1', name: 'look', arguments: '{"at":1}' },
          { id: 'toolu_2', name: 'look', arguments: '{}' },
        ],
        thinking: [thinking, { type: 'redacted_thinking', data: 'xyz' }],
      },
      { role: 'tool', content: 'seen', parts: [{ type: 'text', text: 'seen' }, image], toolCallId: 'toolu_1' },
      { role: 'tool', content: '', toolCallId: 'toolu_2', isError: true, cacheMark: true },
      { role: 'user', content: 'and?' },
    ]);
  });

  it.each([
    ['no max_tokens', { max_tokens: undefined }, 'max_tokens'],
    ['an unknown field', { seed: 1 }, 'seed'],
    ['a temperature of 1.5', { temperature: 1.5 }, 'temperature'],
    ['a temperature with thinking', { thinking: { type: 'adaptive' }, temperature: 0.5 }, 'temperature'],
    ['more thinking than answer', { thinking: { type: 'enabled', budget_tokens: 2_000 } }, 'thinking.budget_tokens'],
    ['a begun answer', { messages: [user, { role: 'assistant', content: 'So' }] }, 'messages.1.role'],
    ['an empty question', { messages: [{ role: 'user', content: ' ' }] }, 'messages'],
    ['an unknown block', { messages: [{ role: 'user', content: [{ type: 'video' }] }] }, 'messages.0.content.0.type'],
    [
      'a document by URL',
      { messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'url', url: 'https://x' } }] }] },
      'messages.0.content.0.source.type',
    ],
    ['a tool of the provider', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }, 'tools.0.type'],
    ['MCP servers', { mcp_servers: [{ type: 'url' }] }, 'mcp_servers'],
    ['a container', { container: 'c' }, 'container'],
  ])('is refused with its name for %s', async (_what, body, param) => {
    last = undefined;
    const response = await send(body);
    const { error, request_id } = MessagesError().parse(await response.json());
    expect([response.status, error.type, error.param, request_id]).toEqual([
      400,
      'invalid_request_error',
      param,
      response.headers.get('x-request-id'),
    ]);
    expect(last).toBeUndefined();
  });

  it('is refused in the format of the route, and an unknown model with advice', async () => {
    script = () => Promise.reject(new AppError('invalid_params', 'no top_k here', { param: 'topK' }));
    expect(await (await send({})).json()).toMatchObject({ type: 'error', error: { message: 'no top_k here', param: 'top_k', code: null } });
    script = () => Promise.reject(new AppError('not_found', 'Model not found: claude-x', { param: 'model' }));
    const response = await send({ model: 'claude-x' });
    const { error } = MessagesError().parse(await response.json());
    expect([response.status, error.type]).toEqual([404, 'not_found_error']);
    expect(error.message).toMatch(/^Model not found: claude-x\. .*ANTHROPIC_MODEL.*gateway\.compat\.models/);
  });
});

describe('authentication', () => {
  const ask = (headers: Record<string, string>, target = path) =>
    fetch(fixture.address + target, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ model: 'm', max_tokens: 9, messages: [user] }),
    });
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

  it.each([
    ['x-api-key alone', { 'x-api-key': testTokens.api }, 200],
    ['both, the same', { 'x-api-key': testTokens.api, ...bearer(testTokens.api) }, 200],
    ['both, different', { 'x-api-key': testTokens.api, ...bearer(testTokens.rpc) }, 401],
    ['x-api-key and another scheme', { 'x-api-key': testTokens.api, authorization: 'Basic eDp5' }, 401],
    ['a wrong x-api-key', { 'x-api-key': wrongToken }, 401],
    ['nobody', {}, 401],
    ['a token without the scope', { 'x-api-key': testTokens.mcp }, 403],
  ])('accepts %s', async (_what, headers, status) => {
    script = async () => ({});
    const response = await ask({ 'anthropic-version': '2023-06-01', ...headers }, `${path}?beta=true`);
    expect(response.status).toBe(status);
    if (status === 200) MessageObject().parse(await response.json());
    else MessagesError().parse(await response.json());
  });

  it('does not accept x-api-key on other routes', async () => {
    expect((await fetch(`${fixture.address}/v1/models`, { headers: { 'x-api-key': testTokens.api } })).status).toBe(401);
    expect((await ask({ 'x-api-key': testTokens.api }, '/v1/chat/completions')).status).toBe(401);
  });
});

describe('a whole answer', () => {
  it('holds reasoning, text and calls, and counts the cache separately', async () => {
    script = async () => ({
      text: 'I look.',
      thinking: [thinking],
      clientCalls: calls,
      tokensUsed: { input: 100, output: 7, total: 107 },
      cachedInput: 60,
      cacheWrittenInput: 30,
    });
    expect(MessageObject().parse(await (await send({ tools: [tool] })).json())).toEqual({
      id: expect.stringMatching(/^msg_/),
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [
        thinking,
        { type: 'text', text: 'I look.', citations: null },
        { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 'a "b"' } },
      ],
      stop_reason: 'tool_use',
      stop_sequence: null,
      usage: { input_tokens: 10, cache_creation_input_tokens: 30, cache_read_input_tokens: 60, output_tokens: 7 },
    });
  });

  it.each([
    [{ finishReason: 'stop' }, 'end_turn', null],
    [{ finishReason: 'max_steps' }, 'max_tokens', null],
    [{ finishReason: 'budget_exceeded' }, 'max_tokens', null],
    [{ finishReason: 'context_exhausted' }, 'model_context_window_exceeded', null],
    [{ finishReason: 'stop', ending: { by: 'stop_sequence', sequence: 'END' } }, 'stop_sequence', 'END'],
    [{ finishReason: 'stop', ending: { by: 'content_filter' } }, 'refusal', null],
  ] as const)('of a turn that ended with %j stops with %s', async (outcome, reason, sequence) => {
    script = async (_request, _call, sink) => (sink?.text(toFragment('half')), { text: 'half', ...outcome });
    const whole = MessageObject().parse(await (await send({})).json());
    expect([whole.stop_reason, whole.stop_sequence]).toEqual([reason, sequence]);
    const { events } = await stream();
    expect(events.at(-2)).toMatchObject({ type: 'message_delta', delta: { stop_reason: reason, stop_sequence: sequence } });
  });

  it('is a failure when the turn failed with nothing to show', async () => {
    script = async () => ({
      text: '',
      finishReason: 'budget_exceeded',
      failure: { kind: 'budget_exceeded', message: 'used up', retryAfterMs: 2_500 },
    });
    for (const streamed of [false, true]) {
      const response = await send({ stream: streamed });
      const body = MessagesError().parse(await response.json());
      expect([response.status, body.error.type, response.headers.get('retry-after')]).toEqual([429, 'rate_limit_error', '3']);
    }
  });
});

describe('a streamed answer', () => {
  it('is sent block by block', async () => {
    script = async (_request, _call, sink) => {
      sink?.thinking?.fragment(toFragment('Hm "so".'));
      sink?.thinking?.block(thinking);
      sink?.thinking?.block({ type: 'redacted_thinking', data: 'xyz' });
      sink?.text(toFragment('I '));
      sink?.text(toFragment('look\n'));
      return { text: 'I look\n', clientCalls: calls, cachedInput: 2 };
    };
    const { response, events } = await stream({ tools: [tool] });
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    const usage = { input_tokens: 10, cache_creation_input_tokens: 0, cache_read_input_tokens: 2, output_tokens: 3 };
    expect(events).toEqual([
      { type: 'message_start', message: expect.objectContaining({ content: [], stop_reason: null }) },
      { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'Hm "so".' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'sig' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'content_block_start', index: 1, content_block: { type: 'redacted_thinking', data: 'xyz' } },
      { type: 'content_block_stop', index: 1 },
      { type: 'content_block_start', index: 2, content_block: { type: 'text', text: '', citations: null } },
      { type: 'content_block_delta', index: 2, delta: { type: 'text_delta', text: 'I ' } },
      { type: 'content_block_delta', index: 2, delta: { type: 'text_delta', text: 'look\n' } },
      { type: 'content_block_stop', index: 2 },
      { type: 'content_block_start', index: 3, content_block: { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} } },
      { type: 'content_block_delta', index: 3, delta: { type: 'input_json_delta', partial_json: '{"at":"a \\"b\\""}' } },
      { type: 'content_block_stop', index: 3 },
      { type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage },
      { type: 'message_stop' },
    ]);
  });

  it('is complete when no model streamed it, and without text', async () => {
    script = async () => ({ text: 'a "b"', finishReason: 'command' });
    expect((await stream()).events[2]).toMatchObject({ delta: { text: 'a "b"' } });
    script = async () => ({ text: '' });
    expect((await stream()).types).toEqual(['message_start', 'message_delta', 'message_stop']);
  });

  it('ends with an error event when it fails after some text', async () => {
    script = async (_request, _call, sink) => (
      sink?.text(toFragment('half')),
      sink?.flush(),
      { text: 'half', finishReason: 'error', failure: { message: 'upstream broke', kind: 'network' } }
    );
    const { events, types } = await stream();
    expect(types).toEqual(['message_start', 'content_block_start', 'content_block_delta', 'error']);
    expect(events.at(-1)).toMatchObject({ error: { type: 'server_error', message: 'upstream broke' } });
  });

  it('is kept alive by pings, and from then on a failure is an event', async () => {
    const heard = Promise.withResolvers<void>();
    await using quick = await startGateway({
      deps: { keepAliveMs: 10 },
      turn: async () => {
        await heard.promise;
        return { text: '', finishReason: 'error', failure: { message: 'late', kind: 'network' } };
      },
    });
    const response = await post(quick.address + path, testTokens.api, { model: 'm', max_tokens: 9, messages: [user], stream: true });
    let text = '';
    for await (const part of response.body!.pipeThrough(new TextDecoderStream())) {
      text += part;
      if (text.split('event: ping').length > 2) heard.resolve();
    }
    expect(text).toMatch(/^event: message_start\ndata: .*\n\n(event: ping\ndata: \{"type":"ping"\}\n\n){2,}event: error\ndata: .*"late".*\n\n$/);
  });
});

it('counts tokens', async () => {
  const url = `${fixture.address}${path}/count_tokens`;
  const response = await post(url, testTokens.api, { model: 'm', messages: [user], tools: [tool], thinking: { type: 'adaptive' } });
  expect([response.status, await response.json()]).toEqual([200, { input_tokens: 42 }]);
  expect((await post(url, testTokens.api, { messages: [user] })).status).toBe(400);
});

it('ends a stream with its token', async () => {
  fixture.putToken('short', 'tz-secret-0123456789-abcdefghijklmnop', ['api']);
  script = async (_request, call, sink) => {
    sink?.text(toFragment('x'));
    sink?.flush();
    await new Promise((resolve) => call.signal.addEventListener('abort', resolve));
    return { text: 'x', finishReason: 'aborted' };
  };
  const response = await post(fixture.address + path, 'tz-secret-0123456789-abcdefghijklmnop', {
    model: 'm',
    max_tokens: 9,
    messages: [user],
    stream: true,
  });
  fixture.tokens.remove('short');
  expect(await response.text()).toMatch(/event: error\ndata: .*was revoked or has expired","type":"authentication_error"/);
});
