import { createStepClock, type FakeProvider, startFakeProvider } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ModelOptions } from '../model.ts';
import { testModel, testRequest } from '../testing.ts';
import { vendors } from '../vendors.ts';
import { Upstream } from '../wire/upstream.ts';
import { createChatClient } from './client.ts';

let provider: FakeProvider;
beforeAll(async () => {
  provider = await startFakeProvider({ deltas: 1 });
});
afterAll(() => provider.close());

const tool = { name: 'look', description: 'Looks', parameters: { type: 'object' }, strict: true };

/** The body that is sent to a vendor. */
async function sent(type: keyof typeof vendors, options: ModelOptions, more: { readonly tools?: boolean; readonly modelId?: string } = {}) {
  await using client = createChatClient(
    new Upstream({ provider: type, baseUrl: provider.url, headers: [{}], secrets: [], maxConnections: 1, clock: createStepClock() }),
    vendors[type],
  );
  const { tools = false, modelId = 'm' } = more;
  await client.generate(testRequest({ options, tools: tools ? [tool] : [], model: { ...testModel, modelId } }));
  return provider.requests.at(-1)?.body;
}

describe('options of a call', () => {
  test('are sent under the names of the wire', async () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } } };
    const options: ModelOptions = {
      topP: 0.4,
      stop: ['END'],
      seed: 7,
      presencePenalty: 0.1,
      frequencyPenalty: 0.2,
      responseFormat: { type: 'json_schema', name: 'answer', schema, strict: true },
      toolChoice: { name: 'look' },
      parallelToolCalls: false,
      reasoningEffort: 'low',
      endUser: 'ada',
    };
    expect(await sent('openai', options, { tools: true })).toMatchObject({
      top_p: 0.4,
      stop: ['END'],
      seed: 7,
      presence_penalty: 0.1,
      frequency_penalty: 0.2,
      response_format: { type: 'json_schema', json_schema: { name: 'answer', schema, strict: true } },
      tool_choice: { type: 'function', function: { name: 'look' } },
      tools: [{ type: 'function', function: { name: 'look', strict: true } }],
      parallel_tool_calls: false,
      reasoning_effort: 'low',
      user: 'ada',
    });
  });

  test('that are absent leave no trace, and those about tools need tools', async () => {
    const plain = await sent('openai', {});
    expect(await sent('openai', { toolChoice: 'auto', parallelToolCalls: true })).toEqual(plain);
    expect(Object.keys(plain ?? {}).sort()).toEqual(['messages', 'model', 'stream']);
  });

  test('use the dialect of the vendor', async () => {
    const mistral = await sent('mistral', { seed: 7, toolChoice: 'required', endUser: 'ada' }, { tools: true });
    expect(mistral).toMatchObject({ random_seed: 7, tool_choice: 'any' });
    expect(mistral).not.toHaveProperty('seed');
    expect(mistral).not.toHaveProperty('user');
    expect(await sent('openrouter', { seed: 7 })).toMatchObject({ seed: 7, provider: { require_parameters: true } });
  });

  test('values that change nothing are omitted where they would be refused', async () => {
    const neutral: ModelOptions = { topP: 1, presencePenalty: 0, frequencyPenalty: 0 };
    expect(await sent('openai', neutral, { modelId: 'gpt-4o' })).toMatchObject({ top_p: 1, presence_penalty: 0, frequency_penalty: 0 });
    const reasoning = await sent('openai', neutral, { modelId: 'gpt-5-mini' });
    for (const field of ['top_p', 'presence_penalty', 'frequency_penalty']) expect(reasoning).not.toHaveProperty(field);
    const groq = await sent('groq', neutral);
    expect(groq).toMatchObject({ top_p: 1 });
    expect(groq).not.toHaveProperty('presence_penalty');
  });

  test('tools that must not be called are declared where calls can be forbidden, and omitted where not', async () => {
    expect(await sent('openai', { toolChoice: 'none' }, { tools: true })).toMatchObject({ tools: [{}], tool_choice: 'none' });
    const ollama = await sent('ollama', { toolChoice: 'none' }, { tools: true });
    expect(ollama).not.toHaveProperty('tools');
    expect(ollama).not.toHaveProperty('tool_choice');
    expect(await sent('ollama', { toolChoice: 'auto' }, { tools: true })).toMatchObject({ tools: [{}] });
  });
});

test('the parts of a message are sent in order, instead of its content', async () => {
  await using client = createChatClient(
    new Upstream({ provider: 'openai', baseUrl: provider.url, headers: [{}], secrets: [], maxConnections: 1, clock: createStepClock() }),
    vendors.openai,
  );
  const url = 'data:image/png;base64,AAAA';
  const file = 'data:application/pdf;base64,JVBERi0=';
  await client.generate(
    testRequest({
      messages: [
        {
          role: 'user',
          content: 'what is it?',
          parts: [
            { type: 'text', text: 'what is it?' },
            { type: 'image', url },
            { type: 'image', url: 'https://example.org/a.png' },
            { type: 'file', url: file, name: 'a.pdf' },
          ],
        },
      ],
    }),
  );
  expect(provider.requests.at(-1)?.body).toMatchObject({
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'what is it?' },
          { type: 'image_url', image_url: { url } },
          { type: 'image_url', image_url: { url: 'https://example.org/a.png' } },
          { type: 'file', file: { filename: 'a.pdf', file_data: file } },
        ],
      },
    ],
  });
});
