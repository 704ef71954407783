import { toFragment } from '../../kernel/json-fragment.ts';
import { ChatCompletion, ChatCompletionChunk, V1Error } from '@gatehouse/contract';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CompletionRequest } from '../../features/conversations/turns/api.ts';
import { AppError } from '../../kernel/app-error.ts';
import { post, type ScriptedTurn, startGateway, testTokens } from '../testing/gateway-fixture.ts';

const user = { role: 'user', content: 'Hi' };
const look = { type: 'function', function: { name: 'look', description: 'Looks', parameters: { type: 'object' }, strict: true } };
const calls = [
  { id: 'call_1', name: 'look', arguments: '{"at":"a \\"b\\""}' },
  { id: 'call_2', name: 'look', arguments: '{}' },
];

let script: ScriptedTurn = async () => ({});
let last: CompletionRequest | undefined;
let fixture: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  fixture = await startGateway({
    config: { compat: { fields: 'extended' } },
    turn: (request, call, sink) => {
      last = request;
      return script(request, call, sink);
    },
  });
});
afterAll(() => fixture[Symbol.asyncDispose]());

const send = (body: object) => post(`${fixture.address}/v1/chat/completions`, testTokens.api, { model: 'm', messages: [user], ...body });
async function asked(body: object): Promise<CompletionRequest> {
  last = undefined;
  const response = await send(body);
  expect(response.status, await response.clone().text()).toBe(200);
  if (last === undefined) throw new Error('no turn was asked for');
  return last;
}

describe('extended fields', () => {
  it('are passed to the turn', async () => {
    const request = await asked({
      tools: [look],
      tool_choice: { type: 'function', function: { name: 'look' } },
      parallel_tool_calls: false,
      temperature: 0.5,
      top_p: 0.9,
      presence_penalty: 1,
      frequency_penalty: -1,
      stop: 'END',
      seed: 7,
      max_completion_tokens: 9,
      response_format: { type: 'json_schema', json_schema: { name: 'out', description: 'd', schema: { type: 'object' }, strict: true } },
      reasoning_effort: 'high',
      user: 'u-1',
      n: 1,
      logprobs: false,
      store: false,
      metadata: { a: 'b' },
      service_tier: 'auto',
      prompt_cache_key: 'k',
    });
    expect(request).toEqual({
      completionId: expect.stringMatching(/^chatcmpl-/),
      model: 'm',
      messages: [user],
      temperature: 0.5,
      maxTokens: 9,
      clientTools: [{ name: 'look', description: 'Looks', parameters: { type: 'object' }, strict: true }],
      options: {
        topP: 0.9,
        stop: ['END'],
        seed: 7,
        presencePenalty: 1,
        frequencyPenalty: -1,
        responseFormat: { type: 'json_schema', name: 'out', schema: { description: 'd', type: 'object' }, strict: true },
        toolChoice: { name: 'look' },
        parallelToolCalls: false,
        reasoningEffort: 'high',
        endUser: 'u-1',
      },
    });
  });

  it('of a tool: parameters are an object, stated or not', async () => {
    const properties = { at: { type: 'string' } };
    const { clientTools } = await asked({
      tools: [
        { type: 'function', function: { name: 'none' } },
        { type: 'function', function: { name: 'empty', parameters: {} } },
        { type: 'function', function: { name: 'open', parameters: { properties } } },
      ],
    });
    expect(clientTools?.map((tool) => tool.parameters)).toEqual([
      { type: 'object', properties: {} },
      { type: 'object' },
      { type: 'object', properties },
    ]);
  });

  it('that are null or empty have no effect', async () => {
    const nothing = { tools: [], tool_choice: null, top_p: null, stop: null, max_tokens: null, response_format: { type: 'text' }, metadata: null };
    expect(await asked(nothing)).toEqual({ completionId: expect.any(String), model: 'm', messages: [user] });
  });

  it('of messages: all roles, names, images, files, calls and their results', async () => {
    const { messages } = await asked({
      messages: [
        { role: 'developer', content: [{ type: 'text', text: 'd' }] },
        { role: 'system', content: 's', name: 'ops' },
        {
          role: 'user',
          name: 'Ann',
          content: [
            { type: 'text', text: 'see' },
            { type: 'image_url', image_url: { url: 'https://example.org/a.png', detail: 'low' } },
            { type: 'file', file: { filename: 'a.md', file_data: Buffer.from('# A').toString('base64') } },
          ],
        },
        {
          role: 'assistant',
          content: null,
          tool_calls: calls.map(({ id, ...call }) => ({ id, type: 'function', function: call })),
        },
        { role: 'tool', tool_call_id: 'call_1', content: 'one', name: 'look' },
        { role: 'tool', tool_call_id: 'call_2', content: [{ type: 'text', text: 'two' }] },
        { role: 'user', name: 'Bob', content: 'and?' },
      ],
    });
    expect(messages).toEqual([
      { role: 'developer', content: 'd' },
      { role: 'system', content: 'ops: s' },
      {
        role: 'user',
        content: 'Ann:\nsee\nFile "a.md":\n# A',
        parts: [
          { type: 'text', text: 'Ann:' },
          { type: 'text', text: 'see' },
          { type: 'image', url: 'https://example.org/a.png', detail: 'low' },
          { type: 'text', text: 'File "a.md":\n# A' },
        ],
      },
      { role: 'assistant', content: '', toolCalls: calls },
      { role: 'tool', content: 'one', toolCallId: 'call_1' },
      { role: 'tool', content: 'two', toolCallId: 'call_2' },
      { role: 'user', content: 'Bob: and?' },
    ]);
  });

  it.each([
    ['two answers', { n: 2 }, 'n'],
    ['log probabilities', { logprobs: true }, 'logprobs'],
    ['a place to keep it', { store: true }, 'store'],
    ['a penalty of 3', { presence_penalty: 3 }, 'presence_penalty'],
    ['an empty stop', { stop: '' }, 'stop'],
    ['an empty one among stops', { stop: ['a', ''] }, 'stop.1'],
    ['a tool that takes no object', { tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'string' } } }] }, 'tools'],
    ['five stops', { stop: ['a', 'b', 'c', 'd', 'e'] }, 'stop'],
    ['two limits that differ', { max_tokens: 1, max_completion_tokens: 2 }, 'max_completion_tokens'],
    ['a tool that is not a function', { tools: [{ type: 'custom', custom: {} }] }, 'tools.0.custom'],
    ['two tools of one name', { tools: [look, look] }, 'tools'],
    ['audio', { messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: {} }] }] }, 'messages.0.content.0.type'],
    ['a result without an id', { messages: [user, { role: 'tool', content: 'x' }] }, 'messages.1.tool_call_id'],
    ['an unknown field', { web_search_options: {} }, 'web_search_options'],
    ['a bias', { logit_bias: { 17: 1 } }, 'logit_bias.17'],
    ['spoken answers', { modalities: ['text', 'audio'] }, 'modalities.1'],
    [
      'a call in the old shape',
      { messages: [user, { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } }] },
      'messages.1.function_call',
    ],
    ['no user message', { messages: [{ role: 'system', content: 'x' }] }, 'messages'],
  ])('that cannot be honoured are refused: %s', async (_what, body, param) => {
    last = undefined;
    const response = await send(body);
    expect([response.status, V1Error().parse(await response.json()).error.param]).toEqual([400, param]);
    expect(last).toBeUndefined();
  });

  it('that the turn refuses are reported with the names of the route', async () => {
    script = () => Promise.reject(new AppError('invalid_params', 'no seeds here', { param: 'topP' }));
    const { error } = V1Error().parse(await (await send({ top_p: 0.5 })).json());
    expect([error.param, error.message]).toEqual(['top_p', 'no seeds here']);
    script = async () => ({});
  });
});

describe('calls of the caller’s tools', () => {
  const wire = calls.map(({ id, ...call }) => ({ id, type: 'function', function: call }));

  it('come with the answer, the text null when there is none', async () => {
    for (const text of ['', 'I look.']) {
      script = async () => ({ text, clientCalls: calls });
      const completion = ChatCompletion().parse(await (await send({ tools: [look] })).json());
      expect(completion.choices[0]).toEqual({
        index: 0,
        message: { role: 'assistant', content: text === '' ? null : text, tool_calls: wire },
        finish_reason: 'tool_calls',
      });
    }
  });

  it('come one chunk each in a stream', async () => {
    script = async (_request, _call, sink) => (sink?.text(toFragment('I look.')), { text: 'I look.', clientCalls: calls });
    const lines = (await (await send({ tools: [look], stream: true })).text()).split('\n\n').filter((line) => line !== '');
    expect(lines.pop()).toBe('data: [DONE]');
    const choices = lines.map((line) => ChatCompletionChunk().parse(JSON.parse(line.slice('data: '.length))).choices[0]);
    expect(choices.map((choice) => choice?.delta)).toEqual([
      { role: 'assistant' },
      { content: 'I look.' },
      { tool_calls: [{ index: 0, ...wire[0] }] },
      { tool_calls: [{ index: 1, ...wire[1] }] },
      {},
      undefined,
    ]);
    expect(choices.at(-2)?.finish_reason).toBe('tool_calls');
  });
});
