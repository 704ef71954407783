import { toFragment } from '../../../kernel/json-fragment.ts';
import { V1Error } from '@gatehouse/contract';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CompletionRequest } from '../../../features/conversations/turns/api.ts';
import { AppError } from '../../../kernel/app-error.ts';
import { post, type ScriptedTurn, startGateway, testTokens } from '../../testing/gateway-fixture.ts';
import { readEvents, responsesClient } from '../../testing/responses-client.ts';

let script: ScriptedTurn = async () => ({});
let last: CompletionRequest | undefined;
let fixture: Awaited<ReturnType<typeof startGateway>>;
let client: ReturnType<typeof responsesClient>;
beforeAll(async () => {
  fixture = await startGateway({
    turn: (request, call, sink) => {
      last = request;
      return script(request, call, sink);
    },
  });
  client = responsesClient(fixture.address, testTokens.api);
});
afterAll(() => fixture[Symbol.asyncDispose]());

const tool = { type: 'function', name: 'look', parameters: { type: 'object' } };
const user = { role: 'user', content: 'Hi' };

describe('the body', () => {
  it.each([
    ['no model', { input: 'x' }, 'model'],
    ['no input', { model: 'm' }, 'input'],
    ['an empty input', { model: 'm', input: ' ' }, 'input'],
    ['system texts alone', { model: 'm', input: [{ role: 'system', content: 'x' }] }, 'input'],
    ['an unknown field', { model: 'm', input: 'x', conversation: 'c' }, 'conversation'],
    ['a type of item it does not know', { model: 'm', input: [{ type: 'computer_call', call_id: 'x' }] }, 'input.0.type'],
    ['a role it does not know', { model: 'm', input: [{ role: 'critic', content: 'x' }] }, 'input.0.role'],
    ['a block it does not know', { model: 'm', input: [{ role: 'user', content: [{ type: 'input_audio' }] }] }, 'input.0.content.0.type'],
    ['an image by id', { model: 'm', input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] }] }, 'input.0.content.0.image_url'],
    [
      'a file by URL',
      { model: 'm', input: [{ role: 'user', content: [{ type: 'input_file', file_url: 'https://x' }] }] },
      'input.0.content.0.file_data',
    ],
    [
      'a file of an unknown type',
      { model: 'm', input: [{ role: 'user', content: [{ type: 'input_file', filename: 'a.zip', file_data: 'AAAA' }] }] },
      'input.0.content.0.file_data',
    ],
    [
      'a file with the extension of no type',
      { model: 'm', input: [{ role: 'user', content: [{ type: 'input_file', filename: 'a.constructor', file_data: 'AAAA' }] }] },
      'input.0.content.0.file_data',
    ],
    ['an item that nobody made', { model: 'm', input: [{ type: 'item_reference', id: 'msg_1' }] }, 'input.0'],
    ['a tool that is not a function', { model: 'm', input: 'x', tools: [{ type: 'web_search', filters: {} }] }, 'tools.0.type'],
    ['two tools of one name', { model: 'm', input: 'x', tools: [tool, tool] }, 'tools'],
    [
      'an allowed tool that does not exist',
      { model: 'm', input: 'x', tools: [tool], tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'other' }] } },
      'tool_choice.tools.0.name',
    ],
    ['background', { model: 'm', input: 'x', background: true }, 'background'],
    ['log probabilities', { model: 'm', input: 'x', include: ['message.output_text.logprobs'] }, 'include.0'],
    ['top_logprobs', { model: 'm', input: 'x', top_logprobs: 1 }, 'top_logprobs'],
    ['17 labels', { model: 'm', input: 'x', metadata: Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`k${index}`, 'v'])) }, 'metadata'],
    ['a long label', { model: 'm', input: 'x', metadata: { k: 'v'.repeat(513) } }, 'metadata.k'],
  ])('answers 400 to %s and names it', async (_what, body, param) => {
    last = undefined;
    const response = await client.send(body);
    const { error } = V1Error().parse(await response.json());
    expect([response.status, error.type, error.param]).toEqual(
      param === 'input.0' ? [404, 'not_found_error', param] : [400, 'invalid_request_error', param],
    );
    expect(last).toBeUndefined();
  });

  it('names the type of a tool that it cannot offer, and every unknown field', async () => {
    const response = await client.send({ model: 'm', input: 'x', tools: [{ type: 'web_search' }], prompt: {}, conversation: 'c' });
    const { error } = V1Error().parse(await response.json());
    expect(error.message).toContain('only tools of type "function" can be offered, received "web_search"');
    for (const name of ['prompt: ', 'conversation: ']) expect(error.message).toContain(name);
  });

  it('passes what it asks for to the turn', async () => {
    const body = {
      model: 'm',
      input: 'Hi',
      instructions: 'Be brief.',
      temperature: 0.5,
      top_p: 0.9,
      presence_penalty: 0.1,
      frequency_penalty: -0.2,
      max_output_tokens: 100,
      parallel_tool_calls: false,
      tools: [
        { ...tool, strict: true },
        { type: 'function', name: 'other', description: 'o' },
      ],
      tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'look' }] },
      reasoning: { effort: 'low', summary: 'auto' },
      text: {
        format: { type: 'json_schema', name: 'out', description: 'what comes out', schema: { type: 'object' }, strict: true },
        verbosity: 'medium',
      },
      user: 'u-1',
      safety_identifier: 's-1',
      prompt_cache_key: 'k',
      metadata: { a: 'b' },
      include: ['reasoning.encrypted_content'],
      service_tier: 'auto',
      truncation: 'auto',
      background: false,
      store: false,
      top_logprobs: 0,
      max_tool_calls: null,
      client_metadata: { version: 1 },
    };
    const response = await client.create(body);
    expect(last).toEqual({
      completionId: response.id,
      channelId: 'responses',
      model: 'm',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hi' },
      ],
      mayShorten: true,
      temperature: 0.5,
      maxTokens: 100,
      clientTools: [{ name: 'look', description: '', parameters: { type: 'object' }, strict: true }],
      options: {
        topP: 0.9,
        presencePenalty: 0.1,
        frequencyPenalty: -0.2,
        parallelToolCalls: false,
        toolChoice: 'required',
        reasoningEffort: 'low',
        responseFormat: { type: 'json_schema', name: 'out', schema: { description: 'what comes out', type: 'object' }, strict: true },
        endUser: 's-1',
      },
    });
    expect(response).toMatchObject({
      id: expect.stringMatching(/^resp_[0-9a-f-]{36}$/),
      temperature: 0.5,
      top_p: 0.9,
      max_output_tokens: 100,
      parallel_tool_calls: false,
      tool_choice: body.tool_choice,
      reasoning: body.reasoning,
      text: body.text,
      user: 'u-1',
      metadata: { a: 'b' },
      store: false,
    });
  });

  it('omits what is not asked for', async () => {
    const { id } = await client.create({ model: 'm', input: 'Hi', tools: [], include: [], store: false });
    expect(last).toEqual({ completionId: id, channelId: 'responses', model: 'm', messages: [user] });
  });

  it('reports refusals of the turn with the field names of the route', async () => {
    for (const [field, param] of [
      ['messages', 'input'],
      ['toolChoice', 'tool_choice'],
      ['responseFormat', 'text.format'],
      ['model', 'model'],
    ]) {
      script = () => Promise.reject(new AppError('invalid_params', field === 'messages' ? 'messages[2]: bad' : 'bad', { param: field ?? '' }));
      const { error } = V1Error().parse(await (await client.send({ model: 'm', input: 'x' })).json());
      expect([error.param, error.message]).toEqual([param, field === 'messages' ? 'input: bad' : 'bad']);
    }
  });
});

describe('the end of a turn', () => {
  it.each([
    ['max_steps', 'incomplete', 'max_output_tokens'],
    ['output_starved', 'incomplete', 'max_output_tokens'],
    ['budget_exceeded', 'incomplete', 'budget_exceeded'],
    ['context_loop', 'incomplete', 'context_loop'],
    ['command', 'completed', undefined],
  ] as const)('%s after some text is %s', async (finishReason, status, reason) => {
    script = async (_request, _call, sink) => (sink?.text(toFragment('half')), { text: 'half', finishReason });
    const whole = await client.create({ model: 'm', input: 'x' });
    const { final, events } = await client.stream({ model: 'm', input: 'x' });
    expect(events.at(-1)?.type).toBe(`response.${status}`);
    for (const response of [whole, final]) {
      expect([response.status, response.incomplete_details?.reason, response.output[0]?.status]).toEqual([
        status,
        reason,
        status === 'completed' ? 'completed' : 'incomplete',
      ]);
      expect(response.output[0]).toMatchObject({ content: [{ text: 'half' }] });
    }
  });

  it.each([
    ['error', 'network', 500, 'server_error', 'server_error'],
    ['error', 'rate_limit', 429, 'rate_limit_error', 'rate_limit_exceeded'],
    ['timeout', 'timeout', 500, 'server_error', 'server_error'],
    ['aborted', 'aborted', 503, 'server_error', 'server_error'],
  ] as const)('%s (%s) with nothing is a status, with some text a failed response', async (finishReason, kind, status, type, code) => {
    const failure = { message: 'in short', kind, retryAfterMs: 1_000 };
    script = async () => ({ text: '', finishReason, failure });
    for (const stream of [false, true]) {
      const response = await client.send({ model: 'm', input: 'x', stream });
      expect([response.status, await response.json()]).toEqual([status, { error: { message: 'in short', type, param: null, code: null } }]);
    }
    script = async (_request, _call, sink) => (sink?.text(toFragment('half')), sink?.flush(), { text: 'half', finishReason, failure });
    const whole = await client.create({ model: 'm', input: 'x' });
    const { final, events } = await client.stream({ model: 'm', input: 'x' });
    expect(events.at(-1)?.type).toBe('response.failed');
    for (const response of [whole, final])
      expect(response).toMatchObject({ status: 'failed', store: false, error: { code, message: 'in short' }, completed_at: null });
  });

  it('a conversation that does not fit is a 400 for input', async () => {
    script = async () => ({ text: '', finishReason: 'context_exhausted', failure: { kind: 'context_exhausted', message: 'too long' } });
    const response = await client.send({ model: 'm', input: 'x' });
    expect([response.status, V1Error().parse(await response.json()).error.param]).toEqual([400, 'input']);
  });

  it('an internal error in a stream reveals nothing', async () => {
    script = async (_request, _call, sink) => {
      sink?.text(toFragment('half'));
      throw new Error('at /secret/path');
    };
    const { final } = await client.stream({ model: 'm', input: 'x' });
    expect([final.status, final.error]).toEqual(['failed', { code: 'server_error', message: 'Internal error' }]);
  });

  it('an empty answer, and one that no model streamed, are complete streams too', async () => {
    for (const text of ['', 'a "b"\n']) {
      script = async () => ({ text });
      const { final, events } = await client.stream({ model: 'm', input: 'x' });
      expect(final.output).toMatchObject([{ type: 'message', content: [{ text }] }]);
      expect(events.filter((event) => event.type === 'response.output_text.delta')).toHaveLength(text === '' ? 0 : 1);
      expect(events.map((event) => event.type)).toContain('response.content_part.added');
    }
  });

  it.each([true, false])('the stream of a token that is revoked ends with a failure event (text before: %s)', async (spoke) => {
    await using quick = await startGateway({
      deps: { keepAliveMs: 10 },
      turn: async (_request, call, sink) => {
        if (spoke) sink?.text(toFragment('half'));
        sink?.flush();
        await new Promise((resolve) => call.signal.addEventListener('abort', resolve));
        return { finishReason: 'aborted' };
      },
    });
    quick.putToken('brief', 'brief-secret-0123456789-abcdefghijkl', ['api']);
    const response = await post(`${quick.address}/v1/responses`, 'brief-secret-0123456789-abcdefghijkl', { model: 'm', input: 'x', stream: true });
    quick.tokens.remove('brief');
    const { events, final } = readEvents(await response.text());
    expect(events.map((event) => event.type).filter((type) => /^response.(created|failed)/.test(type))).toEqual([
      'response.created',
      'response.failed',
    ]);
    expect(final).toMatchObject({
      status: 'failed',
      error: { code: 'server_error', message: 'The token was revoked or has expired' },
    });
  });

  it('output collected in one read is sent in one write', async () => {
    script = async (_request, _call, sink) => {
      for (let i = 0; i < 5; i++) sink?.text(toFragment(`${i}`));
      sink?.flush();
      return { text: '01234' };
    };
    const response = await client.send({ model: 'm', input: 'x', stream: true });
    const first = await response.body?.getReader().read();
    expect(new TextDecoder().decode(first?.value).match(/"delta":/g)).toHaveLength(5);
  });

  it('a silent stream is kept alive by comments, and from then on a failure is an event', async () => {
    const heard = Promise.withResolvers<void>();
    await using quick = await startGateway({
      deps: { keepAliveMs: 10 },
      turn: async () => {
        await heard.promise;
        return { text: '', finishReason: 'error', failure: { message: 'late', kind: 'network' } };
      },
    });
    const response = await post(`${quick.address}/v1/responses`, testTokens.api, { model: 'm', input: 'x', stream: true });
    let text = '';
    for await (const part of response.body!.pipeThrough(new TextDecoderStream())) {
      text += part;
      if (text.split(': keep-alive').length > 2) heard.resolve();
    }
    expect(text).toMatch(/^(: keep-alive\n\n){2,}event: response\.created\n/);
    const { events, final } = readEvents(text);
    expect(events.map((event) => event.type)).toEqual(['response.created', 'response.in_progress', 'response.failed']);
    expect(final.error).toEqual({ code: 'server_error', message: 'late' });
  });
});
