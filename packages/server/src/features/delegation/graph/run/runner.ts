import * as z from 'zod';
import type { RootStop } from '../../autonomy/api.ts';
import type { WorkItem, WorkOutcome } from '../../../unattended/durable/api.ts';
import type { StoppedRun } from '../../subagents/api.ts';
import { changeOf } from '../nodes/live-node.ts';
import { type CancelReason, requesterIn } from '../rows.ts';
import { loadGraph } from '../status/read-store.ts';
import { cancelGraph, type FoundGraph } from '../store.ts';
import type { EndedGraph } from './announce.ts';
import { type CloseDeps, closeGraph } from './close.ts';
import { EndedOutputs } from './ended-outputs.ts';
import { LiveGraph, type LiveDeps } from './live-graph.ts';
import { type GraphOperations, maxOpenGraphs } from './operations.ts';

export interface RunnerDeps extends LiveDeps, CloseDeps {
  readonly operations: GraphOperations;
}

const Payload = z.object({ graphId: z.string() });
/** Maximum interruptions and failures of the handler before a graph is given up. */
const maxAttempts = 100;
export const graphLimits = { concurrency: maxOpenGraphs, maxAttempts };

/** Runs graphs as durable work, and ends each exactly once, whatever ends it. */
export class GraphRunner {
  readonly #deps: RunnerDeps;
  readonly #live = new Map<string, LiveGraph>();
  /** Changes stored while a graph was read, which may be missing in what was read. */
  readonly #unread = new Map<string, ((graph: LiveGraph) => void)[]>();
  readonly #ended: EndedOutputs;
  #isStopping = false;

  constructor(deps: RunnerDeps) {
    this.#deps = deps;
    this.#ended = new EndedOutputs(deps.clock);
  }

  /** Returns a graph that runs in this process. */
  liveOf(graphId: string): LiveGraph | undefined {
    return this.#live.get(graphId);
  }

  /** Returns the outputs of a graph that runs here, or ran a short while ago. */
  outputsOf(graphId: string): Record<string, string | null> | undefined {
    return this.#live.get(graphId)?.outputs ?? this.#ended.get(graphId);
  }

  forget(graphId: string): void {
    this.#ended.forget(graphId);
  }

  /** Call after the cancellation is stored. */
  cancel(graphId: string, reason: CancelReason): void {
    this.#apply(graphId, (graph) => graph.cancel(reason));
  }

  /** Call after the answer of a person is stored. */
  answered(graphId: string, nodeId: string, answer: 'approved' | 'denied', text: string): void {
    this.#apply(graphId, (graph) => graph.answered(nodeId, answer, text));
  }

  /** Applies a stored change to a graph that runs in this process, or is about to. */
  #apply(graphId: string, change: (graph: LiveGraph) => void): void {
    const graph = this.#live.get(graphId);
    if (graph === undefined) this.#unread.get(graphId)?.push(change);
    else change(graph);
  }

  /** Executes the work item of a graph. */
  async handle(item: WorkItem, signal: AbortSignal): Promise<WorkOutcome> {
    const { graphId } = Payload.parse(item.payload);
    const unread: ((graph: LiveGraph) => void)[] = [];
    this.#unread.set(graphId, unread);
    const found = await this.#deps.db.read(loadGraph, { id: graphId }).finally(() => this.#unread.delete(graphId));
    if (found?.row.state !== 'running') return { state: 'done' };
    if (this.#isStopping) return 'released';
    const graph = new LiveGraph(this.#deps, found, item);
    this.#live.set(graphId, graph);
    for (const change of unread) change(graph);
    const halt = () => graph.halt();
    signal.addEventListener('abort', halt, { once: true });
    if (signal.aborted) halt();
    try {
      this.#announceStart(found, item);
      const end = await graph.run();
      // It continues at the next start; one that was killed is claimed again at once, and found ended.
      if (end === undefined) return 'released';
      const nodes = [...graph.nodes.values()].map(changeOf);
      await closeGraph(this.#deps, { row: graph.row, nodes, end: { ...end, error: 'the graph ended' }, claim: item });
      return 'settled';
    } finally {
      signal.removeEventListener('abort', halt);
      this.#live.delete(graphId);
      this.#ended.remember(graphId, graph.outputs);
    }
  }

  #announceStart({ row }: FoundGraph, { attempts, resumed }: WorkItem): void {
    const { id: graphId, agentId, label, nodeCount, principalId } = row;
    const { bus, clock } = this.#deps;
    const about = { graphId, agentId, ...(label !== null && { label }), nodeCount, resumed: attempts > 1 || resumed, timestamp: clock.now() };
    bus.emit('graph:started', about, principalId);
  }

  /** Ends a graph whose work was given up. */
  async gaveUp(item: WorkItem, errorKind: string, cause: string): Promise<void> {
    const { graphId } = Payload.parse(item.payload);
    const found = await this.#deps.db.read(loadGraph, { id: graphId });
    if (found?.row.state !== 'running') return;
    const error = `given up: ${errorKind}`;
    const nodes = overAs(found.nodes, error, cause);
    await closeGraph(this.#deps, { row: found.row, nodes, end: { state: 'failed', reason: null, error }, claim: item });
  }

  /** Stops the graphs of a root. After the stop is committed nothing new begins; a kill ends its graphs at once. */
  async stopRoot(rootRunId: string, how: RootStop): Promise<number> {
    const { db, operations } = this.#deps;
    let stopped = 0;
    for (const found of await db.read(operations.ofRoot, { rootRunId })) {
      const { row } = found;
      if (how === 'revoke') {
        await db.write(cancelGraph, { id: row.id, reason: 'killed' });
        this.cancel(row.id, 'killed');
        stopped += 1;
        continue;
      }
      if (await this.#kill(found)) stopped += 1;
    }
    return stopped;
  }

  /** Kills the graphs of sub-agents that were stopped; their own runs were ended with those. */
  async killOf(runs: readonly StoppedRun[]): Promise<void> {
    const { db, operations } = this.#deps;
    const ids = new Set(runs.map(({ runId }) => runId));
    for (const rootRunId of new Set(runs.map((run) => run.rootRunId)))
      for (const found of await db.read(operations.ofRoot, { rootRunId })) {
        const by = requesterIn(found.row)?.runId;
        if (by !== undefined && by !== null && ids.has(by)) await this.#kill(found);
      }
  }

  async #kill({ row, nodes }: FoundGraph): Promise<boolean> {
    const error = 'killed: the run was stopped';
    const isEnded = await closeGraph(this.#deps, { row, nodes: overAs(nodes, error), end: { state: 'cancelled', reason: 'killed', error } });
    this.#apply(row.id, (graph) => graph.halt());
    return isEnded;
  }

  /** Halts all graphs, so that pending waits do not delay the stop of the daemon; they resume at the next start. */
  stopping(): void {
    this.#isStopping = true;
    for (const graph of this.#live.values()) graph.halt();
  }
}

const overAs = (nodes: FoundGraph['nodes'], error: string, cause: string | null = null): EndedGraph['nodes'] =>
  nodes.map((node) => {
    if (node.state === 'running') return { ...node, state: 'failed', error, cause };
    return node.state === 'pending' ? { ...node, state: 'skipped', error } : node;
  });
