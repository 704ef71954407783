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
const told = (nodeId: string, status: string, more: object = {}) => ({
  kind: 'graph:node_updated',
  payload: { graphId, agentId: 'default', timestamp: 10, nodeId, status, ...more },
});

test('a node that ends is counted and has no progress any more', () => {
  const next = applyEvents(view, [told('a', 'completed', { durationMs: 5 }), told('b', 'running', { progress: 'asks', waitsForAnswer: true })]);
  expect(next.nodes).toEqual({
    a: { status: 'completed', startedAt: 5, completedAt: 10, durationMs: 5 },
    b: { status: 'running', startedAt: 10, progress: 'asks', waitsForAnswer: true },
  });
  expect(next.stats).toMatchObject({ completed: 1, running: 1, pending: 0, total: 2 });
});

test('an older event changes nothing of what has ended, nor does one of another graph', () => {
  const done = applyEvents(view, [told('a', 'failed', { error: 'no' })]);
  expect(applyEvents(done, [told('a', 'running')])).toBe(done);
  expect(applyEvents(done, [{ kind: 'graph:node_updated', payload: { graphId: 'gr_2', nodeId: 'b', status: 'failed' } }])).toBe(done);
  expect(applyEvents(done, [told('nothing', 'failed')])).toBe(done);
});

test('the end of the graph is shown at once', () => {
  const end = { kind: 'graph:completed', payload: { graphId, status: 'cancelled', cancelReason: 'manual', timestamp: 20 } };
  expect(applyEvents(view, [end])).toMatchObject({ status: 'cancelled', isTerminal: true, completedAt: 20, cancelReason: 'manual' });
});
