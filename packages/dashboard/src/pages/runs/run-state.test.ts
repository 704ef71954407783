import { expect, test } from 'vitest';
import { applyEvents, runOf, type Runs, treeOf } from './run-state.ts';

const rootRunId = 'root-rpc-1';
const event = (kind: string, runId: string, more: object = {}) => ({
  kind: `session:sub_agent_${kind}`,
  payload: { runId, rootRunId, agentId: 'default', requesterRef: null, depth: 1, timestamp: 1000, ...more },
});
const ended = { success: true, endReason: 'completed', runtimeMs: 400, tokensUsed: 30, cost: 0.5, timestamp: 3000 };
const from = (...events: ReturnType<typeof event>[]): Runs => applyEvents(new Map(), rootRunId, events);

test('a run appears when accepted, starts, and ends with its cost', () => {
  const queued = from(event('spawned', 'sr_1', { task: 'Look' }));
  expect(queued.get('sr_1')).toMatchObject({ status: 'queued', task: 'Look', startedAt: 1000 });
  const running = applyEvents(queued, rootRunId, [event('spawn_started', 'sr_1', { timestamp: 2000, resumed: false })]);
  expect(running.get('sr_1')).toMatchObject({ status: 'running', task: 'Look', startedAt: 2000 });
  const done = applyEvents(running, rootRunId, [event('completed', 'sr_1', ended)]);
  expect(done.get('sr_1')).toMatchObject({ status: 'completed', startedAt: 2600, endedAt: 3000, tokens: 30, cost: 0.5 });
  expect(applyEvents(done, rootRunId, [event('archived', 'sr_1')]).size).toBe(0);
});

test('an ended run ignores older events, and the map stays the same object', () => {
  const done = from(event('completed', 'sr_1', { ...ended, success: false, endReason: 'killed' }));
  const again = applyEvents(done, rootRunId, [event('spawn_started', 'sr_1'), event('spawned', 'sr_1'), event('lifecycle_ended', 'sr_1')]);
  expect(again).toBe(done);
  expect(done.get('sr_1')).toMatchObject({ status: 'failed', endReason: 'killed' });
});

test('ignores events of other roots and kinds, and keeps other runs as the same objects', () => {
  const runs = from(event('spawned', 'sr_1'), event('spawned', 'sr_2'));
  expect(applyEvents(runs, rootRunId, [event('spawned', 'sr_3', { rootRunId: 'root-2' }), { kind: 'message:sent', payload: {} }])).toBe(runs);
  const next = applyEvents(runs, rootRunId, [event('spawn_started', 'sr_2')]);
  expect(next).not.toBe(runs);
  expect(next.get('sr_1')).toBe(runs.get('sr_1'));
});

test('limits the number of runs on a page that is open for days', () => {
  const runs = from(event('spawned', 'sr_waits'), ...Array.from({ length: 1100 }, (_, at) => event('completed', `sr_${at}`, ended)));
  expect(runs.size).toBe(1000);
  expect(runs.has('sr_waits')).toBe(true);
});

test('the tree contains every run below its requester, oldest first', () => {
  const runs = from(
    event('spawned', 'sr_b', { timestamp: 3 }),
    event('spawned', 'sr_a', { timestamp: 2 }),
    event('spawned', 'sr_child', { parentRunId: 'sr_b', depth: 2, timestamp: 4 }),
    event('spawned', 'sr_orphan', { parentRunId: 'sr_gone', depth: 2, timestamp: 5 }),
  );
  expect(treeOf(runs).map(({ run, children }) => [run.runId, children.map((one) => one.run.runId)])).toEqual([
    ['sr_a', []],
    ['sr_b', ['sr_child']],
    ['sr_orphan', []],
  ]);
});

test('a listed run without content has neither task nor cost', () => {
  expect(
    runOf({
      runId: 'sr_1',
      status: 'failed',
      agentId: 'default',
      startedAt: 5,
      completion: { endReason: 'failed', completedAtMs: 9, errorKind: 'provider' },
    }),
  ).toEqual({
    runId: 'sr_1',
    rootRunId: '',
    agentId: 'default',
    status: 'failed',
    depth: 1,
    startedAt: 5,
    endedAt: 9,
    endReason: 'failed',
    errorKind: 'provider',
  });
});
