import { createStepClock, type StepClock, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import type { Tool } from '../../../../runtime/tool.ts';
import { createObeyingModel, follow, page } from '../testing/obeying-model.ts';

// Approvals that are pending during a reset at the worst moment, or while all slots are taken.

let clock: StepClock;
let server: TestServer;
let built = 0;
let asReading = () => {};

/** Its approval is bound to the whole workspace; `asReading` is called just before its files are read. */
const build: Tool = {
  name: 'build',
  description: 'Builds.',
  args: z.strictObject({}),
  risk: 'write',
  effect: 'once',
  timeoutMs: 1000,
  runsPrograms: () => (asReading(), true),
  run: async () => ({ content: `built ${(built += 1)}` }),
};

beforeAll(async () => {
  clock = createStepClock(Date.UTC(2026, 8, 21, 12));
  const model = createObeyingModel();
  server = await startTestServer({
    clock,
    tools: [page, build],
    provider: { answer: ({ body }) => (JSON.stringify(body).includes('Stay') ? { hang: true } : model.answer(body)) },
    config: {
      agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' }, originTools: { webhook: ['page', 'build'] } } },
      approvals: { rules: [{ tools: ['write'], match: { path: 'ask/*' }, action: 'ask' }] },
      webhooks: { mappings: [{ id: 'hook', messageTemplate: '{{text}}', sessionKey: 'one' }] },
      security: { agentToAgent: { subagentContext: { maxChildrenPerAgent: 1, queueTimeoutMs: 5_000 } } },
    },
  });
  for (let n = 0; n < 20; n += 1)
    await server.client.call('workspace.writeFile', { agentId: 'default', filePath: `notes-${n}.txt`, content: 'x'.repeat(10_000) });
});
afterAll(() => server[Symbol.asyncDispose]());

const pending = async () => (await server.client.call('admin.approval.pending', {})).requests;
const approve = () => server.client.call('admin.approval.resolveAll', { approved: true });

test.each(['session.reset', 'session.delete'] as const)(
  '%s while the files of a call are read ends at once, and the call is not run',
  async (method) => {
    const { conversationRef } = await server.client.call('webhooks.test', { mapping: 'hook', payload: { text: follow() }, run: true });
    let ended: Promise<unknown> | undefined;
    asReading = () => void (ended ??= server.client.call(method, { conversationRef: conversationRef ?? '' }));
    const { deliveryId } = await server.client.call('webhooks.test', {
      mapping: 'hook',
      payload: { text: follow(['page', {}], ['build', {}]) },
      run: true,
    });
    await expect.poll(() => ended !== undefined).toBe(true);
    await ended;
    const state = async () => (await server.client.call('webhooks.deliveries', {})).deliveries.find((one) => one.deliveryId === deliveryId)?.state;
    await expect.poll(async () => (clock.advance(1_000), state())).not.toBe('accepted');
    expect(await pending()).toEqual([]);
    expect(built).toBe(0);
    asReading = () => {};
    // The conversation is free.
    await server.client.call('webhooks.test', { mapping: 'hook', payload: { text: follow() }, run: true });
  },
);

test('a sub-agent that is approved while its slot is taken runs, however long it then waits for one', async () => {
  const spawn = (task: string) => server.client.call('session.spawn', { task });
  const status = async (runId: string) => (await server.client.call('session.run_status', { runId })).status;
  const { runId } = await spawn(follow(['write', { path: 'ask/a.txt', content: 'x' }]));
  await expect.poll(pending).toHaveLength(1);
  const other = await spawn('Stay');
  await expect.poll(() => status(other.runId)).toBe('running');
  await approve();
  for (let n = 0; n < 6; n += 1) {
    clock.advance(5_000);
    expect(await status(runId)).toBe('running');
  }
  await server.client.call('subagent.kill', { target: other.runId });
  await expect.poll(() => status(runId)).toBe('completed');
});
