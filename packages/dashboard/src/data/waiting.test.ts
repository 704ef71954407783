import { expect, test } from 'vitest';
import { isRelevant, itemsOf, type WaitingItem, type WaitingJob, type WaitingParts } from './waiting.ts';

const nothing: WaitingParts = { graphs: [], jobs: [], pairings: [], messages: [], webhooks: [] };
const nowMs = 10 * 86_400_000;

function job(id: string, change: object): WaitingJob {
  return {
    id,
    name: id,
    agentId: 'default',
    source: 'authored',
    schedule: { kind: 'every', everyMs: 60_000, anchorMs: 0 },
    lifecycle: { state: 'scheduled', nextRunAtMs: 5, consecutiveDependencyErrors: 0 },
    payload: { kind: 'agent_turn', message: 'Hello' },
    ...change,
  };
}
const run = (status: string) => ({ executionId: `ce_${status}`, status, startedAtMs: 3, terminalAtMs: 4 });
const paused = (reason: string) => ({ state: 'paused', reason, nextRunAtMs: null, consecutiveDependencyErrors: 5 });

test('a job waits when its newest run failed, or when failures paused it, and not when a person did', () => {
  const jobs = [
    job('failed', { lastRun: run('failed') }),
    job('interrupted', { lastRun: run('unknown') }),
    job('fine', { lastRun: run('completed') }),
    job('running', { lastRun: run('started') }),
    job('never', {}),
    job('stopped', { lastRun: run('failed'), lifecycle: paused('dependency_errors') }),
    job('decided', { lastRun: run('failed'), lifecycle: paused('operator') }),
    job('builtIn', { lastRun: run('failed'), source: 'built_in' }),
  ];
  const items = itemsOf({ ...nothing, jobs }, nowMs);
  expect(items.map((item) => item.kind === 'job' && item.job.id)).toEqual(['failed', 'interrupted', 'stopped']);
  // What fails again is a new item, also for those who dismissed the earlier one.
  expect(items.map(({ key }) => key)).toEqual(['ce_failed', 'ce_unknown', 'stopped paused ce_failed']);
});

test('a gate asks its question, or its task where the question is not known', () => {
  const gate = { status: 'running' as const, waitsForAnswer: true, startedAt: 7 };
  const graph = {
    graphId: 'gr_1',
    label: 'News',
    nodes: { one: { ...gate, question: 'Send it?' }, two: { ...gate, task: 'Ask' }, three: { status: 'running' } },
  };
  const items = itemsOf({ ...nothing, graphs: [graph as unknown as WaitingParts['graphs'][number]] }, nowMs);
  expect(items).toMatchObject([
    { kind: 'gate', graph: 'News', nodeId: 'one', question: 'Send it?', sinceMs: 7 },
    { kind: 'gate', nodeId: 'two', question: 'Ask' },
  ]);
});

test('messages of the last week wait, oldest first', () => {
  const message = (deliveryId: string, endedAt: number) => ({ deliveryId, endedAt, createdAt: 1, attempts: 3 }) as WaitingParts['messages'][number];
  const messages = [message('ob_new', nowMs - 5), message('ob_older', nowMs - 9), message('ob_old', nowMs - 8 * 86_400_000)];
  expect(itemsOf({ ...nothing, messages }, nowMs).map(({ key }) => key)).toEqual(['ob_older 3', 'ob_new 3']);
});

test('only events that may change what waits cause a load', () => {
  const items = [
    { kind: 'gate', key: 'a', graphId: 'gr_1', nodeId: 'gate' },
    { kind: 'job', key: 'b', job: { id: 'cj_1' } },
  ] as unknown as WaitingItem[];
  const relevant = (kind: string, payload: object) => isRelevant({ kind, payload }, items);
  expect(relevant('gap', {})).toBe(true);
  expect(relevant('message:sent', {})).toBe(false);
  expect(relevant('graph:node_updated', { graphId: 'gr_2', nodeId: 'gate', waitsForAnswer: true })).toBe(true);
  expect(relevant('graph:node_updated', { graphId: 'gr_2', nodeId: 'other' })).toBe(false);
  expect(relevant('graph:node_updated', { graphId: 'gr_1', nodeId: 'gate', waitsForAnswer: true })).toBe(false);
  expect(relevant('graph:node_updated', { graphId: 'gr_1', nodeId: 'gate' })).toBe(true);
  expect(relevant('scheduler:cron_execution_terminal', { jobId: 'cj_2', executionStatus: 'completed' })).toBe(false);
  expect(relevant('scheduler:cron_execution_terminal', { jobId: 'cj_2', executionStatus: 'failed' })).toBe(true);
  expect(relevant('scheduler:cron_execution_started', { jobId: 'cj_1' })).toBe(true);
  expect(relevant('channel:message', { verdict: 'turn' })).toBe(false);
  expect(relevant('channel:message', { verdict: 'pairing' })).toBe(true);
  expect(relevant('webhook:delivery', { state: 'done' })).toBe(false);
  expect(relevant('webhook:delivery', { state: 'unknown' })).toBe(true);
});
