import { AppError } from '../../../../kernel/app-error.ts';
import { isForOwners } from '../../../../kernel/call-context.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import { unfenced } from '../../../../runtime/cut-fenced.ts';
import { holdsTaint } from '../../../../runtime/fence.ts';
import type { EndpointsApi } from '../../../channels/delivery/api.ts';
import type { DurableWork, NewWork, WorkHandler, WorkItem, WorkOutcome } from '../../durable/api.ts';
import type { Job } from '../jobs/job.ts';
import { findJob } from '../store.ts';
import { type AnnounceDeps, announceEnd, announceStart } from './announce.ts';
import type { ClaimPlan } from './claim.ts';
import { executeOccurrence, type ExecuteDeps, type Execution } from './execute.ts';
import { endOfLost, eventOf, type Finish, type FinishDeps, finishOf, type LateRun, type RunResult } from './finish.ts';
import { lateRunOf } from './late-run.ts';
import { findRun, type OccurrenceRow } from './occurrence-store.ts';
import { CronWork } from './work.ts';

export interface RunnerDeps extends AnnounceDeps {
  readonly db: Db;
  readonly defaultMaxErrors: () => number;
  /** Plans the claim of a job that is due at a time. */
  readonly planDue: (job: Job, nowMs: number) => ClaimPlan;
  readonly fence: FinishDeps['fence'];
  readonly endpoints: Pick<EndpointsApi, 'address'>;
  readonly durable: Pick<DurableWork, 'begin'>;
  readonly execute: ExecuteDeps;
}

/** Runs occurrences as durable work, which begins with their claim, and ends each exactly once. */
export function createRunner(deps: RunnerDeps) {
  const { db, clock } = deps;
  /** Occurrences that start while they are claimed. */
  const claiming = new Map<string, { readonly isStored: Promise<boolean>; readonly refused: AbortSignal }>();

  /** Claims an occurrence through `claim` and starts its work, at once when a slot is free; returns whether the claim was stored. */
  async function begin({ occurrence, work }: Pick<ClaimPlan, 'occurrence' | 'work'>, claim: (work: NewWork) => Promise<boolean>): Promise<boolean> {
    const { executionId } = occurrence;
    const claimed = async (given: NewWork): Promise<boolean> => {
      const isStored = await claim(given);
      if (isStored) announceStart(deps, occurrence);
      return isStored;
    };
    try {
      return await deps.durable.begin(work, (given) => {
        const storing = claimed(given);
        // The caller of `begin` gets the failure; the run may be waiting for its conversation.
        const refused = new AbortController();
        const isStored = storing
          .catch(() => false)
          .then((stored) => {
            if (!stored) refused.abort(new AppError('conflict', 'The occurrence was not claimed'));
            return stored;
          });
        claiming.set(executionId, { isStored, refused: refused.signal });
        return storing;
      });
    } finally {
      claiming.delete(executionId);
    }
  }

  const handler: WorkHandler = async (item, signal) => {
    const work = CronWork().parse(item.payload);
    const claim = claiming.get(work.executionId);
    if (claim === undefined) {
      const row = await db.read(findRun, { executionId: work.executionId });
      // The ledger was reset or the end is already stored.
      if (row === undefined || row.terminalAtMs !== null) return { state: 'done' };
    }
    const beganMs = clock.now();
    // A run that waited for an approval had started on time, so times that came due meanwhile still run after it.
    const isLate = item.waiting !== undefined && item.waiting.hasAsked !== true;
    const row = isLate ? await db.read(findJob, { id: work.jobId }) : undefined;
    const planEnd = (result: RunResult) => planOf(work, result, row && lateRunOf(work, { row, beganMs }, deps.planDue));
    try {
      if (claim === undefined) return await execute({ work, item, signal, claimed: Promise.resolve(true), planEnd });
      return await execute({ work, item, signal: AbortSignal.any([signal, claim.refused]), claimed: claim.isStored, planEnd });
    } catch (error) {
      // Without a claim nothing of it was stored, and the caller of `begin` knows why.
      if (claim !== undefined && !(await claim.isStored)) return 'settled';
      throw error;
    }
  };

  async function execute(execution: Execution): Promise<WorkOutcome> {
    const executed = await executeOccurrence(deps.execute, execution);
    if (!(await execution.claimed)) return 'settled';
    if (executed === 'lost' || executed === 'waits') return 'settled';
    if ('wait' in executed) return executed;
    if ('stored' in executed) announceEnd(deps, executed.stored);
    else await finish(execution.planEnd(executed.result), execution.item);
    return 'ended';
  }

  /** Returns everything to store when an occurrence ends. */
  function planOf(work: CronWork, result: RunResult, late?: LateRun): Finish {
    const { payload } = work;
    const nowMs = clock.now();
    const forOwner = isForOwners(deps.execute.identityOf(work.tokenId, work.principalId));
    const plan = finishOf(work, result, {
      defaultMaxErrors: deps.defaultMaxErrors(),
      nowMs,
      fence: deps.fence,
      forOwner,
      address: deps.endpoints.address,
    });
    if (payload.kind !== 'heartbeat_event' || result.status !== 'dispatched') return { ...plan, ...(late !== undefined && { late }) };
    const event = { text: unfenced(payload.text), clean: !holdsTaint(payload.text), atMs: nowMs, urgent: payload.wakeMode === 'now' };
    return { ...plan, ...(late !== undefined && { late }), systemEvent: eventOf(work, event) };
  }

  /** Stores and announces the end of an occurrence that did not end with a turn; without a claim when its work is over. */
  async function finish(plan: Finish, item?: WorkItem): Promise<void> {
    const claim = item && { id: item.id, owner: item.owner, fence: item.fence };
    const done = await db.write(deps.execute.finish, { ...plan, ...(claim !== undefined && { claim }) });
    announceEnd(deps, { plan, done });
  }

  return {
    begin,
    handler,
    /** Ends the occurrence of work that was given up; how far the last attempt got is unknown. */
    async gaveUp(item: WorkItem, errorKind: string, cause: string): Promise<void> {
      await finish(planOf(CronWork().parse(item.payload), resultOfGivenUp(errorKind, cause)), item);
    },
    /** Ends an occurrence that was left without an end although its work is over. */
    async reconcile(row: OccurrenceRow): Promise<void> {
      await finish(endOfLost(row, { defaultMaxErrors: deps.defaultMaxErrors(), nowMs: clock.now() }));
    },
  };
}

function resultOfGivenUp(errorKind: string, cause: string): RunResult {
  if (errorKind === 'killed') return { status: 'aborted', errorKind: 'aborted', reason: 'It was stopped while waiting.' };
  if (errorKind === 'deleted') return { status: 'aborted', errorKind: 'aborted', reason: 'Its conversation was deleted while it was waiting.' };
  return { status: 'unknown', errorKind, reason: 'It was retried too often without finishing.', cause, givenUp: true };
}
