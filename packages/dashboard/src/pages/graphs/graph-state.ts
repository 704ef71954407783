import type { EventPayload, Result } from '@gatehouse/contract';

export type GraphView = Extract<Result<'graph.status'>, { executionOrder: unknown }>;
export type NodeView = GraphView['nodes'][string];

/** Applies events, which may be older than the graph; returns the same object when nothing changes. */
export function applyEvents(view: GraphView, events: readonly { readonly kind: string; readonly payload: unknown }[]): GraphView {
  let next = view;
  for (const { kind, payload } of events) {
    if (!isOf(payload, view.graphId)) continue;
    if (kind === 'graph:node_updated') next = withNode(next, payload as EventPayload<'graph:node_updated'>);
    if (kind === 'graph:completed') next = ended(next, payload as EventPayload<'graph:completed'>);
  }
  return next;
}

function isOf(payload: unknown, graphId: string): boolean {
  return typeof payload === 'object' && payload !== null && 'graphId' in payload && payload.graphId === graphId;
}

export function isOver({ status }: Pick<NodeView, 'status'>): boolean {
  return status === 'completed' || status === 'failed' || status === 'skipped';
}

function withNode(view: GraphView, update: EventPayload<'graph:node_updated'>): GraphView {
  const before = view.nodes[update.nodeId];
  if (before === undefined || isOver(before)) return view;
  const { status, runId, progress, waitsForAnswer, durationMs, error, timestamp } = update;
  const { progress: _, waitsForAnswer: __, question, ...kept } = before;
  const node: NodeView = {
    ...kept,
    status,
    ...(status === 'running' && { startedAt: before.startedAt ?? timestamp }),
    ...(isOver({ status }) && { completedAt: timestamp }),
    ...(runId !== undefined && { runId }),
    ...(progress !== undefined && { progress }),
    ...(waitsForAnswer === true && { waitsForAnswer, ...(question !== undefined && { question }) }),
    ...(durationMs !== undefined && { durationMs }),
    ...(error !== undefined && { error }),
  };
  const nodes = { ...view.nodes, [update.nodeId]: node };
  return { ...view, nodes, stats: { ...view.stats, ...countsOf(nodes) } };
}

function ended(view: GraphView, { status, cancelReason, timestamp }: EventPayload<'graph:completed'>): GraphView {
  if (view.isTerminal) return view;
  return { ...view, status, isTerminal: true, completedAt: timestamp, ...(cancelReason !== undefined && { cancelReason }) };
}

function countsOf(nodes: GraphView['nodes']) {
  const count = (status: NodeView['status']): number => Object.values(nodes).filter((node) => node.status === status).length;
  return { completed: count('completed'), failed: count('failed'), skipped: count('skipped'), running: count('running'), pending: count('pending') };
}
