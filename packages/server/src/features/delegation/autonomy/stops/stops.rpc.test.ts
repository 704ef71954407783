import type { FakeAnswer, TestServerOptions } from '@gatehouse/testkit';
import { startTestServer } from '@gatehouse/testkit';
import { afterEach, expect, test } from 'vitest';
import * as z from 'zod';
import type { Tool } from '../../../../runtime/tool.ts';

const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

/** Starts a server whose sub-agents call `mcp__t--look` repeatedly; each call waits until it is released. */
async function start(autonomy: NonNullable<TestServerOptions['config']>['autonomy'] = {}) {
  const calls: { readonly signal: AbortSignal; readonly release: () => void }[] = [];
  const look: Tool = {
    name: 'mcp__t--look',
    description: 'A tool of a test.',
    args: z.looseObject({}),
    risk: 'read',
    effect: 'idempotent',
    timeoutMs: 60_000,
    source: 'test',
    async run(_args, { signal }) {
      const held = Promise.withResolvers<void>();
      calls.push({ signal, release: held.resolve });
      await held.promise;
      return { content: `looked ${calls.length}` };
    },
  };
  const server = await startTestServer({
    tools: [look],
    config: { autonomy, agents: { default: { model: 'mock/mock-fast', maxTokens: 100, tools: { profile: 'full' } } } },
  });
  open.push(server);
  let asked = 0;
  server.provider.setAnswer((): FakeAnswer => ({
    toolCalls: [{ id: `call_${crypto.randomUUID()}`, name: look.name, arguments: `{"n":${asked++}}` }],
    usage: { input: 400, output: 100 },
  }));
  const spawn = () => server.client.call('session.spawn', { task: 'Look', toolGroups: ['mcp'] });
  const ended = async (runId: string) => {
    await expect.poll(async () => (await server.client.call('session.run_status', { runId })).status).toBe('failed');
    const status = await server.client.call('session.run_status', { runId });
    return 'completion' in status ? status.completion : undefined;
  };
  const root = async (rootRunId: string) => (await server.client.call('run.list', {})).runs.find((one) => one.rootRunId === rootRunId);
  return { server, calls, spawn, ended, root };
}

test('lease.revoke lets the current call of a sub-agent complete, and the run makes no more calls', async () => {
  const { server, calls, spawn, ended, root } = await start();
  const { runId, rootRunId } = await spawn();
  await expect.poll(() => calls.length).toBe(1);
  expect(await root(rootRunId)).toMatchObject({ state: 'active', runs: { open: 1 }, agentId: 'default', origin: 'rpc' });
  const asked = server.provider.requests.length;
  expect(await server.client.call('lease.revoke', { rootRunId })).toEqual({ revoked: 1 });
  expect(calls[0]?.signal.aborted).toBe(false);
  calls[0]?.release();
  expect(await ended(runId)).toMatchObject({ endReason: 'failed', errorKind: 'revoked' });
  expect([calls.length, server.provider.requests.length]).toEqual([1, asked]);
  expect(await root(rootRunId)).toMatchObject({ state: 'revoked', runs: { open: 0, failed: 1 } });
});

test('run.kill ends everything of its root at once, and nothing of other roots', async () => {
  const { server, calls, spawn, ended, root } = await start();
  const one = await spawn();
  const other = await spawn();
  await expect.poll(() => calls.length).toBe(2);
  expect(await server.client.call('run.kill', { rootRunId: one.rootRunId })).toEqual({ killed: 2 });
  expect(await ended(one.runId)).toMatchObject({ endReason: 'killed' });
  expect(await root(one.rootRunId)).toMatchObject({ state: 'revoked', runs: { open: 0 } });
  expect(await root(other.rootRunId)).toMatchObject({ state: 'active', runs: { open: 1 } });
  expect(await server.client.call('session.run_status', { runId: other.runId })).toMatchObject({ status: 'running' });
  expect(calls.filter(({ signal }) => signal.aborted)).toHaveLength(1);
  await expect(server.client.call('run.kill', { rootRunId: one.rootRunId })).rejects.toMatchObject({ code: 'precondition_failed' });
  for (const { release } of calls) release();
});

test('a root that has used up its budget makes no more model calls', async () => {
  const { server, calls, spawn, ended, root } = await start({ guards: { budget: { tokens: 6000 } } });
  const { runId, rootRunId } = await spawn();
  for (let n = 0; n < 20 && (await root(rootRunId))?.runs.open === 1; n += 1) {
    await expect.poll(async () => calls.length > n || (await root(rootRunId))?.runs.open === 0).toBe(true);
    calls[n]?.release();
  }
  expect(await ended(runId)).toMatchObject({ endReason: 'failed', errorKind: 'budget_exceeded' });
  const used = await root(rootRunId);
  expect(used).toMatchObject({ state: 'failed' });
  expect(used?.tokens).toBe(server.provider.requests.length * 500);
  expect(used?.tokens).toBeLessThanOrEqual(6000);
  expect(calls.length).toBeGreaterThan(0);
});
