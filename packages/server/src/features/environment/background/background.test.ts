import { AgentConfig } from '@gatehouse/contract';
import { createStepClock } from '@gatehouse/testkit';
import * as z from 'zod';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Db } from '../../../kernel/db/db.ts';
import { openInlineDb } from '../../../kernel/db/sqlite/inline.ts';
import { createEventBus } from '../../../kernel/event-bus.ts';
import { silentLog } from '../../../kernel/log.ts';
import type { TaskOutcome } from '../../../runtime/background.ts';
import { turnInput } from '../../../runtime/testing.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { Agent } from '../../agents/agents/api.ts';
import type { Reentry } from '../../conversations/turns/api.ts';
import { createBackground } from './background.ts';
import { backgroundMigrations } from './migrations.ts';
import { backgroundOperations, endTask } from './store.ts';

const slow: Tool = {
  name: 'slow',
  description: '',
  args: z.strictObject({}),
  risk: 'read',
  effect: 'pure',
  timeoutMs: 1000,
  run: async () => ({ content: '' }),
};
const agent: Agent = { id: 'default', config: AgentConfig.parse({}), source: 'file', suspended: false, isDefault: true, workspaceDir: '/nowhere' };
const identity = { principalId: 'token:ada', tokenId: 'ada', scopes: ['rpc' as const] };
const turn = turnInput({ background: { chain: 0 } });
const input = { ...turn, call: { ...turn.call, identity } };

let db: Db;
/** Stands before writes of ends. */
let beforeEnd: () => Promise<void>;
let told: string[];
/** What a turn that tells waits for. */
let telling: Promise<void>;
let background: Awaited<ReturnType<typeof createBackground>>;
beforeEach(async () => {
  const inline = await openInlineDb({ migrations: backgroundMigrations, operations: backgroundOperations });
  db = {
    ...inline,
    write: async (operation, value) => {
      if (operation.name === endTask.name) await beforeEnd();
      return inline.write(operation, value);
    },
    [Symbol.asyncDispose]: () => inline[Symbol.asyncDispose](),
  };
  beforeEnd = async () => {};
  telling = Promise.resolve();
  told = [];
  background = await createBackground({
    db,
    bus: createEventBus((error) => {
      throw error;
    }),
    clock: createStepClock(),
    log: silentLog,
    agents: { find: () => agent },
    identityOf: () => identity,
    commands: { running: () => [], endOne: async () => {} },
    reenter: async ({ take }: Reentry) => {
      const news = take();
      if (news !== undefined) told.push(news.text);
      await telling;
      return undefined;
    },
  });
});
afterEach(async () => {
  await background[Symbol.asyncDispose]();
  await db[Symbol.asyncDispose]();
});

async function begin() {
  const end = Promise.withResolvers<{ outcome: TaskOutcome; content: string }>();
  const call = { id: 'c', name: 'slow', arguments: '{}' };
  const begun = background.api.begin({ input, call, tool: slow, description: 'slow', startedAtMs: 0, end: () => end.promise, stop() {} });
  if (begun === undefined) expect.fail('no place is free');
  await begun.stored;
  return { taskId: begun.taskId, end: (content: string) => end.resolve({ outcome: 'ok', content }) };
}
const useTool = (action: string, taskId: string) =>
  background.tool.run(
    { action, taskId },
    { ...input, callId: 'c', workspaceDir: '/nowhere', callTool: async () => ({ content: 'none', isError: true }), tainted: () => false },
  );

test('a result that could not be written down is told all the same, and holds no place', async () => {
  beforeEnd = () => Promise.reject(new Error('disk full'));
  for (let index = 0; index < 10; index += 1) {
    const { end } = await begin();
    end(`result ${index}`);
    await expect.poll(() => told.length).toBe(index + 1);
  }
  expect(told.at(-1)).toContain('result 9');
});

test('a task that is cancelled while its end is written down has ended, and is told', async () => {
  const written = Promise.withResolvers<void>();
  let isWriting = false;
  beforeEnd = () => ((isWriting = true), written.promise);
  const { taskId, end } = await begin();
  end('it was done');
  await expect.poll(() => isWriting).toBe(true);
  expect(await useTool('cancel', taskId)).toMatchObject({ content: expect.stringContaining('has ended already'), isError: true });
  written.resolve();
  await expect.poll(() => told).toEqual([expect.stringContaining('it was done')]);
});

test('a daemon that drains begins no further turn with what waits', async () => {
  const first = Promise.withResolvers<void>();
  telling = first.promise;
  const tasks = [await begin(), await begin()];
  tasks[0]?.end('first');
  await expect.poll(() => told.length).toBe(1);
  tasks[1]?.end('second');
  await expect.poll(() => background.api.isPending(input)).toBe(true);
  background.pause();
  first.resolve();
  for (let tick = 0; tick < 20; tick += 1) await new Promise((resolve) => setImmediate(resolve));
  expect(told).toEqual([expect.stringContaining('first')]);
});
