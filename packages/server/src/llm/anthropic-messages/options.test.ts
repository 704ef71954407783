import { createStepClock, type FakeProvider, startFakeProvider } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ModelOptions, ModelRequest } from '../model.ts';
import { testRequest } from '../testing.ts';
import { Upstream } from '../wire/upstream.ts';
import { createMessagesClient } from './client.ts';

let provider: FakeProvider;
beforeAll(async () => {
  provider = await startFakeProvider({ deltas: 1 });
});
afterAll(() => provider.close());

const tools = [{ name: 'look', description: 'Looks', parameters: { type: 'object' } }];

async function sent(request: Partial<ModelRequest>) {
  await using client = createMessagesClient(
    new Upstream({ provider: 'anthropic', baseUrl: provider.url, headers: [{}], secrets: [], maxConnections: 1, clock: createStepClock() }),
  );
  await client.generate(testRequest(request));
  return provider.requests.at(-1)?.body;
}

test('options are sent under the names of the wire', async () => {
  const schema = { type: 'object' };
  const body = await sent({
    options: { topP: 0.4, stop: ['END'], endUser: 'ada', responseFormat: { type: 'json_schema', name: 'answer', schema } },
  });
  expect(body).toMatchObject({
    top_p: 0.4,
    stop_sequences: ['END'],
    metadata: { user_id: 'ada' },
    output_config: { format: { type: 'json_schema', schema } },
  });
  expect(body).not.toHaveProperty('tool_choice');
});

test.for<[ModelOptions, unknown]>([
  [{ toolChoice: 'auto' }, { type: 'auto' }],
  [{ toolChoice: 'required' }, { type: 'any' }],
  [{ toolChoice: { name: 'look' } }, { type: 'tool', name: 'look' }],
  [{ toolChoice: 'none', parallelToolCalls: false }, { type: 'none' }],
  [{ parallelToolCalls: false }, { type: 'auto', disable_parallel_tool_use: true }],
  [
    { toolChoice: 'required', parallelToolCalls: false },
    { type: 'any', disable_parallel_tool_use: true },
  ],
  [{ parallelToolCalls: true }, undefined],
])('the choice among tools %j becomes %j', async ([options, choice]) => {
  const body = await sent({ tools, options });
  expect(body).toMatchObject({ tools: [{ name: 'look' }] });
  expect(body).toEqual(
    choice === undefined ? expect.not.objectContaining({ tool_choice: expect.anything() }) : expect.objectContaining({ tool_choice: choice }),
  );
  expect(await sent({ options })).not.toHaveProperty('tool_choice');
});

test('tools called in the conversation are declared, also where none may be called', async () => {
  const messages: ModelRequest['messages'] = [
    { role: 'user', content: 'go' },
    { role: 'assistant', content: '', toolCalls: [{ id: 'c1', name: 'look', arguments: '{}' }] },
    { role: 'tool', content: 'a sky', toolCallId: 'c1', toolName: 'look' },
    { role: 'assistant', content: '', toolCalls: [{ id: 'c2', name: 'look', arguments: '{}' }] },
    { role: 'tool', content: 'a sea', toolCallId: 'c2', toolName: 'look' },
  ];
  for (const options of [undefined, { toolChoice: 'auto' }, { parallelToolCalls: false }] as const) {
    expect(await sent({ messages, ...(options !== undefined && { options }) })).toMatchObject({
      tools: [{ name: 'look', input_schema: { type: 'object' } }],
      tool_choice: { type: 'none' },
    });
  }
  expect(await sent({ messages, tools })).toMatchObject({ tools: [{ name: 'look', description: 'Looks' }] });
});

test('images and files become blocks, by bytes or by URL', async () => {
  const body = await sent({
    messages: [
      {
        role: 'user',
        content: 'what is it?',
        parts: [
          { type: 'text', text: ' ' },
          { type: 'image', url: 'data:image/png;base64,AAAA' },
          { type: 'image', url: 'https://example.org/a.png' },
          { type: 'file', url: 'data:application/pdf;base64,JVBERi0=', name: 'a.pdf' },
        ],
      },
    ],
  });
  expect(body).toMatchObject({
    messages: [
      {
        role: 'user',
        content: [
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
          { type: 'image', source: { type: 'url', url: 'https://example.org/a.png' } },
          { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' }, title: 'a.pdf' },
        ],
      },
    ],
  });
});
