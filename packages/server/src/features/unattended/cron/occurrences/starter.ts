import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import type { Log } from '../../../../kernel/log.ts';
import { type Job, parseJob } from '../jobs/job.ts';
import type { States } from '../jobs/states.ts';
import type { JobRow } from '../store.ts';
import { type BackfillPlan, type ClaimPlan, type ManualPlan, planBackfill, planClaim, planManual } from './claim.ts';
import type { createRunner } from './runner.ts';

export interface StarterDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly bootId: string;
  readonly staggerWindowMs: number;
  readonly states: Pick<States, 'fail'>;
  /** Returns the minimum interval of a job. */
  readonly leastOf: (row: JobRow) => number;
  readonly begin: ReturnType<typeof createRunner>['begin'];
  readonly operations: {
    readonly claim: Operation<ClaimPlan, boolean>;
    readonly claimManually: Operation<ManualPlan, void>;
    readonly claimBackfill: Operation<BackfillPlan, boolean>;
  };
}

/** Starts the occurrences of jobs: those that are due, and those on request. */
export function createStarter({ db, clock, log, bootId, staggerWindowMs, states, leastOf, begin, operations }: StarterDeps) {
  /** Monotonic, so that changes of the system clock do not affect it. */
  const bootedAt = clock.monotonic();

  /** Plans the claim of a job that is due at a time. */
  function planDue(job: Job, nowMs: number): ClaimPlan {
    const bootedAtMs = clock.now() - (clock.monotonic() - bootedAt);
    return planClaim(job, { bootId, nowMs, bootedAtMs, leastMs: leastOf(job.row), staggerWindowMs });
  }

  return {
    planDue,
    /** Returns the execution id; undefined when the job changed meanwhile, is claimed already, or is damaged. */
    async beginDue(row: JobRow): Promise<string | undefined> {
      const job = parseJob(row);
      if (job === undefined) {
        log.error({ jobId: row.id, agentId: row.agentId }, 'A stored job is damaged; the schedule of its agent is stopped');
        states.fail(row.agentId, { code: 'snapshot_failed', errorKind: 'corrupt' });
        return undefined;
      }
      const plan = planDue(job, clock.now());
      const isClaimed = await begin(plan, (work) => db.write(operations.claim, { ...plan, work }));
      return isClaimed ? plan.occurrence.executionId : undefined;
    },
    /** Starts a queued time of a job; returns false when it must not run (again). */
    async beginBackfill(row: JobRow, scheduledForMs: number): Promise<boolean> {
      const job = parseJob(row);
      if (job === undefined) return false;
      const plan = planBackfill(job, scheduledForMs, { bootId, nowMs: clock.now() });
      return begin(plan, (work) => db.write(operations.claimBackfill, { ...plan, work }));
    },
    async beginManually(job: Job): Promise<string> {
      const plan = planManual(job, { bootId, nowMs: clock.now() });
      await begin(plan, async (work) => {
        await db.write(operations.claimManually, { ...plan, work });
        return true;
      });
      return plan.occurrence.executionId;
    },
  };
}
