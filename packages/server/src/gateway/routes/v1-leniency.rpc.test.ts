import { type FakeProvider, startFakeProvider, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';

// Requests as published clients send them, some captured from the wire: the content of a history must not stop the next turn.

const png = 'data:image/png;base64,iVBORw0KGgo=';
const pdf = 'data:application/pdf;base64,JVBERi0=';

interface Sent {
  readonly system?: readonly { readonly cache_control?: unknown }[];
  readonly messages: readonly {
    readonly role: string;
    readonly content: unknown;
    readonly reasoning_content?: string;
    readonly tool_calls?: unknown;
  }[];
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
  readonly reasoning_effort?: string;
}

let upstream: FakeProvider;
let server: TestServer;
beforeAll(async () => {
  upstream = await startFakeProvider({ deltas: 2 });
  const provider = (type: 'openai-compatible' | 'anthropic' | 'deepseek', id: string, input: ('text' | 'image' | 'pdf')[] = ['text']) => ({
    type,
    baseUrl: upstream.url,
    apiKey: 'key',
    models: [{ id, input, cost: { input: 1, output: 2 } }],
  });
  server = await startTestServer({
    config: {
      gateway: { compat: { fields: 'extended', tools: 'none' } },
      providers: {
        local: provider('openai-compatible', 'sees', ['text', 'image', 'pdf']),
        blind: provider('openai-compatible', 'reads'),
        claude: provider('anthropic', 'claude-sonnet', ['text', 'image', 'pdf']),
        deep: provider('deepseek', 'deepseek-reasoner'),
      },
    },
  });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream.close();
});
beforeEach(() => upstream.setAnswer(undefined));

async function post(path: string, body: object): Promise<Record<string, unknown>> {
  const response = await fetch(`${server.url}/v1/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return JSON.parse(text) as Record<string, unknown>;
}
const sent = () => upstream.requests.at(-1)?.body as Sent;
async function chat(messages: readonly object[], more: object = {}): Promise<Sent> {
  await post('chat/completions', { model: 'local/sees', messages, ...more });
  return sent();
}
async function respond(input: readonly object[], more: object = {}): Promise<Sent> {
  await post('responses', { model: 'local/sees', input, ...more });
  return sent();
}
const user = (content: unknown) => ({ role: 'user', content });
const toolCall = (id: string) => ({ id, type: 'function', function: { name: 'view', arguments: '{}' } });
const functionCall = { type: 'function_call', call_id: 'c1', name: 'view_image', arguments: '{}' };
const output = (...blocks: readonly object[]) => ({ type: 'function_call_output', call_id: 'c1', output: blocks });
const image = { type: 'input_image', image_url: png };

describe('messages of a history', () => {
  test('may hold what OpenAI and SDKs write into their answers', async () => {
    const { messages } = await chat([
      user('one'),
      // @openai/agents 0.20.0
      { role: 'assistant', content: [{ type: 'text', text: 'One.', role: 'assistant', annotations: [], providerData: {} }] },
      user('two'),
      // openai 7.57.0
      { role: 'assistant', content: 'Two.', refusal: null, annotations: [], audio: null, function_call: null, tool_calls: [], reasoning: { x: 1 } },
      user('three'),
      { role: 'assistant', content: null, tool_calls: [{ ...toolCall('a'), index: 0, extra_content: { google: {} } }] },
      { role: 'tool', tool_call_id: 'a', content: null, extra: true },
      user([{ type: 'text', text: 'four', id: 'p1' }]),
    ]);
    expect(messages.slice(-8).map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant', 'user', 'assistant', 'tool', 'user']);
    expect(messages.slice(-7, -6)).toMatchObject([{ content: expect.stringContaining('One.') }]);
  });

  test('may hold reasoning, which is sent to providers that require it', async () => {
    // qwen-code 0.15.10 with a model named deepseek-reasoner
    const history = [user('one'), { role: 'assistant', content: 'One.', reasoning_content: 'They want one.' }, user('two')];
    await chat(history, { model: 'deep/deepseek-reasoner' });
    expect(sent().messages.at(-2)).toMatchObject({ role: 'assistant', reasoning_content: 'They want one.' });
    await chat(history);
    expect(sent().messages.at(-2)).not.toHaveProperty('reasoning_content');
  });

  test('may hold cache marks, which are sent to providers that support them', async () => {
    const ephemeral = { type: 'ephemeral' };
    // opencode 1.18.33 with a model named claude-…
    const history = [
      { role: 'system', content: 'You are opencode.', cache_control: ephemeral },
      user('one'),
      { role: 'assistant', content: 'One.', cache_control: ephemeral },
      user([{ type: 'text', text: 'two', cache_control: ephemeral }]),
    ];
    const { system, messages } = await chat(history, { model: 'claude/claude-sonnet' });
    expect(messages).toMatchObject([
      { role: 'user', content: [{ text: 'one' }] },
      { role: 'assistant', content: [{ cache_control: ephemeral }] },
      { role: 'user', content: [{ text: 'two', cache_control: ephemeral }] },
    ]);
    expect(JSON.stringify(messages[0])).not.toContain('cache_control');
    // The API accepts four.
    expect(JSON.stringify({ system, messages }).match(/cache_control/g)?.length).toBeLessThanOrEqual(4);
    expect(JSON.stringify(await chat(history))).not.toContain('cache_control');
  });

  test('harmless options are accepted', async () => {
    const body = await chat([user('hi')], {
      modalities: ['text'],
      audio: null,
      service_tier: 'flex',
      verbosity: 'low',
      prediction: { type: 'content', content: 'x' },
      prompt_cache_retention: '24h',
      logit_bias: {},
      top_logprobs: 0,
      stream_options: null,
      reasoning_effort: 'max',
    });
    expect(body.reasoning_effort).toBe('high');
    expect(body).not.toHaveProperty('service_tier');
  });
});

describe('images and files among the results of functions', () => {
  test('go to a vision model, after the results', async () => {
    // Codex 0.169.0, view_image
    const { messages } = await respond([user('look'), functionCall, output({ ...image, detail: 'original' }), user('and now?')]);
    expect(messages.slice(-4)).toMatchObject([
      { role: 'assistant', tool_calls: [{ id: 'c1' }] },
      { role: 'tool', content: expect.stringContaining('[image 1: follows the results]') },
      { role: 'user', content: [{ text: '[image 1 of the tool results above]' }, { type: 'image_url', image_url: { url: png } }] },
      { role: 'user', content: 'and now?' },
    ]);
    const chatted = await chat([
      user('look'),
      { role: 'assistant', content: null, tool_calls: [toolCall('a'), toolCall('b')] },
      {
        role: 'tool',
        tool_call_id: 'a',
        content: [
          { type: 'text', text: 'A' },
          { type: 'image_url', image_url: { url: png } },
        ],
      },
      { role: 'tool', tool_call_id: 'b', content: [{ type: 'file', file: { filename: 'b.pdf', file_data: pdf } }] },
    ]);
    expect(chatted.messages.slice(-3)).toMatchObject([
      { role: 'tool', content: expect.stringContaining('A\n[image 1: follows the results]') },
      { role: 'tool', content: expect.stringContaining('[file 2: follows the results]') },
      { role: 'user', content: [{ type: 'text' }, { type: 'image_url' }, { text: '[file 2 of the tool results above]' }, { type: 'file' }] },
    ]);
  });

  test('come with the results of the same step to Anthropic', async () => {
    const { messages } = await respond([user('look'), functionCall, output(image)], { model: 'claude/claude-sonnet' });
    expect(messages.at(-1)).toMatchObject({ role: 'user', content: [{ type: 'tool_result' }, { type: 'text' }, { type: 'image' }] });
  });

  test('are replaced by a note for a model without vision, also when the response is continued', async () => {
    const first = await post('responses', { model: 'blind/reads', input: [user('look'), functionCall, output(image)] });
    expect(JSON.stringify(sent().messages.slice(-2))).toContain('[image left out: the model blind/reads cannot see it]');
    await post('responses', { model: 'blind/reads', previous_response_id: first['id'], input: 'and now?' });
    expect(JSON.stringify(sent().messages)).toContain('image left out');
    const seen = await post('responses', { model: 'local/sees', input: [user('look'), functionCall, output(image)] });
    await post('responses', { model: 'blind/reads', previous_response_id: seen['id'], input: 'and now?' });
    expect(JSON.stringify(sent().messages)).not.toContain(png);
  });

  test('that no model accepts become a note, and the conversation continues', async () => {
    const blocks = [
      { type: 'input_image', file_id: 'file_1' },
      { type: 'input_image', image_url: 'data:image/svg+xml;base64,AAAA' },
      { type: 'input_file', filename: 'a.zip', file_data: 'AAAA' },
      { type: 'input_file', file_id: 'file_2' },
      { type: 'output_text', text: 'said' },
    ];
    const { messages } = await respond([user('look'), functionCall, output(...blocks)]);
    expect(messages.at(-1)?.role).toBe('tool');
    expect(String(messages.at(-1)?.content).match(/left out/g)).toHaveLength(4);
  });

  test('of a user are refused by a model without vision', async () => {
    const response = await fetch(`${server.url}/v1/responses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'blind/reads', input: [user([image])] }),
    });
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('does not take images')]);
  });
});

describe('items of a history', () => {
  test('may hold unknown keys, and reasoning of others', async () => {
    const input = [
      { ...user('one'), name: 'x', internal: null },
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Short.' }], encrypted_content: 'gAAAA', content: null },
      {
        type: 'message',
        role: 'assistant',
        id: 'm',
        status: 'completed',
        phase: 'final',
        content: [{ type: 'output_text', text: 'One.', annotations: [{}] }],
      },
      user('two'),
    ];
    await respond(input, { model: 'deep/deepseek-reasoner' });
    expect(sent().messages.at(-2)).toMatchObject({ reasoning_content: 'Short.', content: expect.stringContaining('One.') });
    await respond(input);
    expect(sent().messages.at(-2)).not.toHaveProperty('reasoning_content');
  });

  test('harmless options are accepted, and echoed where the response has a field for them', async () => {
    const wishes = {
      truncation: 'auto',
      service_tier: 'priority',
      prompt_cache_retention: '24h',
      max_tool_calls: 3,
      stream_options: { include_obfuscation: true },
    };
    const response = await post('responses', {
      model: 'local/sees',
      input: 'hi',
      ...wishes,
      text: { verbosity: 'low' },
      reasoning: { effort: 'max' },
    });
    expect(response).toMatchObject({ max_tool_calls: 3, text: { verbosity: 'low' }, reasoning: { effort: 'high' }, service_tier: 'default' });
    expect(sent().reasoning_effort).toBe('high');
  });

  test('functions of a namespace are offered under both names, and called by both', async () => {
    // Codex 0.169.0 with an MCP server
    const inner = { type: 'function', name: 'ask', description: 'Asks', strict: false, parameters: { type: 'object' }, defer_loading: false };
    const tools = [{ type: 'namespace', name: 'mcp__gatehouse', description: 'Tools of the server', tools: [inner] }];
    upstream.queue({ toolCalls: [{ id: 'c1', name: 'mcp__gatehouse__ask', arguments: '{}' }] });
    const first = await post('responses', { model: 'local/sees', input: 'hi', tools });
    expect(sent().tools).toMatchObject([{ function: { name: 'mcp__gatehouse__ask' } }]);
    expect(first['output']).toMatchObject([{ type: 'function_call', name: 'ask', namespace: 'mcp__gatehouse', call_id: 'c1' }]);
    expect(first['tools']).toMatchObject([{ type: 'function', name: 'mcp__gatehouse__ask' }]);
    const [call] = first['output'] as object[];
    const { messages } = await respond([user('hi'), call ?? {}, { type: 'function_call_output', call_id: 'c1', output: 'yes' }], { tools });
    expect(messages.at(-2)).toMatchObject({ tool_calls: [{ function: { name: 'mcp__gatehouse__ask' } }] });
  });
});
