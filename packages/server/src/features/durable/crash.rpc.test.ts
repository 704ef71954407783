import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import * as z from 'zod';
import type { Tool } from '../../runtime/tool.ts';

/** The same home for one server after the other. */
let homeDir: string;
let started: number;
beforeEach(async () => {
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-crash-'));
  started = 0;
});
afterEach(() => rm(homeDir, { recursive: true, force: true }));

/** Charges at its first call and does not come back from it; later calls do. */
function chargingTool(): Tool {
  return {
    name: 'charge',
    description: 'Charges the card.',
    args: z.strictObject({}),
    risk: 'read',
    effect: 'once',
    timeoutMs: 60_000,
    async run(_, { signal }) {
      started += 1;
      if (started === 1) await new Promise((resolve) => signal.addEventListener('abort', resolve));
      return { content: 'charged' };
    },
  };
}

const start = () =>
  startTestServer({
    homeDir,
    tools: [chargingTool()],
    config: {
      gateway: { drainTimeoutMs: 50, tokens: [{ id: 'owner', secret: 'x'.repeat(40), scopes: ['*'] }] },
      agents: { default: { model: 'mock/mock-fast', tools: { allow: ['charge'] } } },
    },
  });

const addJob = (server: TestServer, name: string) =>
  server.client.call('cron.add', { name, schedule: { kind: 'every', everyMs: 86_400_000 }, payload: { kind: 'agent_turn', message: `Do ${name}` } });
const statusOf = async (server: TestServer, jobName: string) => (await server.client.call('cron.runs', { jobName })).runs[0]?.status;

test('a turn that a stop interrupts goes on with the next start, and pays for each of its calls once', async () => {
  {
    await using server = await start();
    await addJob(server, 'report');
    server.provider.queue({ toolCalls: [{ id: 'c1', name: 'ls', arguments: '{}' }], usage: { input: 50, output: 5 } }, { hang: true });
    await server.client.call('cron.run', { jobName: 'report' });
    await expect.poll(() => server.provider.served()).toBe(2);
    await server.server.drain();
  }
  await using server = await start();
  server.provider.setAnswer(() => ({ text: 'Reported.', usage: { input: 70, output: 7 } }));
  await expect.poll(() => statusOf(server, 'report'), { timeout: 5_000 }).toBe('completed');
  expect(server.provider.requests.filter(({ path }) => path.endsWith('/chat/completions'))).toHaveLength(1);
  const { sessions } = await server.client.call('session.list', {});
  const [conversation] = sessions;
  if (conversation === undefined) throw new Error('the turn left no conversation');
  const { messages } = await server.client.call('session.history', { conversationRef: conversation.conversationRef });
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
  expect(messages.at(-1)?.content).toBe('Reported.');
  const { totals } = await server.client.call('usage.report', { groupBy: ['agent'] });
  const status = await server.client.call('session.status', { conversationRef: conversation.conversationRef });
  expect(status.tokensUsed.totalTokens).toBe(totals.inputTokens + totals.outputTokens);
  expect(totals.inputTokens).toBeGreaterThanOrEqual(120);
});

test('a turn that is stopped inside a tool that runs once is marked unknown, and its conversation is told', async () => {
  {
    await using server = await start();
    await addJob(server, 'charge');
    server.provider.queue({ toolCalls: [{ id: 'c1', name: 'charge', arguments: '{}' }] });
    await server.client.call('cron.run', { jobName: 'charge' });
    await expect.poll(() => started).toBe(1);
  }
  await using server = await start();
  const audited = server.heard('audit:event');
  await expect.poll(() => statusOf(server, 'charge'), { timeout: 5_000 }).toBe('unknown');
  expect(started).toBe(1);
  expect(server.provider.served()).toBe(0);
  const { sessions } = await server.client.call('session.list', {});
  const { messages } = await server.client.call('session.history', { conversationRef: sessions[0]?.conversationRef ?? '' });
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
  expect(messages.at(-1)?.content).toContain('"charge" ran, and nobody knows whether it took effect');
  const { rows } = await server.client.call('obs.audit.query', { actionType: 'turn.unknown' });
  expect(rows).toMatchObject([{ action: 'turn.unknown', outcome: 'failure', refs: { toolName: 'charge' } }]);
  expect(audited.length).toBeLessThanOrEqual(1);
});
