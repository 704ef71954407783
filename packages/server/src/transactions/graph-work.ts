import { deliverMessage } from './deliver-message.ts';
import { withdrawParts } from '../features/channels/delivery/store.ts';
import { enterRoot, leaveRoot } from '../features/delegation/autonomy/store.ts';
import { acceptWork, cancelWork, findWork, holdsWork, settleWork } from '../features/unattended/durable/store.ts';
import {
  type GraphAccepted,
  type GraphClosed,
  type GraphClosing,
  type GraphIntake,
  maxOpenGraphs,
  maxOpenOfOne,
  type NodeMoves,
} from '../features/delegation/graph/run/operations.ts';
import {
  addGraph,
  changeNodes,
  endGraphRow,
  type FoundGraph,
  openGraphs,
  openGraphsOf,
  readGraph,
  stoppedGraph,
} from '../features/delegation/graph/store.ts';
import { appendAudit } from '../kernel/db/audit.ts';
import { operation, type Tx } from '../kernel/db/operation.ts';

/** Stores everything that the response of `graph.execute` promises, in one commit. */
export const acceptGraph = operation(
  'graph.accept',
  async (tx, { row, nodeIds, kept = [], wasLoaded, root, work, audit }: GraphIntake): Promise<GraphAccepted> => {
    const known = await findWork(tx, { kind: work.kind, key: work.key });
    // Another call started it under its own id.
    if (known !== undefined) return work.key === row.id ? 'gone' : graphOf(known.payload);
    const open = await openGraphs(tx, row.principalId);
    if (open.all >= maxOpenGraphs) return 'full';
    if (open.own >= maxOpenOfOne) return 'full_of_own';
    if (!(await addGraph(tx, row, nodeIds, wasLoaded))) return 'gone';
    await changeNodes(tx, row.id, kept);
    await enterRoot(tx, root);
    await acceptWork(tx, work);
    await appendAudit(tx, audit);
    return 'accepted';
  },
);

/** Written only by `acceptGraph`. */
const graphOf = (payload: unknown) => payload as { readonly graphId: string };

/** Advances nodes of a graph and stores the messages about it. */
export const moveGraphNodes = operation(
  'graph.move',
  async (tx, { claim, graphId, changes, inbox, waitedMs }: NodeMoves): Promise<string[] | undefined> => {
    if (!(await holdsWork(tx, claim)) || !(await changeNodes(tx, graphId, changes, waitedMs))) return undefined;
    await withdrawQuestions(
      tx,
      graphId,
      changes.filter(({ endedAtMs }) => endedAtMs !== null),
    );
    const delivered: string[] = [];
    for (const message of inbox) if ((await deliverMessage(tx, message)) === 'accepted') delivered.push(message.id);
    return delivered;
  },
);

/** Ends a graph with its work, its part of the root run, and the only announcement of its end. */
export const closeGraph = operation(
  'graph.close',
  async (tx, { claim, end, errorKind, inbox, work }: GraphClosing): Promise<GraphClosed | undefined> => {
    const { id, atMs, state } = end;
    const stoppedBy = state === 'cancelled' ? undefined : await stoppedGraph(tx, id);
    if (stoppedBy !== undefined) return { stoppedBy };
    const workState = state === 'completed' ? 'done' : state === 'failed' ? 'failed' : 'aborted';
    if (claim !== undefined && !(await settleWork(tx, { ...claim, state: workState, errorKind, atMs }))) return undefined;
    if (!(await endGraphRow(tx, end))) return undefined;
    const found = await readGraph(tx, id);
    if (found === undefined) return undefined;
    await withdrawQuestions(tx, id, found.nodes);
    const { workId, rootRunId } = found.row;
    if (claim === undefined && workId !== null) await cancelWork(tx, { id: workId, errorKind: errorKind ?? 'killed', atMs });
    if (rootRunId !== null) await leaveRoot(tx, { rootRunId, kind: 'graph', failed: state !== 'completed', tokens: 0, costNano: 0, atMs });
    const delivered = inbox !== undefined && (await deliverMessage(tx, inbox)) === 'accepted';
    if (work !== undefined) await acceptWork(tx, work);
    return { delivered, found };
  },
);

interface MaybeGate {
  readonly nodeId: string;
  readonly attempt: number;
  readonly runId: string | null;
}

/** What a gate asks in a chat is not sent any more when the gate has ended. */
async function withdrawQuestions(tx: Tx, graphId: string, nodes: readonly MaybeGate[]): Promise<void> {
  for (const { nodeId, attempt, runId } of nodes)
    if (runId === null) for (const kind of ['ask', 'reminder']) await withdrawParts(tx, { opKey: `graph:${graphId}:${kind}:${nodeId}:${attempt}` });
}

export const graphsOfRoot = operation('graph.ofRoot', async (tx, { rootRunId }: { readonly rootRunId: string }): Promise<FoundGraph[]> => {
  const found: FoundGraph[] = [];
  for (const { id } of await openGraphsOf(tx, rootRunId)) {
    const graph = await readGraph(tx, id);
    if (graph !== undefined) found.push(graph);
  }
  return found;
});

export const graphWorkOperations = [acceptGraph, moveGraphNodes, closeGraph, graphsOfRoot];
