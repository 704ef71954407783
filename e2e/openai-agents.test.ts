import { Agent, type AgentInputItem, OpenAIProvider, Runner, setTracingDisabled, tool } from '@openai/agents';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { type Product, startProduct } from './lib/product.ts';

// The package keeps the history on its side and sends it with every turn, in the shape in which it stored the answers.

let product: Product;
beforeAll(async () => {
  setTracingDisabled(true);
  product = await startProduct({ config: { gateway: { compat: { fields: 'extended', tools: 'none' } } } });
});
afterAll(() => product[Symbol.asyncDispose]());

const call = { id: 'call_w', name: 'get_weather', arguments: '{"place":"Oslo"}' };
const agent = new Agent({
  name: 'Forecaster',
  model: 'local/test-model',
  instructions: 'Answer from the tool.',
  tools: [
    tool({
      name: 'get_weather',
      description: 'Weather of a place',
      parameters: z.object({ place: z.string() }),
      execute: async ({ place }) => `rain in ${place}`,
    }),
  ],
});

const rolesSent = () =>
  (product.provider.requests.at(-1)?.body as { messages: { role: string }[] } | undefined)?.messages.slice(1).map(({ role }) => role);

describe.each([
  { wire: 'chat completions', useResponses: false },
  { wire: 'responses', useResponses: true },
])('@openai/agents over $wire', ({ useResponses }) => {
  const runnerOf = () =>
    new Runner({
      modelProvider: new OpenAIProvider({ apiKey: product.token, baseURL: `${product.url}/v1`, useResponses }),
      tracingDisabled: true,
    });

  test('several turns with tools, whole', async () => {
    const runner = runnerOf();
    product.provider.queue({ text: 'Hello.' }, { text: 'I look.', toolCalls: [call] }, { text: 'It rains.' }, { text: 'Still rain.' });
    const first = await runner.run(agent, 'hi');
    const second = await runner.run(agent, next(first.history, 'Weather in Oslo?'));
    expect([first.finalOutput, second.finalOutput]).toEqual(['Hello.', 'It rains.']);
    const third = await runner.run(agent, next(second.history, 'And now?'));
    expect(third.finalOutput).toBe('Still rain.');
    expect(rolesSent()).toEqual(['user', 'assistant', 'user', 'assistant', 'tool', 'assistant', 'user']);
  });

  test('several turns with tools, streamed', async () => {
    const runner = runnerOf();
    const turn = async (input: AgentInputItem[]) => {
      const streamed = await runner.run(agent, input, { stream: true });
      await streamed.completed;
      return streamed;
    };
    product.provider.queue({ text: ['Hel', 'lo.'] }, { text: ['I ', 'look.'], toolCalls: [call] }, { text: ['It ', 'rains.'] }, { text: 'Still.' });
    const first = await turn(next([], 'hi'));
    const second = await turn(next(first.history, 'Weather in Oslo?'));
    const third = await turn(next(second.history, 'And now?'));
    expect([first.finalOutput, second.finalOutput, third.finalOutput]).toEqual(['Hello.', 'It rains.', 'Still.']);
    expect(rolesSent()).toEqual(['user', 'assistant', 'user', 'assistant', 'tool', 'assistant', 'user']);
  });
});

function next(history: AgentInputItem[], content: string): AgentInputItem[] {
  return [...history, { role: 'user', content }];
}
