import { enterRoot, issueLease } from '../features/delegation/autonomy/store.ts';
import { acceptWork, holdsWork } from '../features/unattended/durable/store.ts';
import type { Accepted, RunAcceptance, RunBegin } from '../features/delegation/subagents/requests/acceptance.ts';
import { isEnded } from '../features/delegation/subagents/run/row.ts';
import { readSteers, type SteerRow } from '../features/delegation/subagents/requests/steer-store.ts';
import { countOpen, findKey, insertRun, keepKey, lockRun, markRunning } from '../features/delegation/subagents/store.ts';
import { AppError } from '../kernel/app-error.ts';
import { operation, type Tx } from '../kernel/db/operation.ts';

/** Stores a run with its work, its lease and its part of the root, in one commit before the response. */
export const acceptRun = operation('subagents.accept', async (tx, input: RunAcceptance): Promise<Accepted> => {
  const { row, key } = input;
  if (key !== undefined) {
    const known = await findKey(tx, key.key);
    if (known !== undefined && known.atMs >= key.sinceMs) {
      if (known.digest !== key.digest) throw new AppError('conflict', 'operationId: it was used for another task', { param: 'operationId' });
      const { runId, rootRunId, conversationRef, atMs } = known;
      return { isNew: false, runId, rootRunId, conversationRef, atMs };
    }
  }
  if (row.parentRunId !== null) {
    const parent = await lockRun(tx, row.parentRunId);
    // A graph continues when the run that started it has ended, but not when that one was stopped.
    const mayContinue = row.graphId !== null && parent?.endReason !== 'killed' && parent?.endReason !== 'ghost_sweep';
    if (!mayContinue && (parent === undefined || isEnded(parent))) throw new AppError('denied', 'The run that this belongs to has ended');
  }
  return acceptWithin(tx, input);
});

/** Part of `acceptRun` and of a steer that starts a new run. */
export async function acceptWithin(tx: Tx, { row, work, lease, root, key, limits }: RunAcceptance): Promise<Accepted> {
  const open = row.counted === 1 ? await countOpen(tx, row.requesterKey) : 0;
  if (limits !== undefined && open >= limits.children + limits.queued)
    return { refused: limits.queued === 0 ? 'children_exceeded' : 'queue_full', open };
  await enterRoot(tx, root);
  await issueLease(tx, lease);
  await insertRun(tx, row);
  if (key !== undefined) await keepKey(tx, { ...row, key: key.key, digest: key.digest, runId: row.id, atMs: row.queuedAtMs });
  await acceptWork(tx, work);
  const children = limits?.children ?? Number.MAX_SAFE_INTEGER;
  return { isNew: true, activeChildren: Math.min(open, children), queuePosition: Math.max(0, open - children + 1) };
}

/** Starts a run when a slot is free; returns the waiting messages. Undefined when another process holds the claim, or the run has ended. */
export const beginRun = operation('subagents.begin', async (tx, { claim, runId, atMs }: RunBegin): Promise<readonly SteerRow[] | undefined> => {
  if (!(await holdsWork(tx, claim))) return undefined;
  return (await markRunning(tx, { id: runId, atMs })) ? readSteers(tx, runId) : undefined;
});
