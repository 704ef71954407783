import * as z from 'zod';
import { createStepClock } from '@gatehouse/testkit/step-clock';
import { describe, expect, it } from 'vitest';
import { silentLog } from '../kernel/log.ts';
import type { ModelMessage, ToolSpec } from '../llm/model.ts';
import { createFence } from './fence.ts';
import { createRunTurn } from './run-turn.ts';
import { createScriptedModels, type ScriptedAnswer, turnInput } from './testing.ts';
import type { Tool } from './tool.ts';

const open: ToolSpec = { name: 'open', description: 'Opens a file of the caller', parameters: { type: 'object' } };
const theirRead: ToolSpec = { ...open, name: 'read' };

function setUp(...script: readonly ScriptedAnswer[]) {
  const { models, asked } = createScriptedModels(...script);
  let ran = 0;
  const own = (name: string): Tool => ({
    name,
    description: 'Ours',
    args: z.strictObject({}),
    risk: 'read',
    effect: 'pure',
    timeoutMs: 1000,
    async run() {
      ran += 1;
      return { content: 'seen' };
    },
  });
  const run = createRunTurn({ models, clock: createStepClock(), fence: createFence({ key: Buffer.alloc(32) }), log: silentLog });
  return { run, asked, tools: [own('read'), own('look')], ran: () => ran, offered: () => asked.at(-1)?.request.tools };
}

describe("a turn with the caller's tools", () => {
  it('ends with the calls that the caller has to run', async () => {
    const { run, ran } = setUp({
      text: 'Opening.',
      calls: [
        ['open', { path: 'a' }],
        ['open', { path: 'b' }],
      ],
    });
    const result = await run(turnInput({ clientTools: [open] }));
    const calls = [
      { id: 'call_1', name: 'open', arguments: '{"path":"a"}' },
      { id: 'call_2', name: 'open', arguments: '{"path":"b"}' },
    ];
    expect(result).toMatchObject({ finishReason: 'stop', text: 'Opening.', clientCalls: calls, steps: 1 });
    expect(result.failure).toBeUndefined();
    expect(result.messages).toEqual([{ role: 'assistant', content: 'Opening.', toolCalls: calls }]);
    expect(ran()).toBe(0);
  });

  it('runs its own calls of such an answer first, and adds their results after it', async () => {
    const { run, tools, ran } = setUp({
      calls: [
        ['look', {}],
        ['open', {}],
        ['look', {}],
      ],
    });
    const result = await run(turnInput({ tools, clientTools: [open] }));
    expect(ran()).toBe(2);
    expect(result.clientCalls?.map((call) => call.name)).toEqual(['open']);
    expect(result.messages).toMatchObject([
      { role: 'assistant', toolCalls: [{ name: 'look' }, { name: 'open' }, { name: 'look' }] },
      { role: 'tool', toolName: 'look', content: 'seen' },
      { role: 'tool', toolName: 'look', content: 'seen' },
    ]);
  });

  it('continues automatically while only its own tools are called', async () => {
    const { run, tools, asked } = setUp({ calls: [['look', {}]] }, { text: 'done' });
    const result = await run(turnInput({ tools, clientTools: [open] }));
    expect(result).toMatchObject({ text: 'done', steps: 2 });
    expect(result.clientCalls).toBeUndefined();
    expect(asked[1]?.request.tools.map((tool) => tool.name)).toEqual(['read', 'look', 'open']);
  });

  it('prefers the caller’s tool to an own one of the same name', async () => {
    const { run, tools, ran, offered } = setUp({ calls: [['read', {}]] });
    const result = await run(turnInput({ tools, clientTools: [theirRead] }));
    expect(offered()?.map((tool) => [tool.name, tool.description])).toEqual([
      ['look', 'Ours'],
      ['read', 'Opens a file of the caller'],
    ]);
    expect(result.clientCalls?.map((call) => call.name)).toEqual(['read']);
    expect(ran()).toBe(0);
  });

  it.for(['required', { name: 'open' }] as const)('offers and runs no own tool when the choice is %j', async (toolChoice) => {
    const { run, tools, ran, asked } = setUp({
      calls: [
        ['look', {}],
        ['open', {}],
      ],
    });
    const result = await run(turnInput({ tools, clientTools: [open], options: { toolChoice } }));
    expect(asked[0]?.request).toMatchObject({ tools: [{ name: 'open' }], options: { toolChoice } });
    expect(ran()).toBe(0);
    expect(result.messages[1]).toMatchObject({ role: 'tool', isError: true, content: expect.stringContaining('no tool "look"') });
    expect(result.clientCalls?.map((call) => call.name)).toEqual(['open']);
  });

  it('accepts no call when calls are forbidden, whatever the model does', async () => {
    const { run, tools, ran } = setUp({
      text: 'I would look.',
      calls: [
        ['look', {}],
        ['open', {}],
      ],
    });
    const result = await run(turnInput({ tools, clientTools: [open], options: { toolChoice: 'none' } }));
    expect(result).toMatchObject({ finishReason: 'stop', text: 'I would look.', messages: [{ role: 'assistant', content: 'I would look.' }] });
    expect(result.clientCalls).toBeUndefined();
    expect(ran()).toBe(0);
  });

  it('assigns a call an id that is new in the conversation', async () => {
    const { run } = setUp({ calls: [['open', {}]] });
    const messages: ModelMessage[] = [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: '', toolCalls: [{ id: 'call_1', name: 'open', arguments: '{}' }] },
      { role: 'tool', content: 'text', toolCallId: 'call_1', toolName: 'open' },
    ];
    const result = await run(turnInput({ messages, clientTools: [open] }));
    const id = result.clientCalls?.[0]?.id ?? '';
    expect(id).toMatch(/^call_\w{8,}/);
    expect(result.messages).toMatchObject([{ toolCalls: [{ id }] }]);
  });

  it('passes on no call of a truncated answer', async () => {
    const { run } = setUp({ text: 'Open', calls: [['open', {}]], finish: 'length' });
    const result = await run(turnInput({ clientTools: [open] }));
    expect(result.finishReason).toBe('max_steps');
    expect(result.clientCalls).toBeUndefined();
  });

  it('counts the caller’s tools before a call is made', async () => {
    const { run, asked } = setUp({ text: 'hi' });
    const huge: ToolSpec = { ...open, description: 'word '.repeat(40_000) };
    expect((await run(turnInput({ clientTools: [huge] }))).finishReason).toBe('context_exhausted');
    expect(asked).toHaveLength(0);
  });
});
