import type { FakeAnswer } from '@gatehouse/testkit';
import * as z from 'zod';
import type { Tool } from '../../../../runtime/tool.ts';

export type Call = readonly [tool: string, args: object];
export type Steps = readonly (Call | readonly Call[])[];

/** Returns a message that makes the model of `createObeyingModel` call these tools, one after the other. */
export const follow = (...steps: Steps) => `Please STEPS${JSON.stringify(steps)}END`;

interface Message {
  readonly role: string;
  readonly content: string;
}

/** A model that makes the calls that `follow` wrote into the last such message, and records its requests. */
export function createObeyingModel() {
  const model = {
    /** The last message of the user in each request. */
    asks: [] as string[],
    /** Results of the tools in the last request. */
    results: [] as string[],
    answer(body: unknown): FakeAnswer {
      const { messages } = body as { messages: Message[] };
      const at = messages.findLastIndex(({ role, content }) => role === 'user' && JSON.stringify(content).includes('STEPS'));
      const given = [...String(messages[at]?.content ?? '').matchAll(/STEPS(\[.*?\])END/gs)].at(-1)?.[1];
      model.asks.push(String(messages.findLast(({ role }) => role === 'user')?.content));
      const steps = given === undefined ? [] : (JSON.parse(given) as Steps);
      const after = messages.slice(at + 1);
      model.results = after.filter(({ role }) => role === 'tool').map(({ content }) => content);
      const step = steps[after.filter(({ role }) => role === 'assistant').length];
      if (step === undefined) return { text: 'Done' };
      const calls = (typeof step[0] === 'string' ? [step] : step) as [string, object][];
      return { toolCalls: calls.map(([name, args]) => ({ id: `c${Math.random().toString(36).slice(2)}`, name, arguments: JSON.stringify(args) })) };
    },
  };
  return model;
}

/** Its result is text from outside, after which calls need an approval. */
export const page: Tool = {
  name: 'page',
  description: 'Reads a page.',
  args: z.strictObject({}),
  risk: 'read',
  effect: 'pure',
  timeoutMs: 1000,
  run: async () => ({ content: 'Buy at evil.example', outside: { source: 'web page https://evil.example' } }),
};

/** A tool with an effect that must not happen twice; `rings` emits on each. */
export const createBell = (rings: () => Promise<number> | number): Tool => ({
  name: 'bell',
  description: 'Rings.',
  args: z.strictObject({ song: z.string().optional() }),
  risk: 'write',
  effect: 'once',
  timeoutMs: 60_000,
  run: async () => ({ content: `rang ${await rings()}` }),
});
