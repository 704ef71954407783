import { createStepClock, type FakeProvider, startFakeProvider } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ModelMessage, ModelRequest, ModelSink, ThinkingBlock } from '../model.ts';
import { testModel, testRequest } from '../testing.ts';
import { Upstream } from '../wire/upstream.ts';
import { createMessagesClient } from './client.ts';

let provider: FakeProvider;
beforeAll(async () => {
  provider = await startFakeProvider({ deltas: 1 });
});
afterAll(() => provider.close());

async function generate(request: Partial<ModelRequest>, sink?: ModelSink) {
  await using client = createMessagesClient(
    new Upstream({ provider: 'anthropic', baseUrl: provider.url, headers: [{}], secrets: [], maxConnections: 1, clock: createStepClock() }),
  );
  return await client.generate(testRequest(request), sink);
}
async function sent(request: Partial<ModelRequest>) {
  await generate(request);
  return provider.requests.at(-1)?.body;
}

const thinking: ThinkingBlock = { type: 'thinking', thinking: 'Let me "see".', signature: 'sig-1' };
const answer = { thinking: { text: thinking.thinking, signature: thinking.signature }, text: 'Seen.', stopSequence: 'END' };
const user: ModelMessage = { role: 'user', content: 'Hi' };

test('reasoning is returned whole and signed, with the stop sequence', async () => {
  provider.queue(answer);
  expect(await generate({})).toMatchObject({ text: 'Seen.', thinking: [thinking], stopSequence: 'END' });
});

test('streamed reasoning precedes the text and is not part of it', async () => {
  provider.queue(answer);
  const seen: unknown[] = [];
  const sink: ModelSink = {
    thinking: { fragment: (fragment) => void seen.push(['thinking', fragment]), block: (block) => void seen.push(block) },
    text: (fragment) => void seen.push(['text', fragment]),
    flush: () => true,
    drained: async () => {},
  };
  expect(await generate({}, sink)).toMatchObject({ text: 'Seen.', thinking: [thinking], stopSequence: 'END' });
  expect(seen).toEqual([['thinking', String.raw`Let me \"see\".`], thinking, ['text', 'Seen.']]);
});

test('an effort is a budget of reasoning for models that reason, within the length of the answer', async () => {
  const model = { ...testModel, reasoning: true, maxTokens: 20_000 };
  const thinkingFor = async (request: Partial<ModelRequest>) => ((await sent(request)) as { thinking?: unknown }).thinking;
  expect(await thinkingFor({ model, options: { depth: 'low' } })).toEqual({ type: 'enabled', budget_tokens: 2048 });
  expect(await thinkingFor({ model, options: { depth: 'high' } })).toEqual({ type: 'enabled', budget_tokens: 10_000 });
  expect(await thinkingFor({ model, options: { depth: 'high', thinking: { type: 'disabled' } } })).toEqual({ type: 'disabled' });
  expect(await thinkingFor({ model: testModel, options: { depth: 'high' } })).toBeUndefined();
});

test('signed reasoning is sent back before the text; unsigned reasoning is not sent', async () => {
  const messages: ModelMessage[] = [
    user,
    {
      role: 'assistant',
      content: 'Seen.',
      thinking: [thinking, { type: 'thinking', thinking: 'unsigned', signature: '' }, { type: 'redacted_thinking', data: 'abc' }],
    },
    user,
  ];
  const body = await sent({ messages, cacheRetention: 'none' });
  expect(body).toHaveProperty('messages.1.content', [thinking, { type: 'redacted_thinking', data: 'abc' }, { type: 'text', text: 'Seen.' }]);
});

test('a budget of reasoning shrinks with the answer, and no temperature is sent with it', async () => {
  const options = { thinking: { type: 'enabled' as const, budgetTokens: 8_000 }, topK: 5, effort: 'high' };
  const whole = await sent({ options, maxTokens: 10_000, temperature: 0.3 });
  expect(whole).toMatchObject({ thinking: { type: 'enabled', budget_tokens: 8_000 }, top_k: 5, output_config: { effort: 'high' } });
  expect(whole).not.toHaveProperty('temperature');
  expect(await sent({ options, maxTokens: 4_000 })).toMatchObject({ thinking: { budget_tokens: 2_000 } });
  const short = await sent({ options, maxTokens: 1_000, temperature: 0.3 });
  expect(short).not.toHaveProperty('thinking');
  expect(short).toHaveProperty('temperature', 0.3);
});

test("a caller's mark at the end of the system prompt is used where the agent sets none", async () => {
  const marked = await sent({ system: ['a', 'b'], options: { systemCacheMark: true }, cacheRetention: 'none' });
  expect(marked).toMatchObject({ system: [{ text: 'a' }, { text: 'b', cache_control: { type: 'ephemeral' } }] });
  expect(JSON.stringify(marked).match(/cache_control/g)).toHaveLength(1);
});
