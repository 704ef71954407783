import type { AgentConfigInput } from '@gatehouse/contract';
import * as z from 'zod';
import { createStepClock } from '@gatehouse/testkit/step-clock';
import { describe, expect, it } from 'vitest';
import { silentLog } from '../kernel/log.ts';
import type { NewTask } from './background.ts';
import { callTools } from './call-tools.ts';
import { createFence } from './fence.ts';
import { turnInput } from './testing.ts';
import type { Tool, ToolContext, ToolResult } from './tool.ts';

const ticks = async () => {
  for (let n = 0; n < 5; n += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** One promotable call of a tool that ends on request. */
function begin(options: { agent?: AgentConfigInput; full?: boolean; refuseRow?: boolean; kept?: boolean; tool?: Partial<Tool> } = {}) {
  const clock = createStepClock();
  const work = Promise.withResolvers<ToolResult>();
  const begun: NewTask[] = [];
  const inspected: string[] = [];
  let context: ToolContext | undefined;
  const slow: Tool = {
    name: 'slow',
    description: 'slow',
    args: z.strictObject({}),
    risk: 'read',
    effect: 'once',
    timeoutMs: 300_000,
    promotable: true,
    describe: () => 'npm\ntest',
    run: (_args, given) => {
      context = given;
      return work.promise;
    },
    ...options.tool,
  };
  const turn = new AbortController();
  const input = turnInput({
    tools: [slow],
    agent: { tools: { profile: 'full' }, ...options.agent },
    ...(options.kept !== false && { background: { chain: 0 } }),
  });
  const results = callTools(
    {
      clock,
      fence: createFence({ key: Buffer.alloc(32) }),
      log: silentLog,
      inspect: (text) => inspected.push(text),
      background: {
        begin(task) {
          if (options.full === true) return undefined;
          begun.push(task);
          return { taskId: 'bt_1', stored: options.refuseRow === true ? Promise.reject(new Error('disk')) : Promise.resolve() };
        },
      },
    },
    { input, signal: turn.signal, beforeOnce: async () => {} },
    [{ id: 'c', name: 'slow', arguments: '' }],
  );
  return { clock, begun, results, work, turn, inspected, aborted: () => context?.signal.aborted };
}

describe('a long call', () => {
  it('continues as a task; its result is fenced, and the end of the turn does not affect it', async () => {
    const { clock, begun, results, work, turn, aborted } = begin();
    await ticks();
    clock.advance(29_999);
    expect(begun).toEqual([]);
    clock.advance(1);
    const [message] = await results;
    expect(message?.content).toMatch(/^"slow" takes longer than 30000 ms and continues in the background as task bt_1\./);
    expect(message).not.toHaveProperty('isError');
    expect(begun[0]?.description).toBe('npm test');
    turn.abort();
    expect(aborted()).toBe(false);
    work.resolve({ content: 'all green' });
    const end = await begun[0]?.end();
    expect(end?.outcome).toBe('ok');
    expect(end?.content).toMatch(/^<<<UNTRUSTED-TEXT \w+ provenance="clean" source="tool slow">>>\nall green\n/);
    expect(clock.pending()).toBe(0);
  });

  it('stays in its turn when it ends in time', async () => {
    const { clock, begun, results, work } = begin();
    await ticks();
    clock.advance(29_000);
    work.resolve({ content: 'quick' });
    expect((await results)[0]?.content).toBe('quick');
    expect([begun.length, clock.pending()]).toEqual([0, 0]);
  });

  it.each([
    ['no slot is free', { full: true }],
    ['its messages are not kept', { kept: false }],
    ['the agent does not want it', { agent: { background: { afterMs: 0 } } }],
    ['the tool does not say so', { tool: { promotable: false } }],
  ] as const)('stays in its turn, under its own deadline, when %s', async (_when, options) => {
    const { clock, begun, results, aborted } = begin(options);
    await ticks();
    clock.advance(300_000);
    expect((await results)[0]).toMatchObject({ isError: true, content: expect.stringContaining('no result within 300000 ms') });
    expect([begun.length, aborted(), clock.pending()]).toEqual([0, true, 0]);
  });

  it('is handled once when no slot was free: it is neither inspected nor put into a file as if it were a task', async () => {
    const { clock, results, work, inspected } = begin({ full: true });
    await ticks();
    clock.advance(30_000);
    work.resolve({ content: 'from the net', outside: { source: 'web' } });
    expect((await results)[0]?.content).toContain('from the net');
    await ticks();
    expect(inspected).toEqual(['from the net']);
  });

  it('is stopped at the deadline of tasks, counted from its start', async () => {
    const { clock, begun, results, aborted } = begin({ agent: { background: { afterMs: 10_000, maxMs: 60_000 } } });
    await ticks();
    clock.advance(10_000);
    await results;
    clock.advance(49_999);
    expect(aborted()).toBe(false);
    clock.advance(1);
    expect(await begun[0]?.end()).toMatchObject({ outcome: 'timeout', content: expect.stringContaining('no result within 60000 ms') });
    expect(aborted()).toBe(true);
  });

  it('can be cancelled, and reports a failure with our message', async () => {
    const first = begin();
    await ticks();
    first.clock.advance(30_000);
    await first.results;
    first.begun[0]?.stop('it was cancelled');
    expect(await first.begun[0]?.end()).toMatchObject({
      outcome: 'cancelled',
      content: expect.stringContaining('"slow" was stopped: it was cancelled'),
    });
    expect([first.aborted(), first.clock.pending()]).toEqual([true, 0]);

    const second = begin();
    await ticks();
    second.clock.advance(30_000);
    await second.results;
    second.work.reject(new Error('secret path'));
    expect(await second.begun[0]?.end()).toMatchObject({ outcome: 'error', content: expect.stringContaining('The tool "slow" failed') });
  });

  it('that ends at the very moment of its promotion is reported once', async () => {
    const { clock, begun, results, work } = begin();
    await ticks();
    work.resolve({ content: 'just now' });
    clock.advance(30_000);
    expect((await results)[0]?.content).toContain('bt_1');
    expect((await begun[0]?.end())?.content).toContain('just now');
  });

  it('that cannot be recorded is stopped', async () => {
    const { clock, results, aborted } = begin({ refuseRow: true });
    await ticks();
    clock.advance(30_000);
    expect((await results)[0]).toMatchObject({ isError: true, content: expect.stringContaining('could not be recorded as a task') });
    expect(aborted()).toBe(true);
  });

  it('ends with its turn before it is promoted', async () => {
    const { clock, begun, results, turn } = begin();
    await ticks();
    turn.abort();
    expect((await results)[0]?.content).toContain('the turn was stopped');
    clock.advance(30_000);
    expect(begun).toEqual([]);
  });
});

it('looks each tool up once, however many calls a step has', async () => {
  let reads = 0;
  const tools = Array.from({ length: 2000 }, (_, index): Tool => ({
    get name() {
      reads += 1;
      return `t${index}`;
    },
    description: '',
    args: z.strictObject({}),
    risk: 'read',
    effect: 'pure',
    timeoutMs: 1000,
    run: async () => ({ content: 'ok' }),
  }));
  const input = turnInput({ tools, agent: { tools: { profile: 'full' } } });
  const calls = Array.from({ length: 50 }, (_, index) => ({ id: `c${index}`, name: `t${1999 - index}`, arguments: '' }));
  const results = await callTools(
    { clock: createStepClock(), fence: createFence({ key: Buffer.alloc(32) }), log: silentLog },
    { input, signal: new AbortController().signal, beforeOnce: async () => {} },
    calls,
  );
  expect(results.map(({ content }) => content)).toEqual(calls.map(() => 'ok'));
  expect(results.map((result) => result.role === 'tool' && result.toolCallId)).toEqual(calls.map(({ id }) => id));
  expect(reads).toBeLessThan(2000 + 50 * 20);
});
