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
import { nodeMigrations } from '../../operations/nodes/migrations.ts';
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
/** Runs before results are written. */
let beforeEnd: () => Promise<void>;
let reported: string[];
/** A reporting turn waits for this. */
let reporting: Promise<void>;
let background: Awaited<ReturnType<typeof createBackground>>;
beforeEach(async () => {
  const inline = await openInlineDb({ migrations: [...backgroundMigrations, ...nodeMigrations], operations: backgroundOperations });
  db = {
    ...inline,
    write: async (operation, value) => {
      if (operation.name === endTask.name) await beforeEnd();
      return inline.write(operation, value);
    },
    [Symbol.asyncDispose]: () => inline[Symbol.asyncDispose](),
  };
  beforeEnd = async () => {};
  reporting = Promise.resolve();
  reported = [];
  background = await createBackground({
    bootId: 'boot',
    db,
    bus: createEventBus((error) => {
      throw error;
    }),
    clock: createStepClock(),
    log: silentLog,
    traceWork: () => {},
    agents: { find: () => agent },
    identityOf: () => identity,
    screens: { find: () => undefined },
    commands: { running: () => [], endOne: async () => {} },
    reenter: async ({ take }: Reentry) => {
      const announcement = take();
      if (announcement !== undefined) reported.push(announcement.text);
      await reporting;
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
  if (begun === undefined) expect.fail('no free slot');
  await begun.stored;
  return { taskId: begun.taskId, end: (content: string) => end.resolve({ outcome: 'ok', content }) };
}
const useTool = (action: string, taskId: string) =>
  background.tool.run(
    { action, taskId },
    { ...input, callId: 'c', workspaceDir: '/nowhere', callTool: async () => ({ content: 'none', isError: true }), tainted: () => false },
  );

test('a result that could not be stored is reported anyway and frees its slot', async () => {
  beforeEnd = () => Promise.reject(new Error('disk full'));
  for (let index = 0; index < 10; index += 1) {
    const { end } = await begin();
    end(`result ${index}`);
    await expect.poll(() => reported.length).toBe(index + 1);
  }
  expect(reported.at(-1)).toContain('result 9');
});

test('a task that is cancelled while its result is being stored has ended and is reported', async () => {
  const written = Promise.withResolvers<void>();
  let isWriting = false;
  beforeEnd = () => ((isWriting = true), written.promise);
  const { taskId, end } = await begin();
  end('it was done');
  await expect.poll(() => isWriting).toBe(true);
  expect(await useTool('cancel', taskId)).toMatchObject({ content: expect.stringContaining('has ended already'), isError: true });
  written.resolve();
  await expect.poll(() => reported).toEqual([expect.stringContaining('it was done')]);
});

test('a draining daemon starts no further turn for pending results', async () => {
  const first = Promise.withResolvers<void>();
  reporting = first.promise;
  const tasks = [await begin(), await begin()];
  tasks[0]?.end('first');
  await expect.poll(() => reported.length).toBe(1);
  tasks[1]?.end('second');
  await expect.poll(() => background.api.isPending(input)).toBe(true);
  background.pause();
  first.resolve();
  for (let tick = 0; tick < 20; tick += 1) await new Promise((resolve) => setImmediate(resolve));
  expect(reported).toEqual([expect.stringContaining('first')]);
});
