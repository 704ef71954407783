import { acceptWork } from '../features/unattended/durable/store.ts';
import type { ClaimPlan, ManualPlan } from '../features/unattended/cron/occurrences/claim.ts';
import { advanceJob, countOpenRuns, insertOccurrence, letGo } from '../features/unattended/cron/occurrences/occurrence-store.ts';
import { isBeingReset, refuseDuringReset } from '../features/unattended/cron/jobs/reset-guard.ts';
import { AppError } from '../kernel/app-error.ts';
import { operation } from '../kernel/db/operation.ts';

/**
 * Takes one time of a job for this daemon, in one commit: its record, the work that it is, the job's next time, and a record
 * for each time that was missed. False when somebody else has it, or the job changed since the claim was planned.
 */
export const claimOccurrence = operation('cron.claim', async (tx, { occurrence, work, advance, skipped }: ClaimPlan): Promise<boolean> => {
  if ((await isBeingReset(tx, occurrence.agentId)) || !(await advanceJob(tx, advance))) return false;
  for (const row of skipped) await insertOccurrence(tx, row);
  if (!(await insertOccurrence(tx, occurrence))) {
    // The ledger knows the time already: the job goes on without it.
    await letGo(tx, advance.id);
    return false;
  }
  await acceptWork(tx, work);
  return true;
});

/** An occurrence made by hand; its job is left as it is. */
export const claimManually = operation('cron.claimManually', async (tx, { occurrence, work, maxOpen }: ManualPlan): Promise<void> => {
  await refuseDuringReset(tx, occurrence.agentId);
  const open = await countOpenRuns(tx, occurrence.jobId);
  if (open >= maxOpen) throw new AppError('precondition_failed', `The job runs ${open} times at the moment, which is the limit`);
  await insertOccurrence(tx, occurrence);
  await acceptWork(tx, work);
});
