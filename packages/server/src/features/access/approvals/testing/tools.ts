import type { Tool } from '../../../../runtime/tool.ts';
import type { FakeAnswer } from '@gatehouse/testkit';
import * as z from 'zod';

/** Tools that count their calls, one of each kind, and one whose results are from outside. */
export function createCountingTools(fingerprint = '1') {
  const ran: { readonly name: string; readonly args: unknown }[] = [];
  const base = { args: z.looseObject({}), timeoutMs: 5000, source: 'test', fingerprint, description: 'A tool of a test.' } as const;
  const make = (name: string, more: Partial<Tool> & Pick<Tool, 'risk'>): Tool => ({
    ...base,
    name,
    effect: 'idempotent',
    run: async (args) => {
      ran.push({ name, args });
      return { content: `${name} ran` };
    },
    ...more,
  });
  const tools = [
    make('change', { risk: 'write', describe: (args) => `change ${Object.keys(args as object).join(', ')}` }),
    make('send', { risk: 'outward' }),
    make('fetch_page', {
      risk: 'outward',
      effect: 'pure',
      destination: (args) => ({ kind: 'address', url: z.looseObject({ url: z.string() }).parse(args).url }),
    }),
    make('look', { risk: 'read', effect: 'pure' }),
    make('page', {
      risk: 'read',
      effect: 'pure',
      run: async (args) => {
        ran.push({ name: 'page', args });
        return { content: String(Reflect.get(args as object, 'text') ?? 'The weather is fine'), outside: { source: 'web page https://example.org' } };
      },
    }),
    make('file', {
      risk: 'read',
      effect: 'pure',
      run: async () => ({ content: 'notes', outside: { source: 'workspace file notes.md' } }),
    }),
  ];
  return { tools, ran, count: (name: string) => ran.filter((one) => one.name === name).length };
}

/** A model answer that calls tools, each by name and arguments. */
export function calls(...wanted: readonly (readonly [name: string, args: object])[]): FakeAnswer {
  return {
    toolCalls: wanted.map(([name, args], index) => ({
      id: `call_${index}_${Math.random().toString(36).slice(2)}`,
      name,
      arguments: JSON.stringify(args),
    })),
  };
}

export const done: FakeAnswer = { text: 'Done' };
