import type { ResponseObject } from '@gatehouse/contract';
import { type FakeProvider, startFakeProvider, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { responsesClient } from '../../testing/responses-client.ts';

// The compliance suite of Open Responses, against a whole server with a scripted provider.

let provider: FakeProvider;
let server: TestServer;
let client: ReturnType<typeof responsesClient>;
beforeAll(async () => {
  provider = await startFakeProvider();
  server = await startTestServer({
    config: {
      gateway: { compat: { tools: 'none' } },
      providers: { seeing: { type: 'openai-compatible', baseUrl: provider.url, models: [{ id: 'seer', input: ['text', 'image', 'pdf'] }] } },
    },
  });
  client = responsesClient(server.url, server.token);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await provider.close();
});

const model = 'seeing/seer';
const weather = {
  type: 'function',
  name: 'get_weather',
  description: 'Get the weather of a place',
  parameters: { type: 'object', properties: { location: { type: 'string' } }, required: ['location'] },
};
const weatherCall = { id: 'call_7', name: 'get_weather', arguments: '{"location":"San Francisco, CA"}' };

/** Messages of the last request that reached the provider. */
function sent(): { readonly role: string; readonly content: unknown; readonly tool_calls?: unknown }[] {
  const body = provider.requests.at(-1)?.body;
  return (body as { messages: { role: string; content: unknown }[] }).messages;
}

function textOf(response: ResponseObject): string {
  return response.output.flatMap((item) => (item.type === 'message' ? item.content.map((part) => part.text) : [])).join('');
}

describe('Open Responses', () => {
  it('basic response', async () => {
    provider.queue({ text: 'Hello there friend.', usage: { input: 30, output: 5, cacheRead: 12 } });
    const response = await client.create({ model, input: [{ type: 'message', role: 'user', content: 'Say hello in exactly 3 words.' }] });
    expect(response).toMatchObject({
      status: 'completed',
      model,
      output: [{ type: 'message', role: 'assistant', status: 'completed', content: [{ text: 'Hello there friend.' }] }],
      usage: { input_tokens: 30, input_tokens_details: { cached_tokens: 12 }, output_tokens: 5, total_tokens: 35 },
    });
    expect(response.completed_at).toBeGreaterThanOrEqual(response.created_at);
  });

  it('streaming response', async () => {
    provider.queue({ text: ['1, ', '2, "3"\n', '4 — 5 🎈'] });
    const { events, final } = await client.stream({ model, input: 'Count from 1 to 5.' });
    expect(events.map((event) => event.type)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ]);
    const deltas = events.flatMap((event) => (event.type === 'response.output_text.delta' ? [event.delta] : []));
    expect(deltas.join('')).toBe('1, 2, "3"\n4 — 5 🎈');
    expect([final.status, textOf(final)]).toEqual(['completed', deltas.join('')]);
    const ids = new Set(events.flatMap((event) => ('item_id' in event ? [event.item_id] : 'item' in event ? [event.item?.id] : [])));
    expect([...ids]).toEqual([final.output[0]?.id]);
  });

  it('system prompt', async () => {
    provider.queue({ text: 'Ahoy!' });
    const response = await client.create({
      model,
      instructions: 'Be short.',
      input: [
        { type: 'message', role: 'system', content: 'You are a pirate.' },
        { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'Never say please.' }] },
        { type: 'message', role: 'user', content: 'Say hello.' },
      ],
    });
    expect([response.status, response.instructions, textOf(response)]).toEqual(['completed', 'Be short.', 'Ahoy!']);
    const [system, ...others] = sent();
    expect(others).toEqual([{ role: 'user', content: 'Say hello.' }]);
    expect(String(system?.content)).toMatch(/Be short\.[^]*You are a pirate\.[^]*Never say please\./);
  });

  it('tool calling', async () => {
    provider.queue({ toolCalls: [weatherCall] });
    const response = await client.create({ model, input: 'What is the weather in San Francisco?', tools: [weather] });
    expect(response.output).toEqual([
      {
        type: 'function_call',
        id: expect.stringMatching(/^fc_/),
        call_id: 'call_7',
        name: 'get_weather',
        arguments: weatherCall.arguments,
        status: 'completed',
      },
    ]);
    expect(response.tools).toEqual([{ ...weather, strict: null }]);
    expect(provider.requests.at(-1)?.body).toMatchObject({
      tools: [{ type: 'function', function: { name: 'get_weather', parameters: weather.parameters } }],
    });
  });

  it('tool calling, streamed, after some text', async () => {
    provider.queue({ text: ['Let me ', 'look.'], toolCalls: [weatherCall, { ...weatherCall, id: 'call_8' }] });
    const { events, final } = await client.stream({ model, input: 'Weather?', tools: [weather] });
    expect(events.slice(6).map((event) => event.type)).toEqual([
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      ...[1, 2].flatMap(() => [
        'response.output_item.added',
        'response.function_call_arguments.delta',
        'response.function_call_arguments.done',
        'response.output_item.done',
      ]),
      'response.completed',
    ]);
    expect(final.output.map((item) => item.type)).toEqual(['message', 'function_call', 'function_call']);
    expect(events.flatMap((event) => ('output_index' in event && event.type === 'response.output_item.done' ? [event.item] : []))).toEqual(
      final.output,
    );
  });

  it('function call round trip, without a stored response', async () => {
    provider.queue({ text: 'It is sunny.' });
    const response = await client.create({
      model,
      store: false,
      tools: [weather],
      input: [
        { role: 'user', content: 'Weather?' },
        { type: 'reasoning', summary: [], encrypted_content: null },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I look.', annotations: [] }] },
        { type: 'function_call', call_id: 'call_7', name: 'get_weather', arguments: weatherCall.arguments },
        { type: 'function_call', call_id: 'call_8', name: 'get_weather', arguments: '{}' },
        { type: 'function_call_output', call_id: 'call_7', output: '{"sky":"clear"}' },
        { type: 'function_call_output', call_id: 'call_8', output: [{ type: 'input_text', text: 'no city given' }] },
      ],
    });
    expect([response.status, textOf(response), response.store]).toEqual(['completed', 'It is sunny.', false]);
    const [, , assistant, first, second] = sent();
    expect(assistant).toMatchObject({
      role: 'assistant',
      content: expect.stringContaining('I look.'),
      tool_calls: [{ id: 'call_7' }, { id: 'call_8' }],
    });
    expect([first, second]).toMatchObject([
      { role: 'tool', tool_call_id: 'call_7', content: expect.stringContaining('{"sky":"clear"}') },
      { role: 'tool', tool_call_id: 'call_8', content: expect.stringContaining('no city given') },
    ]);
  });

  it('image input', async () => {
    provider.queue({ text: 'A heart.' });
    const image = 'data:image/png;base64,iVBORw0KGgo=';
    const response = await client.create({
      model,
      input: [
        {
          type: 'message',
          role: 'user',
          content: [
            { type: 'input_text', text: 'What is this?' },
            { type: 'input_image', image_url: image, detail: 'auto' },
          ],
        },
      ],
    });
    expect(textOf(response)).toBe('A heart.');
    expect(sent().at(-1)?.content).toEqual([
      { type: 'text', text: 'What is this?' },
      { type: 'image_url', image_url: { url: image, detail: 'auto' } },
    ]);
  });

  it('file input: a PDF as a file, text as text', async () => {
    provider.queue({ text: 'Two files.' });
    const pdf = Buffer.from('%PDF-1.4').toString('base64');
    const response = await client.create({
      model,
      input: [
        {
          type: 'message',
          role: 'user',
          content: [
            { type: 'input_file', filename: 'a.pdf', file_data: pdf },
            { type: 'input_file', filename: 'b.txt', file_data: `data:text/plain;base64,${Buffer.from('grüße').toString('base64')}` },
          ],
        },
      ],
    });
    expect(response.status).toBe('completed');
    expect(sent().at(-1)?.content).toEqual([
      { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdf}` } },
      { type: 'text', text: 'File "b.txt":\ngrüße' },
    ]);
  });

  it('multi-turn conversation', async () => {
    provider.queue({ text: 'Alice.' });
    const response = await client.create({
      model,
      input: [
        { type: 'message', role: 'user', content: 'My name is Alice.' },
        { type: 'message', role: 'assistant', content: 'Hello Alice!' },
        { type: 'message', role: 'user', content: 'What is my name?' },
      ],
    });
    expect(textOf(response)).toBe('Alice.');
    expect(sent().map((message) => message.role)).toEqual(['system', 'user', 'assistant', 'user']);
  });

  it('previous response: calls, results and developer texts carry over, instructions do not', async () => {
    provider.queue({ toolCalls: [weatherCall] }, { text: 'Sunny.' }, { text: 'As I said: sunny.' });
    const first = await client.create({
      model,
      instructions: 'Answer in English.',
      input: [
        { role: 'developer', content: 'You are a barometer.' },
        { role: 'user', content: 'Weather?' },
      ],
      tools: [weather],
    });
    const second = await client.create({
      model,
      previous_response_id: first.id,
      input: [{ type: 'function_call_output', call_id: 'call_7', output: 'clear sky' }],
      tools: [weather],
    });
    const { final } = await client.stream({ model, previous_response_id: second.id, input: 'Again?' });
    expect([final.previous_response_id, textOf(final)]).toEqual([second.id, 'As I said: sunny.']);
    const [system, ...others] = sent();
    expect(String(system?.content)).toContain('You are a barometer.');
    expect(String(system?.content)).not.toContain('Answer in English.');
    expect(others).toMatchObject([
      { role: 'user', content: 'Weather?' },
      { role: 'assistant', tool_calls: [{ id: 'call_7' }] },
      { role: 'tool', content: expect.stringContaining('clear sky') },
      { role: 'assistant', content: 'Sunny.' },
      { role: 'user', content: 'Again?' },
    ]);
  });

  it('item references', async () => {
    provider.queue({ text: 'Forty-two.' }, { text: 'Yes.' });
    const first = await client.create({ model, input: 'What is six times seven?' });
    await client.create({
      model,
      input: [
        { role: 'user', content: 'What is six times seven?' },
        { type: 'item_reference', id: first.output[0]?.id },
        { role: 'user', content: 'Sure?' },
      ],
    });
    expect(sent()[2]).toMatchObject({ role: 'assistant', content: expect.stringContaining('Forty-two.') });
  });
});
