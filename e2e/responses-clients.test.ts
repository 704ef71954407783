import { createOpenResponses } from '@ai-sdk/open-responses';
import { generateText, isStepCount, streamText, tool } from 'ai';
import OpenAI, { NotFoundError } from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { type Product, startProduct } from './lib/product.ts';

let product: Product;
beforeAll(async () => {
  product = await startProduct({ config: { gateway: { compat: { tools: 'none' } } } });
});
afterAll(() => product[Symbol.asyncDispose]());

const model = 'local/test-model';
const call = { id: 'call_w', name: 'get_weather', arguments: '{"place":"Oslo"}' };
const parameters = z.object({ place: z.string() });

describe('the openai package', () => {
  const client = () => new OpenAI({ apiKey: product.token, baseURL: `${product.url}/v1` });
  const weather = { type: 'function' as const, name: 'get_weather', strict: null, parameters: z.toJSONSchema(parameters) };

  test('create, retrieve, delete', async () => {
    product.provider.queue({ text: 'Good morning.', usage: { input: 21, output: 4 } });
    const response = await client().responses.create({ model, input: 'hello' });
    expect([response.output_text, response.status, response.usage?.total_tokens]).toEqual(['Good morning.', 'completed', 25]);
    expect((await client().responses.retrieve(response.id)).output_text).toBe('Good morning.');
    await client().responses.delete(response.id);
    await expect(client().responses.retrieve(response.id)).rejects.toBeInstanceOf(NotFoundError);
  });

  test('stream, and its helper', async () => {
    product.provider.queue({ text: ['one ', '"two" ', 'three\n'] }, { text: ['one ', '"two" ', 'three\n'] });
    let text = '';
    for await (const event of await client().responses.create({ model, input: 'count', stream: true }))
      if (event.type === 'response.output_text.delta') text += event.delta;
    expect(text).toBe('one "two" three\n');
    const final = await client().responses.stream({ model, input: 'count' }).finalResponse();
    expect(final.output_text).toBe(text);
  });

  test('a tool round trip that continues from the stored response after a restart', async () => {
    product.provider.queue({ toolCalls: [call] }, { text: 'Rain in Oslo.' });
    const first = await client().responses.create({ model, input: 'Weather in Oslo?', tools: [weather] });
    const [item] = first.output;
    expect(item).toMatchObject({ type: 'function_call', name: 'get_weather', arguments: call.arguments });
    await product.restart();
    const second = await client().responses.create({
      model,
      previous_response_id: first.id,
      tools: [weather],
      input: [{ type: 'function_call_output', call_id: item?.type === 'function_call' ? item.call_id : '', output: 'rain' }],
    });
    expect([second.output_text, second.previous_response_id]).toEqual(['Rain in Oslo.', first.id]);
  });

  test('a failure in the middle of a stream is a failed response', async () => {
    product.provider.queue({ text: ['half ', 'of it'], breakAfter: { deltas: 1, by: 'error' } });
    const types: string[] = [];
    for await (const event of await client().responses.create({ model, input: 'x', stream: true })) types.push(event.type);
    expect(types.at(-1)).toBe('response.failed');
  });
});

describe('@ai-sdk/open-responses', () => {
  const language = () => createOpenResponses({ name: 'gatehouse', url: `${product.url}/v1/responses`, apiKey: product.token })(model);
  const tools = { get_weather: tool({ inputSchema: parameters, execute: async ({ place }) => `rain in ${place}` }) };

  test('generateText', async () => {
    product.provider.queue({ text: 'It works.', usage: { input: 12, output: 3 } });
    const { text, usage, finishReason } = await generateText({ model: language(), instructions: 'Be brief.', prompt: 'Does it work?' });
    expect([text, finishReason]).toEqual(['It works.', 'stop']);
    expect(usage).toMatchObject({ inputTokens: 12, outputTokens: 3 });
  });

  test('streamText with a tool', async () => {
    product.provider.queue({ text: ['I ', 'look.'], toolCalls: [call] }, { text: ['It ', 'rains.'] });
    const result = streamText({ model: language(), prompt: 'Weather in Oslo?', tools, stopWhen: isStepCount(3) });
    expect(await result.text).toBe('It rains.');
    const steps = await result.steps;
    expect(steps.map((step) => step.toolResults.map(({ output }) => output))).toEqual([['rain in Oslo'], []]);
  });
});
