import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Operation } from '../../../kernel/db/operation.ts';
import type { Log } from '../../../kernel/log.ts';
import { parseJob } from './jobs/job.ts';
import { openIntents } from './jobs/reset-store.ts';
import { jobsAfter } from './jobs/search-store.ts';
import type { States } from './jobs/states.ts';
import type { OccurrenceRow } from './occurrences/occurrence-store.ts';
import { realign } from './schedule/realign.ts';

export interface RecoverDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly states: States;
  readonly staggerWindowMs: number;
  readonly unfinished: Operation<{ readonly limit: number }, OccurrenceRow[]>;
  /** Finishes an interrupted reset. */
  readonly rollForward: (agentId: string) => Promise<void>;
  /** Ends an occurrence whose work is over. */
  readonly reconcile: (row: OccurrenceRow) => Promise<void>;
  /** Restores the built-in jobs of all agents. */
  readonly restoreBuiltIns: () => Promise<void>;
}

/** Page size of the strict check, small enough not to block other reads. */
const pageOfJobs = 100;
const maxUnfinished = 10_000;

type LeftDeps = Pick<RecoverDeps, 'db' | 'log' | 'states' | 'unfinished' | 'rollForward' | 'reconcile'>;

async function recoverJobs({ log, states }: LeftDeps, agentId: string, work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    log.error({ err: error, agentId }, 'Failed to recover the jobs of an agent after a restart; its schedule is stopped');
    states.fail(agentId, { code: 'initialization_failed', errorKind: 'internal' });
  }
}

async function finishResets(deps: LeftDeps): Promise<void> {
  const { db, log, states } = deps;
  for (const { agentId, isValid } of await db.read(openIntents, {})) {
    if (!isValid) {
      states.fail(agentId, { code: 'intent_invalid', errorKind: 'corrupt' });
      continue;
    }
    log.warn({ agentId }, 'Resuming interrupted schedule reset');
    await recoverJobs(deps, agentId, () => deps.rollForward(agentId));
  }
}

async function endOccurrences(deps: LeftDeps): Promise<void> {
  for (const row of await deps.db.read(deps.unfinished, { limit: maxUnfinished })) await recoverJobs(deps, row.agentId, () => deps.reconcile(row));
}

/** Finishes what dead daemons left of resets and runs. */
export async function recoverLeft(deps: LeftDeps): Promise<void> {
  await finishResets(deps);
  await endOccurrences(deps);
}

/** Restores the schedules after an earlier process. Damage and failures stop only the schedule of their agent. */
export async function recoverSchedules(deps: RecoverDeps): Promise<void> {
  const { db, clock, log, states, staggerWindowMs } = deps;
  await finishResets(deps);
  for (let rows = await db.read(jobsAfter, { afterId: '', limit: pageOfJobs }); rows.length > 0;) {
    for (const row of rows) if (parseJob(row) === undefined) states.fail(row.agentId, { code: 'initialization_failed', errorKind: 'corrupt' });
    const last = rows.at(-1);
    rows = last === undefined || rows.length < pageOfJobs ? [] : await db.read(jobsAfter, { afterId: last.id, limit: pageOfJobs });
  }
  await endOccurrences(deps);
  await deps.restoreBuiltIns();
  await realign({ db, clock, log, staggerWindowMs });
  states.initialized();
}
