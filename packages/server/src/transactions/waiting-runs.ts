import { readWaiting } from '../features/unattended/durable/store.ts';
import type { WaitingRun } from '../features/delegation/subagents/api.ts';
import { openRunsOfGraph } from '../features/delegation/subagents/store.ts';
import { runWork } from '../features/delegation/subagents/requests/work-kind.ts';
import type { Waiting } from '../features/unattended/durable/api.ts';
import { operation } from '../kernel/db/operation.ts';

/** Returns runs of a graph waiting for their provider or a person, or checking again whether they must. */
export const waitingRunsOf = operation('subagents.waitingOf', async (tx, { graphId }: { readonly graphId: string }): Promise<WaitingRun[]> => {
  const runs = await openRunsOfGraph(tx, graphId);
  const nodes = new Map(runs.map(({ id, nodeId }) => [id, nodeId]));
  const found = await readWaiting(tx, { kind: runWork, keys: [...nodes.keys()] });
  return found.flatMap(({ key: runId, waiting }) => {
    const nodeId = nodes.get(runId);
    return nodeId === undefined || nodeId === null ? [] : [{ runId, nodeId, waiting }];
  });
});

/** Returns what one run waits for. */
export const waitingOfRun = operation('subagents.waitingOfRun', async (tx, { runId }: { readonly runId: string }): Promise<Waiting | undefined> => {
  const [found] = await readWaiting(tx, { kind: runWork, keys: [runId] });
  return found?.waiting;
});
