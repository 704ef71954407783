import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { findPostgres } from '@gatehouse/testkit/postgres';
import * as z from 'zod';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { openEvents } from '../gateway/testing/open-events.ts';
import { createTestDatabase, type TestDatabase } from '../kernel/db/postgres/testing/test-database.ts';
import type { Tool, ToolResult } from '../runtime/tool.ts';
import { migrations } from '../transactions/registry.ts';

/** Calls of the tool `slow` that run until the test ends them. */
const running: ((result: ToolResult) => void)[] = [];
const slow: Tool = {
  name: 'slow',
  description: 'Takes long.',
  args: z.strictObject({}),
  risk: 'write',
  effect: 'once',
  timeoutMs: 300_000,
  promotable: true,
  run: () => new Promise((end) => running.push(end)),
};
let changes = 0;
const change: Tool = {
  name: 'change',
  description: 'Changes something.',
  args: z.strictObject({}),
  risk: 'write',
  effect: 'once',
  timeoutMs: 5_000,
  run: async () => ({ content: `changed ${(changes += 1)}` }),
};
const callOf = (name: string) => ({ toolCalls: [{ id: `c_${name}`, name, arguments: '{}' }] });

/** A case of each feature, in the normal test run; `GATEHOUSE_TEST_DB=postgres npm test` runs all of them. */
describe.skipIf(findPostgres() === undefined)('on PostgreSQL (needs its Debian package)', () => {
  let database: TestDatabase;
  let server: TestServer;
  let call: TestServer['client']['call'];
  beforeAll(async () => {
    database = await createTestDatabase(migrations);
    server = await startTestServer({
      tools: [slow, change],
      config: {
        storage: { driver: 'postgres', url: database.url, poolSize: 4 },
        embedding: { provider: 'hashing' },
        approvals: { rules: [{ tools: ['change'], action: 'ask' }] },
        budgets: { perDayUsd: 5 },
        scheduler: { cron: { builtIn: { memoryLifecycle: { enabled: false } } } },
        agents: {
          default: { model: 'mock/mock-fast', tools: { profile: 'full' }, background: { afterMs: 1_000 } },
          second: { model: 'mock/mock-fast' },
          frugal: { model: 'mock/mock-fast', budgets: { perDayUsd: 1 } },
        },
        webhooks: { token: 'a-shared-secret-of-more-than-32-characters', mappings: [{ id: 'alerts', messageTemplate: 'Alert: {{title}}' }] },
      },
    });
    call = server.client.call;
  });
  afterEach(() => server.provider.setAnswer(undefined));
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
    await database?.[Symbol.asyncDispose]();
  });

  test('a chat is kept, listed and found', async () => {
    server.provider.queue({ text: 'It is in the cellar.' });
    const { conversationRef } = await call('agent.execute', {
      message: 'Where is the harpsichord deployed?',
      sessionKey: { userId: 'ada', channelId: 'smoke' },
    });
    const { messages } = await call('session.history', { conversationRef });
    expect(messages.map(({ role, content }) => [role, content])).toEqual([
      ['user', 'Where is the harpsichord deployed?'],
      ['assistant', 'It is in the cellar.'],
    ]);
    expect(await call('session.search', { query: 'deploying HARPSICHORDS' })).toMatchObject({
      mode: 'search',
      total: 1,
      results: [{ conversationRef, seq: 1 }],
    });
    expect(await call('session.search', {})).toMatchObject({ mode: 'recent', sessions: [{ conversationRef }] });
  });

  test('an entry of the memory is stored, found and deleted', async () => {
    const { id } = await call('memory.store', { content: 'The backup runs at four.', tags: ['ops'] });
    const found = await call('memory.search', { query: 'when do backups run?' });
    expect(found.results).toMatchObject([{ id, tags: ['ops', 'operator-stored'] }]);
    await call('memory.delete', { ids: [id] });
    expect((await call('memory.search', { query: 'when do backups run?' })).results).toEqual([]);
  });

  test('a job runs when asked, and its result is in the inbox', async () => {
    const { jobId } = await call('cron.add', {
      name: 'bell',
      schedule: { kind: 'every', everyMs: 3_600_000 },
      payload: { kind: 'delivery', text: 'Ding.' },
    });
    await call('cron.run', { jobName: jobId });
    await expect
      .poll(async () => (await call('cron.runs', { jobName: jobId })).runs)
      .toMatchObject([{ status: 'completed', deliveryStatus: 'accepted' }]);
    const { messages } = await call('inbox.list', {});
    const ding = messages.find(({ text }) => text === 'Ding.');
    expect(ding).toMatchObject({ source: 'cron' });
    await call('inbox.markRead', { ids: [ding?.id ?? ''] });
    expect((await call('inbox.list', { unreadOnly: true })).messages.map(({ text }) => text)).not.toContain('Ding.');
  });

  test('a graph runs its nodes in order', async () => {
    server.provider.setAnswer(({ body }) => ({ text: JSON.stringify(body).includes('Tides come') ? 'REPORT' : 'Tides come twice a day.' }));
    const { graphId } = await call('graph.execute', {
      nodes: [
        { node_id: 'research', task: 'Collect facts.', agent: 'default' },
        { node_id: 'report', task: 'Write a report from {{research.result}}.', agent: 'second', depends_on: ['research'] },
      ],
    });
    await expect.poll(() => call('graph.status', { graphId })).toMatchObject({ status: 'completed' });
    expect((await call('graph.outputs', { graphId })).outputs).toEqual({ research: 'Tides come twice a day.', report: 'REPORT' });
  });

  test('a sub-agent runs, ends and is announced', async () => {
    server.provider.queue({ text: 'Nothing is missing.', usage: { input: 100, output: 10 } });
    const { runId } = await call('session.spawn', { task: 'List what is missing.', async: false });
    const { results } = await call('subagent.wait', { runIds: [runId], timeoutMs: 10_000 });
    expect(results).toMatchObject([{ runId, status: 'completed', completion: { summary: 'Nothing is missing.' } }]);
    await expect.poll(async () => (await call('inbox.list', {})).messages.map(({ source }) => source)).toContain('subagent');
    const { rows } = await call('usage.report', { groupBy: ['operation'] });
    expect(rows.flatMap(({ keys }) => keys)).toContain('subagent');
  });

  test('a call waits for its approval and runs once', async () => {
    server.provider.queue(callOf('change'), { text: 'Done.' });
    const turn = call('agent.execute', { message: 'Change it' });
    const pending = async () => (await call('admin.approval.pending', {})).requests;
    await expect.poll(pending).toMatchObject([{ toolName: 'change' }]);
    expect(changes).toBe(0);
    await call('admin.approval.resolve', { requestId: (await pending())[0]?.requestId ?? '', approved: true });
    expect(await turn).toMatchObject({ finishReason: 'stop', response: 'Done.' });
    expect([changes, await pending()]).toEqual([1, []]);
  });

  test('usage is counted and compared with the budgets', async () => {
    server.provider.queue({ text: 'Yes.', usage: { input: 1000, output: 500 } });
    await call('agent.execute', { message: 'How much?', agentId: 'frugal' });
    expect((await call('usage.report', { agentId: 'frugal' })).totals).toMatchObject({ calls: 1, inputTokens: 1000, costUsd: 0.002 });
    const { budgets } = await call('capabilities.introspect', {});
    expect(budgets.find(({ cap, scope }) => cap === 'perDayUsd' && scope === 'all')?.used).toBeGreaterThanOrEqual(0.002);
  });

  test('a token is created, used and revoked', async () => {
    const client = await server.as(['rpc']);
    expect((await client.call('session.search', {})).mode).toBe('recent');
    expect((await call('tokens.list', {})).tokens.map(({ id }) => id)).toContain(client.tokenId);
    await call('tokens.revoke', { id: client.tokenId });
    await expect(client.call('session.search', {})).rejects.toMatchObject({ code: 'unauthenticated' });
    const { rows } = await call('obs.audit.query', { target: client.tokenId });
    expect(rows.map(({ action }) => action)).toEqual(['tokens.revoke', 'tokens.create']);
  });

  test('a delivery of a webhook becomes a turn', async () => {
    server.provider.queue({ text: 'Freed.' });
    const { deliveryId } = await call('webhooks.test', { mapping: 'alerts', payload: { title: 'disk' }, run: true });
    const stateOf = async () => (await call('webhooks.deliveries', {})).deliveries.find((one) => one.deliveryId === deliveryId)?.state;
    await expect.poll(stateOf).toBe('done');
  });

  test('a skill is created, listed and deleted', async () => {
    await call('skills.create', { name: 'notes', content: '---\nname: notes\ndescription: Writes notes.\n---\n\nGroup the commits.\n' });
    const names = async () => (await call('skills.list', { agentId: 'default' })).skills.map(({ name }) => name);
    expect(await names()).toContain('notes');
    await call('skills.delete', { name: 'notes' });
    expect(await names()).not.toContain('notes');
  });

  test('a call continues in the background and its result returns to the conversation', async () => {
    server.provider.queue(callOf('slow'), { text: 'It is running.' }, { text: 'It passed.' });
    const { conversationRef, finishReason } = await call('agent.execute', { message: 'Run it' });
    expect(finishReason).toBe('background_pending');
    expect((await call('background.list', {})).items).toMatchObject([{ kind: 'call', conversationRef }]);
    running[0]?.({ content: '42 tests passed' });
    await expect
      .poll(async () => (await call('session.history', { conversationRef })).messages.map(({ content }) => content))
      .toContain('It passed.');
    expect((await call('background.list', {})).items).toEqual([]);
  });

  test('a reader of events gets what it missed', async () => {
    const heard = await openEvents(server.url, server.token, { query: '?kinds=system:error' });
    await expect.poll(() => heard.lastEventId).not.toBe('');
    heard.close();
    for (const message of ['one', 'two']) server.bus.emit('system:error', { source: 'test', message, timestamp: 1 });
    using again = await openEvents(server.url, server.token, { lastEventId: heard.lastEventId });
    await expect
      .poll(() => again.frames.filter(({ event }) => event === 'system:error'))
      .toMatchObject([{ data: { message: 'one' } }, { data: { message: 'two' } }]);
  });
});
