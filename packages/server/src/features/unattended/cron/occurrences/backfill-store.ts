import { AppError } from '../../../../kernel/app-error.ts';
import { appendAudit, type AuditRow } from '../../../../kernel/db/audit.ts';
import { operation, query, type Tx } from '../../../../kernel/db/operation.ts';
import { refuseDuringReset } from '../jobs/reset-guard.ts';
import { lockJob } from '../store.ts';
import type { OccurrenceRow } from './occurrence-store.ts';

/** `triggerClass` of a run on request of a time whose scheduled occurrence was skipped; it is unique for each time. */
const backfillClass = 'backfill';
/** Number of records kept per agent; running ones are never pruned. What is older may have run. */
export const keptPerAgent = 10_000;
const maxListed = 10_000;

interface Kept {
  readonly scheduledForMs: number;
  readonly triggerClass: string;
  readonly status: OccurrenceRow['status'];
  readonly errorKind: string | null;
}

const kept = query<{ jobId: string; fromMs: number; toMs: number }, Kept>(({ db, p }) =>
  db
    .selectFrom('cronOccurrence')
    .select(['scheduledForMs', 'triggerClass', 'status', 'errorKind'])
    .where('jobId', '=', p('jobId'))
    .where('scheduledForMs', '>=', p('fromMs'))
    .where('scheduledForMs', '<=', p('toMs'))
    .where('triggerClass', 'in', ['', backfillClass]),
);

/** Skipped by a wake gate, or covered by a later run, has no error: then there was nothing more to do. */
const hasRun = ({ triggerClass, status, errorKind }: Kept) => triggerClass !== '' || status !== 'skipped' || errorKind === null;

const queued = query<{ jobId: string }, { scheduledForMs: number }>(({ db, p }) =>
  db.selectFrom('cronBackfill').select('scheduledForMs').where('jobId', '=', p('jobId')),
);

const oldestKept = query<{ agentId: string; offset: number }, { startedAtMs: number }>(({ db, p }) =>
  db.selectFrom('cronOccurrence').select('startedAtMs').where('agentId', '=', p('agentId')).orderBy('seq', 'desc').limit(1).offset(p('offset')),
);

interface Times {
  readonly jobId: string;
  readonly agentId: string;
  /** Ascending. */
  readonly timesMs: readonly number[];
}

/** Returns those of the times that have not run and are not queued. */
async function openTimes(tx: Tx, { jobId, agentId, timesMs }: Times): Promise<number[]> {
  const [fromMs, toMs] = [timesMs[0], timesMs.at(-1)];
  if (fromMs === undefined || toMs === undefined) return [];
  const knownSinceMs = (await tx.get(oldestKept, { agentId, offset: keptPerAgent - 1 }))?.startedAtMs ?? -1;
  const taken = new Set((await tx.all(queued, { jobId })).map(({ scheduledForMs }) => scheduledForMs));
  for (const one of await tx.all(kept, { jobId, fromMs, toMs })) if (hasRun(one)) taken.add(one.scheduledForMs);
  return timesMs.filter((timeMs) => timeMs > knownSinceMs && !taken.has(timeMs));
}

const missed = query<{ jobId: string; limit: number }, { scheduledForMs: number }>(({ db, p }) =>
  db
    .selectFrom('cronOccurrence')
    .select('scheduledForMs')
    .where('jobId', '=', p('jobId'))
    .where('triggerClass', '=', '')
    .where('status', '=', 'skipped')
    .where('errorKind', 'in', ['missed', 'precondition'])
    .orderBy('scheduledForMs')
    .limit(p('limit')),
);

/** Returns those of the times that can be run on request; of the recorded missed ones when `timesMs` is absent. */
export const listBackfill = operation(
  'cron.listBackfill',
  async (tx, { timesMs, ...job }: Omit<Times, 'timesMs'> & { readonly timesMs?: readonly number[] }): Promise<number[]> => {
    const times = timesMs ?? (await tx.all(missed, { jobId: job.jobId, limit: maxListed })).map(({ scheduledForMs }) => scheduledForMs);
    return openTimes(tx, { ...job, timesMs: times });
  },
);

const enqueue = query<{ jobId: string; scheduledForMs: number; agentId: string; requestedAtMs: number }>(({ db, each }) =>
  db
    .insertInto('cronBackfill')
    .values({ ...each(['jobId', 'scheduledForMs', 'agentId', 'requestedAtMs']), executionId: null })
    .onConflict((conflict) => conflict.doNothing()),
);

export interface BackfillRequest extends Times {
  /** Maximum number of queued times of the job. */
  readonly maxQueued: number;
  readonly atMs: number;
  readonly audit: AuditRow;
}

/** Queues times of a job; returns those that have neither run nor been queued meanwhile. Throws `precondition_failed` when it has too many. */
export const requestBackfill = operation(
  'cron.requestBackfill',
  async (tx, { maxQueued, atMs, audit, ...times }: BackfillRequest): Promise<number[]> => {
    const { jobId, agentId } = times;
    await refuseDuringReset(tx, agentId);
    if ((await lockJob(tx, jobId)) === undefined) throw new AppError('not_found', 'Job not found', { param: 'jobName' });
    const open = await openTimes(tx, times);
    const { length: before } = await tx.all(queued, { jobId });
    if (before + open.length > maxQueued)
      throw new AppError('precondition_failed', `The job already has ${before} queued times; at most ${maxQueued} can be queued`);
    for (const scheduledForMs of open) await tx.run(enqueue, { jobId, scheduledForMs, agentId, requestedAtMs: atMs });
    if (open.length > 0) await appendAudit(tx, audit);
    return open;
  },
);

const running = query<Record<string, never>, { jobId: string }>(({ db, sql }) =>
  db
    .selectFrom('cronBackfill')
    .select('jobId')
    .where('executionId', 'is not', null)
    .where(
      sql<boolean>`exists (select 1 from cron_occurrence where cron_occurrence.execution_id = cron_backfill.execution_id and terminal_at_ms is null)`,
    ),
);

export interface NextBackfills {
  readonly next: readonly { readonly jobId: string; readonly scheduledForMs: number }[];
  /** Whether anything is queued or runs. */
  readonly isOpen: boolean;
}

/** Returns the oldest queued time of each job of which none runs, as far as `atOnce` jobs may run together. */
export const nextBackfills = operation(
  'cron.nextBackfills',
  async (tx, { except, atOnce }: { readonly except: readonly string[]; readonly atOnce: number }): Promise<NextBackfills> => {
    const busy = (await tx.all(running, {})).map(({ jobId }) => jobId);
    const next = await tx.build<{ jobId: string; scheduledForMs: number }>((db, sql) => {
      let rows = db.selectFrom('cronBackfill').select(['jobId', sql<number>`min(scheduled_for_ms)`.as('scheduledForMs')]);
      rows = rows.where('executionId', 'is', null);
      if (except.length > 0) rows = rows.where('agentId', 'not in', [...except]);
      if (busy.length > 0) rows = rows.where('jobId', 'not in', busy);
      return rows
        .groupBy('jobId')
        .orderBy(sql`min(requested_at_ms)`)
        .orderBy('jobId')
        .limit(Math.max(0, atOnce - busy.length));
    });
    const any = await tx.build<{ jobId: string }>((db) => db.selectFrom('cronBackfill').select('jobId').limit(1));
    return { next, isOpen: any.length > 0 };
  },
);

const runningOf = query<{ jobId: string }, { executionId: string | null }>(({ db, sql, p }) =>
  db
    .selectFrom('cronBackfill')
    .select('executionId')
    .where('jobId', '=', p('jobId'))
    .where(
      sql<boolean>`exists (select 1 from cron_occurrence where cron_occurrence.execution_id = cron_backfill.execution_id and terminal_at_ms is null)`,
    ),
);

const take = query<{ jobId: string; scheduledForMs: number; executionId: string }>(({ db, p }) =>
  db
    .updateTable('cronBackfill')
    .set({ executionId: p('executionId') })
    .where('jobId', '=', p('jobId'))
    .where('scheduledForMs', '=', p('scheduledForMs'))
    .where('executionId', 'is', null),
);

const dropTime = query<{ jobId: string; scheduledForMs: number }>(({ db, p }) =>
  db.deleteFrom('cronBackfill').where('jobId', '=', p('jobId')).where('scheduledForMs', '=', p('scheduledForMs')),
);

/**
 * Takes a queued time for an execution and returns the `triggerClass` of its record; undefined when another process has it, another
 * time of the job runs, or it ran meanwhile. Part of `claimBackfill`.
 */
export async function takeBackfill(
  tx: Tx,
  { jobId, scheduledForMs, executionId }: Pick<OccurrenceRow, 'jobId' | 'scheduledForMs' | 'executionId'>,
): Promise<string | undefined> {
  if ((await lockJob(tx, jobId)) === undefined || (await tx.get(runningOf, { jobId })) !== undefined) return undefined;
  const records = await tx.all(kept, { jobId, fromMs: scheduledForMs, toMs: scheduledForMs });
  if (records.some(hasRun)) {
    await tx.run(dropTime, { jobId, scheduledForMs });
    return undefined;
  }
  if ((await tx.run(take, { jobId, scheduledForMs, executionId })).changes === 0) return undefined;
  // As the scheduled occurrence where there is none, so that the scheduler does not run the time either.
  return records.length === 0 ? '' : backfillClass;
}

const dropEnded = query<{ executionId: string }>(({ db, p }) => db.deleteFrom('cronBackfill').where('executionId', '=', p('executionId')));
const dropQueued = query<{ jobId: string }>(({ db, p }) => db.deleteFrom('cronBackfill').where('jobId', '=', p('jobId')));

/** Removes the queued times of a job. */
export async function dropBackfill(tx: Tx, jobId: string): Promise<void> {
  await tx.run(dropQueued, { jobId });
}

/** Removes an ended run from the queue, with the rest of its job when a budget is exhausted. Part of `endOccurrence`. */
export async function endBackfill(tx: Tx, { executionId, jobId, trigger, errorKind }: OccurrenceRow): Promise<void> {
  if (trigger !== 'catchup') return;
  const { changes } = await tx.run(dropEnded, { executionId });
  if (changes > 0 && errorKind === 'budget') await dropBackfill(tx, jobId);
}

export const cronBackfillOperations = [listBackfill, requestBackfill, nextBackfills];
