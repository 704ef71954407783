import * as z from 'zod';
import { isForOwners } from '../../../../kernel/call-context.ts';
import type { AutonomyApi, RootStop } from '../../autonomy/api.ts';
import type { DurableWork, WorkHandler, WorkItem } from '../../../unattended/durable/api.ts';
import { endMessage, type EndedGraph } from './announce.ts';
import { LiveGraph, type LiveDeps } from './live-graph.ts';
import { changeOf } from '../nodes/live-node.ts';
import { type GraphAnnouncement, graphAnnounceWork, type GraphOperations, graphWork, maxOpenGraphs } from './operations.ts';
import { loadGraph } from '../status/read-store.ts';
import type { StoppedRun } from '../../subagents/api.ts';
import { announceIn, type CancelReason, type GraphRow, requesterIn, specOf } from '../rows.ts';
import { cancelGraph, type FoundGraph, type GraphEnd } from '../store.ts';
import { announcementWork } from './deliver-announcement.ts';

export interface RunnerDeps extends LiveDeps {
  readonly durable: Pick<DurableWork, 'handle' | 'wake'>;
  readonly autonomy: Pick<AutonomyApi, 'onStop'>;
  readonly operations: GraphOperations;
}

const Payload = z.object({ graphId: z.string() });
/** Maximum interruptions and failures of the handler before a graph is given up. */
const maxAttempts = 100;
/** How many ended graphs are answered from memory, and for how long. */
const maxRemembered = 20;
const rememberedMs = 10 * 60_000;

/** Runs graphs as durable work, and ends each exactly once, whatever ends it. */
export function createGraphRunner(deps: RunnerDeps) {
  const { db, bus, clock, operations, durable } = deps;
  const live = new Map<string, LiveGraph>();
  const ended = new Map<string, { readonly outputs: Record<string, string | null>; readonly untilMs: number }>();
  let isStopping = false;

  function remember(graph: LiveGraph): void {
    ended.set(graph.row.id, { outputs: graph.outputs, untilMs: clock.now() + rememberedMs });
    for (const [id, { untilMs }] of ended) if (ended.size > maxRemembered || untilMs <= clock.now()) ended.delete(id);
  }

  function announceEnd({ row, nodes }: FoundGraph): void {
    const { id, agentId, state, startedAtMs, endedAtMs, nodeCount, cancelReason } = row;
    const count = (of: string) => nodes.filter((node) => node.state === of).length;
    bus.emit(
      'graph:completed',
      {
        graphId: id,
        agentId,
        status: state,
        durationMs: Math.max(0, (endedAtMs ?? 0) - (startedAtMs ?? 0)),
        nodeCount,
        nodesCompleted: count('completed'),
        nodesFailed: count('failed'),
        nodesSkipped: count('skipped'),
        ...(cancelReason !== null && { cancelReason }),
        timestamp: clock.now(),
      },
      row.principalId,
    );
  }

  /** Writes the end of a graph with its single announcement; false when it has already ended differently. */
  async function close(row: GraphRow, nodes: EndedGraph['nodes'], end: Omit<GraphEnd, 'id' | 'atMs'>, claim: WorkItem | undefined): Promise<boolean> {
    const atMs = clock.now();
    const announcement = announcementOf({ row: { ...row, state: end.state, cancelReason: end.reason }, nodes }, row, atMs);
    const closed = await db.write(operations.close, {
      ...(claim !== undefined && { claim: { id: claim.id, owner: claim.owner, fence: claim.fence } }),
      ...announcement,
      end: { ...end, id: row.id, atMs },
      errorKind: end.reason ?? (end.state === 'completed' ? null : 'failed'),
    });
    if (closed === undefined) return false;
    if (closed.stoppedBy !== undefined) return close(row, nodes, { ...end, state: 'cancelled', reason: closed.stoppedBy }, claim);
    if (closed.delivered && announcement.inbox !== undefined) deps.inbox.announce(announcement.inbox);
    if (announcement.work !== undefined) durable.wake(graphAnnounceWork);
    announceEnd(closed.found);
    return true;
  }

  function announcementOf(found: EndedGraph, row: GraphRow, atMs: number): GraphAnnouncement {
    const announce = announceIn(row);
    const conversationRef = announce.to === 'conversation' ? announce.conversationRef : null;
    const inbox = endMessage(found, specOf(row), { conversationRef, forOwner: isForOwners(deps.identityOf(row.tokenId)), atMs });
    // A conversation is notified of results it can continue with; failed or stopped graphs need no model call.
    return announce.to === 'conversation' && found.row.state === 'completed' ? { work: announcementWork(row, atMs) } : { inbox };
  }

  const handler: WorkHandler = async (item, signal) => {
    const { graphId } = Payload.parse(item.payload);
    const found = await db.read(loadGraph, { id: graphId });
    if (found?.row.state !== 'running') return { state: 'done' };
    if (isStopping) return parked;
    const graph = new LiveGraph(deps, found, item);
    live.set(graphId, graph);
    const halt = () => graph.halt();
    signal.addEventListener('abort', halt, { once: true });
    if (signal.aborted) halt();
    try {
      const { agentId, label, nodeCount, principalId } = found.row;
      const isResumed = item.attempts > 1 || item.resumed;
      const about = { graphId, agentId, ...(label !== null && { label }), nodeCount, resumed: isResumed, timestamp: clock.now() };
      bus.emit('graph:started', about, principalId);
      const end = await graph.run();
      if (end === undefined) return parked;
      const nodes = [...graph.nodes.values()].map(changeOf);
      await close(graph.row, nodes, { ...end, error: 'the graph ended' }, item);
      return 'settled';
    } finally {
      signal.removeEventListener('abort', halt);
      live.delete(graphId);
      remember(graph);
    }
  };

  async function gaveUp(item: WorkItem, errorKind: string, cause: string): Promise<void> {
    const { graphId } = Payload.parse(item.payload);
    const found = await db.read(loadGraph, { id: graphId });
    if (found?.row.state !== 'running') return;
    const error = `given up: ${errorKind}`;
    await close(found.row, overAs(found.nodes, error, cause), { state: 'failed', reason: null, error }, item);
  }

  async function kill({ row, nodes }: FoundGraph): Promise<boolean> {
    const error = 'killed: the run was stopped';
    const isEnded = await close(row, overAs(nodes, error), { state: 'cancelled', reason: 'killed', error }, undefined);
    live.get(row.id)?.halt();
    return isEnded;
  }

  /** Kills the graphs of sub-agents that were stopped; their own runs were ended with those. */
  async function killOf(runs: readonly StoppedRun[]): Promise<void> {
    const ids = new Set(runs.map(({ runId }) => runId));
    for (const rootRunId of new Set(runs.map((run) => run.rootRunId)))
      for (const found of await db.read(operations.ofRoot, { rootRunId })) {
        const by = requesterIn(found.row)?.runId;
        if (by !== undefined && by !== null && ids.has(by)) await kill(found);
      }
  }

  /** Stops the graphs of a root. After the stop is committed nothing new begins; a kill ends its graphs at once. */
  async function stop(rootRunId: string, how: RootStop): Promise<number> {
    let stopped = 0;
    for (const found of await db.read(operations.ofRoot, { rootRunId })) {
      const { row } = found;
      if (how === 'revoke') {
        await db.write(cancelGraph, { id: row.id, reason: 'killed' });
        live.get(row.id)?.cancel('killed');
        stopped += 1;
        continue;
      }
      if (await kill(found)) stopped += 1;
    }
    return stopped;
  }

  durable.handle(graphWork, handler, { concurrency: maxOpenGraphs, maxAttempts, gaveUp });
  deps.autonomy.onStop(stop);
  deps.subagents.onStopped(killOf);

  return {
    /** Returns a graph that runs in this process. */
    liveOf: (graphId: string): LiveGraph | undefined => live.get(graphId),
    /** Returns the outputs of a graph that runs here, or ran a short while ago. */
    outputsOf(graphId: string): Record<string, string | null> | undefined {
      const kept = ended.get(graphId);
      return live.get(graphId)?.outputs ?? (kept !== undefined && kept.untilMs > clock.now() ? kept.outputs : undefined);
    },
    forget: (graphId: string) => void ended.delete(graphId),
    cancel: (graphId: string, reason: CancelReason) => live.get(graphId)?.cancel(reason),
    /** Halts all graphs, so that pending waits do not delay the stop of the daemon; they resume at the next start. */
    stopping(): void {
      isStopping = true;
      for (const graph of live.values()) graph.halt();
    },
  };
}

/** Retries the work: at the next start, since a stopping daemon claims nothing; at once when the graph has ended, which is then noticed. */
const parked = { retryAfterMs: 0, errorKind: 'parked' } as const;

const overAs = (nodes: FoundGraph['nodes'], error: string, cause: string | null = null): EndedGraph['nodes'] =>
  nodes.map((node) => {
    if (node.state === 'running') return { ...node, state: 'failed', error, cause };
    return node.state === 'pending' ? { ...node, state: 'skipped', error } : node;
  });

export type GraphRunner = ReturnType<typeof createGraphRunner>;
