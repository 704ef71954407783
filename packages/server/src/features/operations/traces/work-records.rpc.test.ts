import { createHmac } from 'node:crypto';
import { type FakeProvider, startFakeProvider, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { EndedRecord } from './api.ts';
import { fromLines, fromRow } from './record-row.ts';

const token = 'a-shared-secret-of-more-than-32-characters';
const rows: EndedRecord[] = [];
/** Returns the stored records of a kind. */
const recorded = (kind: string) => rows.filter((row) => row.kind === kind);

let server: TestServer;
let tiny: FakeProvider;
beforeAll(async () => {
  tiny = await startFakeProvider();
  server = await startTestServer({
    db: (db) => ({
      ...db,
      write: db.write.bind(db),
      read: db.read.bind(db),
      search: db.search.bind(db),
      backup: db.backup.bind(db),
      status: db.status.bind(db),
      telemetry(operation, input) {
        if (operation.name === 'traces.append') rows.push(...fromLines((input as { readonly records: string }).records).map(fromRow));
        return db.telemetry(operation, input);
      },
    }),
    config: {
      providers: { tiny: { type: 'openai-compatible', baseUrl: tiny.url, models: [{ id: 'some-model', tier: 'small' }] } },
      agents: {
        default: { model: 'mock/mock-fast', memory: { review: { minMessages: 2, dedupThreshold: 0.95 } }, tools: { allow: ['pipeline'] } },
        merger: {
          model: 'mock/mock-fast',
          memory: { review: { dedupThreshold: 0.95 } },
          operationModels: { memoryReview: { model: 'tiny/some-model' } },
        },
      },
      approvals: { rules: [{ tools: ['pipeline'], action: 'auto', tainted: true }] },
      webhooks: { token, mappings: [{ id: 'beat', match: { path: 'beat' }, action: 'wake', replay: 'body' }] },
    },
  });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await tiny.close();
});
beforeEach(() => {
  rows.length = 0;
  server.provider.setAnswer(undefined);
});

const call = (message: string, sessionKey: string) => server.client.call('agent.execute', { message, sessionKey });

describe('model calls outside of turns', () => {
  test('a compaction keeps its tokens, its cost and the conversation', async () => {
    let conversationRef = '';
    for (let index = 0; index < 6; index += 1) ({ conversationRef } = await call(`Item ${index}: ${'words '.repeat(200)}`, 'ada:long'));
    server.provider.setAnswer(() => ({ text: 'All of it in short.' }));
    await server.client.call('session.compact', { conversationRef });
    await expect.poll(() => recorded('compaction')).not.toEqual([]);
    const [record] = recorded('compaction');
    expect(record).toMatchObject({
      outcome: 'ok',
      conversationRef,
      agentId: 'default',
      model: 'mock/mock-fast',
      modelCalls: 1,
      facts: { operation: 'compaction' },
      steps: [
        { kind: 'model', outcome: 'ok', facts: { operation: 'compaction' } },
        { kind: 'attempt', outcome: 'ok', parent: 0 },
      ],
    });
    expect(record?.costNano).toBe(record?.steps[1]?.costNano);
    expect(JSON.stringify(rows)).not.toContain('in short');
  });

  test('a review that fails keeps the sentence of the provider', async () => {
    await call('I am Ada', 'ada:review');
    server.provider.setAnswer(() => ({ status: 400, error: { message: 'Bananas are not accepted' } }));
    await server.client.call('memory.review', { agentId: 'default' });
    await expect
      .poll(() => recorded('review').map(({ outcome, error }) => ({ outcome, error })))
      .toContainEqual({
        outcome: 'failed',
        error: expect.objectContaining({ kind: 'bad_request', text: expect.stringContaining('Bananas') }),
      });
  });

  test('a small model is not asked to merge memories, which is recorded', async () => {
    for (const content of ['Ada drinks green tea in the morning', 'In the morning Ada drinks hot green tea']) {
      const message = `Remember: ${content}`;
      for (let turn = 0; turn < 3; turn += 1)
        await server.client.call('agent.execute', { agentId: 'merger', message, sessionKey: `ada:${content.length}` });
      tiny.queue({ text: JSON.stringify([{ content }]) });
      await server.client.call('memory.review', { agentId: 'merger' });
    }
    expect(tiny.requests).toHaveLength(2);
    await expect
      .poll(() => recorded('synthesis'))
      .toMatchObject([
        { outcome: 'skipped', endReason: 'abstained', agentId: 'merger', facts: { abstained: 'low_capability', tier: 'small', memories: 2 } },
      ]);
  });
});

test('a delivery of a webhook is kept with how it ended, its repeat as filtered', async () => {
  const body = '{"a":"secret words"}';
  const headers = { 'content-type': 'application/json', 'x-webhook-signature': createHmac('sha256', token).update(body).digest('hex') };
  const send = () => fetch(`${server.url}/hooks/beat`, { method: 'POST', body, headers });
  expect([(await send()).status, (await send()).status]).toEqual([200, 200]);
  await expect.poll(() => recorded('delivery').length).toBe(2);
  expect(recorded('delivery')).toMatchObject([
    { outcome: 'ok', endReason: 'success', origin: 'webhook', channelType: 'webhook', channelId: 'beat', facts: { action: 'wake' } },
    { outcome: 'skipped', endReason: 'filtered', facts: { duplicate: true } },
  ]);
  expect(JSON.stringify(rows)).not.toContain('secret words');
});

test('the verdict of a wake gate is kept with the turn that it saved', async () => {
  await server.client.call('cron.add', {
    name: 'gated',
    schedule: { kind: 'every', everyMs: 3_600_000 },
    payload: { kind: 'agent_turn', message: 'Look at it' },
    wakeGate: { script: `console.log(JSON.stringify({ wake: false }))`, language: 'js', timeoutSeconds: 20 },
  });
  await server.client.call('cron.run', { jobName: 'gated' });
  await expect
    .poll(() => recorded('wake_gate'))
    .toMatchObject([{ outcome: 'skipped', endReason: 'skipped', agentId: 'default', facts: { wake: false, failedOpen: false, turnsSaved: 1 } }]);
}, 30_000);

test('a wake gate that wakes is part of the trace of its turn, which names the job', async () => {
  const { jobId } = await server.client.call('cron.add', {
    name: 'woken',
    schedule: { kind: 'every', everyMs: 3_600_000 },
    payload: { kind: 'agent_turn', message: 'Look at it' },
    wakeGate: { script: `console.log(JSON.stringify({ wake: true }))`, language: 'js', timeoutSeconds: 20 },
  });
  await server.client.call('cron.run', { jobName: 'woken' });
  await expect.poll(() => recorded('turn')).toMatchObject([{ origin: 'cron', outcome: 'ok', refs: { jobId, occurrenceId: expect.any(String) } }]);
  const traceId = recorded('turn')[0]?.traceId ?? '';
  const { records } = await server.client.call('obs.trace.get', { ref: traceId });
  expect(records.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['wake_gate', 'turn']));
  const report = await server.client.call('obs.explain', { traceId });
  expect(report.cronWakeGate).toMatchObject({ jobId, wake: true, estTurnsSaved: 0 });
}, 30_000);

test('a graph that an agent wrote is kept with the tier of its model', async () => {
  const nodes = [{ node_id: 'a', task: 'Part one.', depends_on: ['missing'] }];
  server.provider.queue(
    { toolCalls: [{ id: 'c1', name: 'pipeline', arguments: JSON.stringify({ action: 'define', nodes }) }] },
    { text: 'It is not valid.' },
  );
  await call('Build a graph', 'ada:graph');
  await expect
    .poll(() => recorded('pipeline'))
    .toMatchObject([
      { outcome: 'failed', endReason: 'invalid', agentId: 'default', facts: { action: 'define', valid: false, tier: 'mid', nodeCount: 1 } },
    ]);
});

test('a killed run is kept with the turn that started it', async () => {
  await call('Hello', 'ada:kill');
  await expect.poll(() => recorded('turn')).not.toEqual([]);
  const id = recorded('turn')[0]?.id ?? '';
  server.bus.emit('autonomy:killed', { rootRunId: `root-turn-${id}`, killed: 2, timestamp: 1_790_000_000_000 });
  await expect
    .poll(() => recorded('autonomy'))
    .toMatchObject([{ endReason: 'killed', parentId: id, principalId: 'system', facts: { event: 'killed' } }]);
  const { records } = await server.client.call('obs.trace.get', { ref: id });
  expect(records.map(({ kind }) => kind)).toEqual(['turn', 'autonomy']);
});
