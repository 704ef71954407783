import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql, startTestServer, type TestServer, type TestServerOptions } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import * as z from 'zod';
import { editDocument } from '../../../kernel/config/edit.ts';
import type { Tool } from '../../../runtime/tool.ts';
import { queueSystemEvent } from '../heartbeat/testing/queue-system-event.ts';

/** Home shared by consecutive servers. */
let homeDir: string;
let started: number;
beforeEach(async () => {
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-crash-'));
  started = 0;
});
afterEach(() => rm(homeDir, { recursive: true, force: true }));

/** Returns a tool whose first call charges and never returns; later calls do. */
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

const rows = (text: string) => sql(homeDir, text);

const start = (provider: NonNullable<TestServerOptions['provider']> = {}) =>
  startTestServer({
    homeDir,
    provider,
    tools: [chargingTool()],
    config: {
      gateway: { drainTimeoutMs: 50, tokens: [{ id: 'owner', secret: 'x'.repeat(40), scopes: ['*'] }] },
      agents: { default: { model: 'mock/mock-fast', tools: { allow: ['charge'] } } },
    },
  });

const addJob = (server: TestServer, name: string) =>
  server.client.call('cron.add', { name, schedule: { kind: 'every', everyMs: 86_400_000 }, payload: { kind: 'agent_turn', message: `Do ${name}` } });
const statusOf = async (server: TestServer, jobName: string) => (await server.client.call('cron.runs', { jobName })).runs[0]?.status;

test('a turn interrupted by a stop resumes at the next start and runs each of its calls once', async () => {
  {
    await using server = await start();
    await addJob(server, 'report');
    server.provider.queue({ toolCalls: [{ id: 'c1', name: 'ls', arguments: '{}' }], usage: { input: 50, output: 5 } }, { hang: true });
    await server.client.call('cron.run', { jobName: 'report' });
    await expect.poll(() => server.provider.served()).toBe(2);
    await server.server.drain();
  }
  // The job resumes as soon as the server starts.
  await using server = await start({ answer: () => ({ text: 'Reported.', usage: { input: 70, output: 7 } }) });
  await expect.poll(() => statusOf(server, 'report')).toBe('completed');
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

test('a turn stopped inside a run-once tool is marked unknown, and its conversation is notified', async () => {
  {
    await using server = await start();
    await addJob(server, 'charge');
    server.provider.queue({ toolCalls: [{ id: 'c1', name: 'charge', arguments: '{}' }] });
    await server.client.call('cron.run', { jobName: 'charge' });
    await expect.poll(() => started).toBe(1);
  }
  await using server = await start();
  const audited = server.heard('audit:event');
  await expect.poll(() => statusOf(server, 'charge')).toBe('unknown');
  expect(started).toBe(1);
  expect(server.provider.served()).toBe(0);
  const { sessions } = await server.client.call('session.list', {});
  const { messages } = await server.client.call('session.history', { conversationRef: sessions[0]?.conversationRef ?? '' });
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
  expect(messages.at(-1)?.content).toContain('"charge" was running; it may or may not have taken effect');
  const { rows } = await server.client.call('obs.audit.query', { actionType: 'turn.unknown' });
  expect(rows).toMatchObject([{ action: 'turn.unknown', outcome: 'failure', refs: { toolName: 'charge' } }]);
  expect(audited.length).toBeLessThanOrEqual(1);
});

test.each([
  ['is suspended', () => rows("INSERT INTO agent VALUES ('scout', 'file', '{}', 1, 0, 0)")],
  [
    'is deleted',
    async () => {
      const file = join(homeDir, 'config.yaml');
      await writeFile(file, editDocument(await readFile(file, 'utf8'), [{ unset: ['agents', 'scout'] }]));
    },
  ],
] as const)('a call interrupted inside a run-once tool is unknown even if its agent %s meanwhile, and is not repeated', async (_, change) => {
  {
    await using server = await start();
    const config = { model: 'mock/mock-fast', tools: { allow: ['charge'] }, heartbeat: { enabled: true } };
    await server.client.call('agents.create', { agentId: 'scout', config });
    const folder = join(homeDir, 'workspaces', 'scout');
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'HEARTBEAT.md'), '- Charge the card\n');
    await queueSystemEvent(homeDir, { agentId: 'scout', text: 'An order came.', atMs: Date.now() });
    server.provider.setAnswer(() => ({ toolCalls: [{ id: 'c1', name: 'charge', arguments: '{}' }] }));
    await server.client.call('heartbeat.trigger', { agentId: 'scout' });
    await expect.poll(() => started).toBe(1);
  }
  // While the daemon runs, both would abort the turn.
  await change();
  await using server = await start();
  const states = () => rows(`SELECT state FROM work_item WHERE kind = 'heartbeat'`);
  await expect.poll(states).toEqual([{ state: 'unknown' }]);
  expect(await rows('SELECT state, reserved_nano FROM turn')).toEqual([{ state: 'unknown', reserved_nano: null }]);
  expect(await rows('SELECT * FROM turn_intent')).toEqual([]);
  expect(await rows('SELECT * FROM heartbeat_event')).toEqual([]);
  const { rows: audits } = await server.client.call('obs.audit.query', { actionType: 'turn.unknown' });
  expect(audits).toMatchObject([{ outcome: 'failure', refs: { toolName: 'charge' } }]);
  expect(started).toBe(1);
});

test('a job run interrupted inside a run-once tool is unknown even if its agent is suspended meanwhile', async () => {
  {
    await using server = await start();
    await server.client.call('agents.create', { agentId: 'scout', config: { model: 'mock/mock-fast', tools: { allow: ['charge'] } } });
    await server.client.call('cron.add', {
      name: 'charge',
      agentId: 'scout',
      schedule: { kind: 'every', everyMs: 86_400_000 },
      payload: { kind: 'agent_turn', message: 'Charge' },
    });
    server.provider.queue({ toolCalls: [{ id: 'c1', name: 'charge', arguments: '{}' }] });
    await server.client.call('cron.run', { jobName: 'charge', agentId: 'scout' });
    await expect.poll(() => started).toBe(1);
  }
  await rows("UPDATE agent SET suspended = 1 WHERE id = 'scout'");
  await using server = await start();
  await expect
    .poll(async () => (await server.client.call('cron.runs', { jobName: 'charge', agentId: 'scout' })).runs[0])
    .toMatchObject({ status: 'unknown', errorKind: 'owner_lost' });
  expect(await rows(`SELECT state FROM work_item WHERE kind = 'cron'`)).toEqual([{ state: 'unknown' }]);
  expect(started).toBe(1);
});

test('a webhook turn interrupted inside a run-once tool is unknown even if its mapping is removed', async () => {
  const withHook = (mappings: { id: string; match: { path: string }; allowUnauthenticated: true }[]) =>
    startTestServer({
      homeDir,
      tools: [chargingTool()],
      config: {
        gateway: { drainTimeoutMs: 50, tokens: [{ id: 'owner', secret: 'x'.repeat(40), scopes: ['*'] }] },
        agents: { default: { model: 'mock/mock-fast', tools: { allow: ['charge'] } } },
        webhooks: { mappings },
      },
    });
  {
    await using server = await withHook([{ id: 'orders', match: { path: 'orders' }, allowUnauthenticated: true }]);
    server.provider.queue({ toolCalls: [{ id: 'c1', name: 'charge', arguments: '{}' }] });
    const response = await fetch(`${server.url}/hooks/orders`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"order":1}',
    });
    expect(response.status).toBe(200);
    await expect.poll(() => started).toBe(1);
  }
  await using server = await withHook([]);
  await expect
    .poll(() => rows(`SELECT state, error_kind FROM work_item WHERE kind = 'webhook'`))
    .toEqual([{ state: 'unknown', error_kind: 'unknown' }]);
  expect((await server.client.call('obs.audit.query', { actionType: 'turn.unknown' })).rows).toHaveLength(1);
  expect(started).toBe(1);
});

test('a sub-agent interrupted inside a run-once tool is unknown even if its agent is suspended meanwhile', async () => {
  {
    await using server = await start();
    await server.client.call('agents.create', { agentId: 'scout', config: { model: 'mock/mock-fast', tools: { allow: ['charge'] } } });
    server.provider.setAnswer(() => ({ toolCalls: [{ id: 'c1', name: 'charge', arguments: '{}' }] }));
    await server.client.call('graph.execute', { nodes: [{ node_id: 'pay', task: 'Charge', agent: 'scout' }] });
    await expect.poll(() => started).toBe(1);
  }
  await rows("UPDATE agent SET suspended = 1 WHERE id = 'scout'");
  await using server = await start();
  await expect.poll(() => rows('SELECT state, error_kind FROM sub_agent_run')).toEqual([{ state: 'failed', error_kind: 'unknown' }]);
  expect(await rows(`SELECT state FROM work_item WHERE kind = 'subagent'`)).toEqual([{ state: 'unknown' }]);
  expect(await rows('SELECT state FROM turn')).toEqual([{ state: 'unknown' }]);
  expect(await rows('SELECT * FROM turn_intent')).toEqual([]);
  expect((await server.client.call('obs.audit.query', { actionType: 'turn.unknown' })).rows).toHaveLength(1);
  expect(started).toBe(1);
});
