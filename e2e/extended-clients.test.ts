import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, isStepCount, streamText, tool } from 'ai';
import OpenAI, { BadRequestError } from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { type Product, startProduct } from './lib/product.ts';

// `gateway.compat.fields: extended`, for clients with their own tools.

let product: Product;
beforeAll(async () => {
  product = await startProduct({ config: { gateway: { compat: { fields: 'extended', tools: 'none' } } } });
});
afterAll(() => product[Symbol.asyncDispose]());

const model = 'local/test-model';
const call = { id: 'call_w', name: 'get_weather', arguments: '{"place":"Oslo"}' };
const parameters = z.object({ place: z.string() });
const schema = { type: 'object' as const, properties: { place: { type: 'string' as const } }, required: ['place'] };

describe('the openai package', () => {
  const client = () => new OpenAI({ apiKey: product.token, baseURL: `${product.url}/v1` });
  const weather = { type: 'function' as const, function: { name: 'get_weather', parameters: schema } };

  test('a tool round trip', async () => {
    product.provider.queue({ toolCalls: [call] }, { text: 'Rain in Oslo.' });
    const question = { role: 'user' as const, content: 'Weather in Oslo?' };
    const first = await client().chat.completions.create({ model, messages: [question], tools: [weather] });
    const [choice] = first.choices;
    expect(choice).toMatchObject({
      finish_reason: 'tool_calls',
      message: { content: null, tool_calls: [{ id: 'call_w', type: 'function', function: { name: 'get_weather', arguments: call.arguments } }] },
    });
    if (choice === undefined) return;
    const messages = [question, choice.message, { role: 'tool' as const, tool_call_id: 'call_w', content: 'rain' }];
    const second = await client().chat.completions.create({ model, messages, tools: [weather] });
    expect(second.choices[0]?.message.content).toBe('Rain in Oslo.');
  });

  test('the tool runner, streamed', async () => {
    product.provider.queue({ text: ['I ', 'look.'], toolCalls: [call] }, { text: ['It ', 'rains.'] });
    const asked: unknown[] = [];
    const runner = client().chat.completions.runTools({
      model,
      stream: true,
      messages: [{ role: 'user', content: 'Weather in Oslo?' }],
      tools: [
        {
          type: 'function',
          function: {
            ...weather.function,
            description: 'Weather of a place',
            function: (given: string) => {
              asked.push(JSON.parse(given));
              return 'rain';
            },
          },
        },
      ],
    });
    expect(await runner.finalContent()).toBe('It rains.');
    expect(asked).toEqual([{ place: 'Oslo' }]);
  });

  test('sampling options reach the provider, and two answers are refused', async () => {
    const sampling = { top_p: 0.5, stop: ['END'], seed: 7, max_completion_tokens: 50, response_format: { type: 'json_object' as const } };
    await client().chat.completions.create({
      model,
      messages: [
        { role: 'developer', content: 'Be brief.' },
        { role: 'user', content: 'hi' },
      ],
      ...sampling,
    });
    expect(product.provider.requests.at(-1)?.body).toMatchObject({ top_p: 0.5, stop: ['END'], seed: 7, response_format: { type: 'json_object' } });
    const refused = client().chat.completions.create({ model, messages: [{ role: 'user', content: 'hi' }], n: 2 });
    await expect(refused).rejects.toBeInstanceOf(BadRequestError);
  });
});

describe('@ai-sdk/openai-compatible with tools', () => {
  const language = () =>
    createOpenAICompatible({ name: 'gatehouse', baseURL: `${product.url}/v1`, apiKey: product.token, includeUsage: true })(model);
  const tools = { get_weather: tool({ inputSchema: parameters, execute: async ({ place }) => `rain in ${place}` }) };

  test('generateText', async () => {
    product.provider.queue({ toolCalls: [call] }, { text: 'It rains.' });
    const { text, steps } = await generateText({ model: language(), prompt: 'Weather in Oslo?', tools, stopWhen: isStepCount(3) });
    expect([text, steps.map((step) => step.finishReason)]).toEqual(['It rains.', ['tool-calls', 'stop']]);
  });

  test('streamText', async () => {
    product.provider.queue({ text: ['I ', 'look.'], toolCalls: [call] }, { text: ['It ', 'rains.'] });
    const result = streamText({ model: language(), prompt: 'Weather in Oslo?', tools, stopWhen: isStepCount(3) });
    expect(await result.text).toBe('It rains.');
  });
});
