import { acceptWork } from '../features/unattended/durable/store.ts';
import { takeBackfill } from '../features/unattended/cron/occurrences/backfill-store.ts';
import type { BackfillPlan, ClaimPlan, ManualPlan } from '../features/unattended/cron/occurrences/claim.ts';
import { advanceJob, countOpenRuns, insertOccurrence, releaseJob } from '../features/unattended/cron/occurrences/occurrence-store.ts';
import { isBeingReset, refuseDuringReset } from '../features/unattended/cron/jobs/reset-guard.ts';
import { AppError } from '../kernel/app-error.ts';
import { operation } from '../kernel/db/operation.ts';

/**
 * Claims one time of a job for this daemon, in one commit: its record, its work, the job's next time, and a record
 * for each missed time. Returns false when another process has it, or the job changed since the claim was planned.
 */
export const claimOccurrence = operation('cron.claim', async (tx, { occurrence, work, advance, skipped }: ClaimPlan): Promise<boolean> => {
  if ((await isBeingReset(tx, occurrence.agentId)) || !(await advanceJob(tx, advance))) return false;
  for (const row of skipped) await insertOccurrence(tx, row);
  if (!(await insertOccurrence(tx, occurrence))) {
    // The ledger already knows the time: the job continues without it.
    await releaseJob(tx, advance.id);
    return false;
  }
  await acceptWork(tx, work);
  return true;
});

/** Creates an occurrence on request; its job is left unchanged. */
export const claimManually = operation('cron.claimManually', async (tx, { occurrence, work, maxOpen }: ManualPlan): Promise<void> => {
  await refuseDuringReset(tx, occurrence.agentId);
  const open = await countOpenRuns(tx, occurrence.jobId);
  if (open >= maxOpen) throw new AppError('precondition_failed', `The job runs ${open} times at the moment, which is the limit`);
  await insertOccurrence(tx, occurrence);
  await acceptWork(tx, work);
});

/** Starts a queued time of a job, in one commit; returns false when another process has it, or it must not run (again). */
export const claimBackfill = operation('cron.claimBackfill', async (tx, { occurrence, work }: BackfillPlan): Promise<boolean> => {
  if (await isBeingReset(tx, occurrence.agentId)) return false;
  const triggerClass = await takeBackfill(tx, occurrence);
  if (triggerClass === undefined || !(await insertOccurrence(tx, { ...occurrence, triggerClass }))) return false;
  await acceptWork(tx, work);
  return true;
});
