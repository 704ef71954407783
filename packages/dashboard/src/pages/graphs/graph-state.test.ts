import { expect, test } from 'vitest';
import { applyEvents, type GraphView } from './graph-state.ts';

const graphId = 'gr_1';
const view: GraphView = {
  graphId,
  status: 'running',
  nodeCount: 2,
  isTerminal: false,
  executionOrder: ['a', 'b'],
  edges: [{ from: 'a', to: 'b' }],
  nodes: { a: { status: 'running', startedAt: 5, progress: 'round 1' }, b: { status: 'pending' } },
  stats: { total: 2, completed: 0, failed: 0, skipped: 0, running: 1, pending: 1, tokens: 0, cost: 0 },
};
const update = (nodeId: string, status: string, more: object = {}) => ({
  kind: 'graph:node_updated',
  payload: { graphId, agentId: 'default', timestamp: 10, nodeId, status, ...more },
});

test('a finished node is counted and loses its progress text', () => {
  const next = applyEvents(view, [update('a', 'completed', { durationMs: 5 }), update('b', 'running', { progress: 'asks', waitsForAnswer: true })]);
  expect(next.nodes).toEqual({
    a: { status: 'completed', startedAt: 5, completedAt: 10, durationMs: 5 },
    b: { status: 'running', startedAt: 10, progress: 'asks', waitsForAnswer: true },
  });
  expect(next.stats).toMatchObject({ completed: 1, running: 1, pending: 0, total: 2 });
});

test('ignores older events of finished nodes and events of other graphs', () => {
  const done = applyEvents(view, [update('a', 'failed', { error: 'no' })]);
  expect(applyEvents(done, [update('a', 'running')])).toBe(done);
  expect(applyEvents(done, [{ kind: 'graph:node_updated', payload: { graphId: 'gr_2', nodeId: 'b', status: 'failed' } }])).toBe(done);
  expect(applyEvents(done, [update('nothing', 'failed')])).toBe(done);
});

test('shows the end of the graph at once', () => {
  const end = { kind: 'graph:completed', payload: { graphId, status: 'cancelled', cancelReason: 'manual', timestamp: 20 } };
  expect(applyEvents(view, [end])).toMatchObject({ status: 'cancelled', isTerminal: true, completedAt: 20, cancelReason: 'manual' });
});
