import { type Job, parseJob } from '../jobs/job.ts';
import type { JobRow } from '../store.ts';
import { type ClaimPlan, lateMs } from './claim.ts';
import type { LateRun } from './finish.ts';
import type { OccurrenceRow } from './occurrence-store.ts';
import type { CronWork } from './work.ts';

/** Returns the late-run data of a run that waited: it is a catch-up and covers every time of its job that passed meanwhile. */
export function lateRunOf(
  { executionId, scheduledForMs }: CronWork,
  { row, beganMs }: { readonly row: JobRow; readonly beganMs: number },
  planDue: (job: Job, nowMs: number) => ClaimPlan,
): LateRun | undefined {
  if (beganMs - scheduledForMs <= lateMs) return undefined;
  const job = row.activeExecutionId === executionId && row.state === 'scheduled' ? parseJob(row) : undefined;
  if (job === undefined || row.dueAtMs === null || row.dueAtMs > beganMs) return {};
  const { occurrence, advance, skipped } = planDue(job, beganMs);
  const reason = `Run ${executionId} was waiting and covers this time.`;
  const last: OccurrenceRow = { ...occurrence, status: 'skipped', deliveryStatus: 'not_requested', terminalAtMs: beganMs, reason };
  return {
    passed: {
      // The end of the run has already raised the revision by one.
      advance: { ...advance, revision: row.revision + 1, activeExecutionId: null, claimedForMs: null, claimedAtMs: null },
      skipped: [...skipped, last].map((one) => ({ ...one, trigger: 'catchup', reason })),
    },
  };
}
