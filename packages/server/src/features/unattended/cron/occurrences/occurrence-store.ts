import type { CronDeliveryState, CronRunState, CronTrigger, CronWorkKind, DeliveryState } from '@gatehouse/contract';
import { operation, query, type Tx } from '../../../../kernel/db/operation.ts';
import { ofDeadBoot } from '../../../../kernel/owners.ts';
import { parseJson } from '../../../../kernel/json.ts';
import { endBackfill, keptPerAgent } from './backfill-store.ts';
import type { LateRun } from './finish.ts';
import { readSends } from './sends.ts';
import { type JobRow, lockJob } from '../store.ts';

/** One occurrence: a started or skipped run at one time of one job. */
export interface OccurrenceRow {
  /** `ce_<uuid>` */
  readonly executionId: string;
  readonly jobId: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly scheduledForMs: number;
  /** Empty for a scheduled occurrence, unique per time; the execution id for a manual one. */
  readonly triggerClass: string;
  readonly trigger: CronTrigger;
  readonly workKind: CronWorkKind;
  readonly bootId: string;
  readonly status: CronRunState;
  readonly deliveryStatus: CronDeliveryState;
  readonly startedAtMs: number;
  readonly terminalAtMs: number | null;
  readonly errorKind: string | null;
  readonly reason: string | null;
  readonly countersJson: string | null;
  /** The provider's error message, shown to owners only. */
  readonly cause: string | null;
  readonly effectsRefused: number;
}

const storedColumns = [
  'executionId',
  'jobId',
  'agentId',
  'principalId',
  'scheduledForMs',
  'triggerClass',
  'workKind',
  'bootId',
  'status',
  'deliveryStatus',
  'startedAtMs',
  'terminalAtMs',
  'errorKind',
  'reason',
  'countersJson',
  'cause',
  'effectsRefused',
] as const;

export const occurrenceColumns = [...storedColumns, 'triggerKind as trigger'] as const;

/** An occurrence as read for the list of runs. */
export interface RunRow extends OccurrenceRow {
  /** Verdict of the wake gate. */
  readonly gateJson: string | null;
  readonly waitingJson: string | null;
  /** States of the parts that it sends to a chat; empty for every other delivery. */
  readonly sends: readonly DeliveryState[];
}

type StoredRun = Omit<RunRow, 'sends'>;

const insert = query<OccurrenceRow>(({ db, each, p }) =>
  db
    .insertInto('cronOccurrence')
    .values({
      ...each(storedColumns),
      triggerKind: p('trigger'),
    })
    .onConflict((conflict) => conflict.columns(['jobId', 'scheduledForMs', 'triggerClass']).doNothing()),
);

/** Claims the occurrence; of several concurrent callers exactly one gets true. */
export async function insertOccurrence(tx: Tx, row: OccurrenceRow): Promise<boolean> {
  return (await tx.run(insert, row)).changes > 0;
}

export interface JobAdvance {
  readonly id: string;
  /** Revision of the job when the claim was planned. */
  readonly revision: number;
  readonly state: 'scheduled' | 'one_shot_claimed';
  readonly nextRunAtMs: number | null;
  readonly dueAtMs: number | null;
  readonly highWaterMs: number;
  readonly activeExecutionId: string | null;
  readonly claimedForMs: number | null;
  readonly claimedAtMs: number | null;
}

const advance = query<JobAdvance>(({ db, sql, p }) =>
  db
    .updateTable('cronJob')
    .set({
      state: p('state'),
      nextRunAtMs: p('nextRunAtMs'),
      dueAtMs: p('dueAtMs'),
      highWaterMs: p('highWaterMs'),
      activeExecutionId: p('activeExecutionId'),
      claimedForMs: p('claimedForMs'),
      claimedAtMs: p('claimedAtMs'),
      revision: sql<number>`revision + 1`,
    })
    .where('id', '=', p('id'))
    .where('revision', '=', p('revision'))
    .where('state', '=', 'scheduled')
    .where(sql<boolean>`active_execution_id IS NULL`)
    .where('highWaterMs', '<', p('highWaterMs')),
);

/** Moves a job past a claimed time; returns false when the job has changed since the claim was planned. */
export async function advanceJob(tx: Tx, input: JobAdvance): Promise<boolean> {
  return (await tx.run(advance, input)).changes > 0;
}

const unclaim = query<{ id: string }>(({ db, p }) =>
  db.updateTable('cronJob').set({ state: 'scheduled', activeExecutionId: null, claimedForMs: null, claimedAtMs: null }).where('id', '=', p('id')),
);

/** Marks a job as not running; its time stays in the past. */
export async function releaseJob(tx: Tx, id: string): Promise<void> {
  await tx.run(unclaim, { id });
}

const countOpen = query<{ jobId: string }, { count: number }>(({ db, sql, p }) =>
  db
    .selectFrom('cronOccurrence')
    .select(sql<number>`count(*)`.as('count'))
    .where('jobId', '=', p('jobId'))
    .where(sql<boolean>`terminal_at_ms IS NULL`),
);

export async function countOpenRuns(tx: Tx, jobId: string): Promise<number> {
  return (await tx.get(countOpen, { jobId }))?.count ?? 0;
}

const byExecution = query<{ executionId: string }, OccurrenceRow>(({ db, p }) =>
  db.selectFrom('cronOccurrence').select(occurrenceColumns).where('executionId', '=', p('executionId')),
);

/** Returns an occurrence; undefined when it was pruned or its ledger was reset. */
export const readOccurrence = (tx: Tx, executionId: string): Promise<OccurrenceRow | undefined> => tx.get(byExecution, { executionId });

const unendedForUpdate = query<{ executionId: string }, { executionId: string }>(({ db, sql, p }) =>
  db
    .selectFrom('cronOccurrence')
    .select('executionId')
    .where('executionId', '=', p('executionId'))
    .where(sql<boolean>`terminal_at_ms IS NULL`)
    .forUpdate(),
);

/** Returns whether an occurrence has not ended, and keeps others from ending it. Part of `finishOccurrence`. */
export async function holdsOccurrence(tx: Tx, executionId: string): Promise<boolean> {
  return (await tx.get(unendedForUpdate, { executionId })) !== undefined;
}

/** Terminal state of an occurrence. */
export interface RunEnd {
  readonly executionId: string;
  readonly status: Exclude<CronRunState, 'started'>;
  readonly deliveryStatus: CronDeliveryState;
  readonly errorKind: string | null;
  /** Truncated to 1,000 characters. */
  readonly reason: string | null;
  readonly countersJson: string | null;
  readonly cause: string | null;
  readonly effectsRefused: number;
  readonly atMs: number;
}

const end = query<RunEnd>(({ db, sql, p }) =>
  db
    .updateTable('cronOccurrence')
    .set({
      status: p('status'),
      deliveryStatus: p('deliveryStatus'),
      terminalAtMs: p('atMs'),
      errorKind: p('errorKind'),
      reason: p('reason'),
      countersJson: p('countersJson'),
      cause: p('cause'),
      effectsRefused: p('effectsRefused'),
    })
    .where('executionId', '=', p('executionId'))
    .where(sql<boolean>`terminal_at_ms IS NULL`),
);

const prune = query<{ agentId: string; offset: number }>(({ db, sql, p }) =>
  db
    .deleteFrom('cronOccurrence')
    .where('agentId', '=', p('agentId'))
    .where(sql<boolean>`terminal_at_ms IS NOT NULL`)
    .where(
      'seq',
      '<=',
      sql<number>`(SELECT seq FROM cron_occurrence WHERE agent_id = ${p('agentId')} ORDER BY seq DESC LIMIT 1 OFFSET ${p('offset')})`,
    ),
);

interface Release {
  readonly id: string;
  readonly executionId: string;
  readonly state: JobRow['state'];
  readonly pauseReason: JobRow['pauseReason'];
  readonly errors: number;
  readonly activeExecutionId: string | null;
  readonly endedAtMs: number | null;
}

const release = query<Release>(({ db, sql, p }) =>
  db
    .updateTable('cronJob')
    .set({
      state: p('state'),
      pauseReason: p('pauseReason'),
      errors: p('errors'),
      activeExecutionId: p('activeExecutionId'),
      endedAtMs: p('endedAtMs'),
      revision: sql<number>`revision + 1`,
    })
    .where('id', '=', p('id'))
    .where('activeExecutionId', '=', p('executionId')),
);

/** Outcome of a run with respect to its providers; only scheduled occurrences count. */
export type DependencyOutcome = 'success' | 'dependency_error' | 'neutral';

export interface Ended {
  readonly row: OccurrenceRow;
  /** Whether this end paused the job. */
  readonly paused: boolean;
}

/**
 * Ends an occurrence and releases its job: updates the breaker, and finishes a one-shot job. Returns undefined when it had already
 * ended, so that nothing is announced twice. Part of `finishOccurrence`.
 */
export async function endOccurrence(
  tx: Tx,
  input: RunEnd & { readonly dependency: DependencyOutcome; readonly defaultMaxErrors: number },
): Promise<Ended | undefined> {
  const { dependency, defaultMaxErrors, ...runEnd } = input;
  if ((await tx.run(end, runEnd)).changes === 0) return undefined;
  const row = await readOccurrence(tx, input.executionId);
  if (row === undefined) return undefined;
  await tx.run(prune, { agentId: row.agentId, offset: keptPerAgent });
  await endBackfill(tx, row);
  const job = row.triggerClass === '' ? await lockJob(tx, row.jobId) : undefined;
  if (job === undefined || job.activeExecutionId !== row.executionId) return { row, paused: false };
  if (job.state === 'one_shot_claimed') {
    await tx.run(release, {
      ...settled(job, row),
      state: 'one_shot_terminal',
      errors: job.errors,
      activeExecutionId: row.executionId,
      endedAtMs: input.atMs,
    });
    return { row, paused: false };
  }
  const errors = dependency === 'success' ? 0 : dependency === 'dependency_error' ? job.errors + 1 : job.errors;
  const limit = maxErrorsOf(job.policiesJson) ?? defaultMaxErrors;
  const paused = dependency === 'dependency_error' && limit > 0 && errors >= limit && job.state === 'scheduled';
  await tx.run(release, { ...settled(job, row), ...(paused && { state: 'paused', pauseReason: 'dependency_errors' }), errors });
  return { row, paused };
}

const settled = ({ id, state, pauseReason }: JobRow, { executionId }: OccurrenceRow) => ({
  id,
  executionId,
  state,
  pauseReason,
  activeExecutionId: null,
  endedAtMs: null,
});

/** Returns undefined for a damaged row, so that runs can still end. Avoids the full schema, to keep zod out of the storage threads. */
function maxErrorsOf(policiesJson: string): number | undefined {
  let policies: unknown;
  try {
    policies = parseJson(policiesJson);
  } catch {
    return undefined;
  }
  if (typeof policies !== 'object' || policies === null || !('maxConsecutiveDependencyErrors' in policies)) return undefined;
  const { maxConsecutiveDependencyErrors: limit } = policies;
  return typeof limit === 'number' ? limit : undefined;
}

const ofJob = query<{ jobId: string; limit: number }, StoredRun>(({ db, sql, p }) =>
  db
    .selectFrom('cronOccurrence')
    .select([
      ...occurrenceColumns,
      'gateJson',
      sql<string | null>`(select waiting_json from work_item where kind = 'cron' and work_key = execution_id and state = 'accepted')`.as(
        'waitingJson',
      ),
    ])
    .where('jobId', '=', p('jobId'))
    .orderBy('seq', 'desc')
    .limit(p('limit')),
);

async function withSends(tx: Tx, runs: readonly StoredRun[]): Promise<RunRow[]> {
  const sends = await readSends(
    tx,
    runs.map(({ executionId }) => executionId),
  );
  return runs.map((run) => ({ ...run, sends: sends.get(run.executionId) ?? [] }));
}

export const listRuns = operation('cron.runs', async (tx, input: { readonly jobId: string; readonly limit: number }) =>
  withSends(tx, await tx.all(ofJob, input)),
);

/** Returns the newest run of each job that has one. */
export const lastRuns = operation('cron.lastRuns', async (tx, { jobIds }: { readonly jobIds: readonly string[] }): Promise<RunRow[]> => {
  const found: StoredRun[] = [];
  for (const jobId of jobIds) found.push(...(await tx.all(ofJob, { jobId, limit: 1 })));
  return withSends(tx, found);
});

export const findRun = operation('cron.findRun', async (tx, { executionId }: { readonly executionId: string }) => readOccurrence(tx, executionId));

const openOf = query<{ agentId: string }, { count: number }>(({ db, sql, p }) =>
  db
    .selectFrom('cronOccurrence')
    .select(sql<number>`count(*)`.as('count'))
    .where('agentId', '=', p('agentId'))
    .where(sql<boolean>`terminal_at_ms IS NULL`),
);

/** Counts the running occurrences of an agent. */
export async function countRunningOf(tx: Tx, agentId: string): Promise<number> {
  return (await tx.get(openOf, { agentId }))?.count ?? 0;
}

export const countRunning = operation('cron.countRunning', async (tx, { agentId }: { readonly agentId: string }) => countRunningOf(tx, agentId));

const open = query<{ limit: number }, OccurrenceRow>(({ db, sql, p }) =>
  db
    .selectFrom('cronOccurrence')
    .select(occurrenceColumns)
    .where(sql<boolean>`terminal_at_ms IS NULL`)
    .where(ofDeadBoot(sql, 'cronOccurrence.bootId'))
    .orderBy('jobId')
    .limit(p('limit')),
);

/** Returns the open occurrences that dead boots claimed. Part of `readUnfinished`. */
export const openOccurrences = (tx: Tx, limit: number): Promise<OccurrenceRow[]> => tx.all(open, { limit });

const setCatchUp = query<{ executionId: string }>(({ db, p }) =>
  db.updateTable('cronOccurrence').set({ triggerKind: 'catchup' }).where('executionId', '=', p('executionId')).where('triggerKind', '=', 'scheduled'),
);

/** Skips the times of a job that passed while its run waited. Part of `finishOccurrence`. */
export async function passOver(tx: Tx, executionId: string, { passed }: LateRun): Promise<void> {
  await tx.run(setCatchUp, { executionId });
  if (passed !== undefined && (await advanceJob(tx, passed.advance))) for (const row of passed.skipped) await insertOccurrence(tx, row);
}

const gateOf = query<{ executionId: string }, { gateJson: string | null }>(({ db, p }) =>
  db.selectFrom('cronOccurrence').select('gateJson').where('executionId', '=', p('executionId')),
);

const setGate = query<{ executionId: string; gateJson: string }>(({ db, p }) =>
  db
    .updateTable('cronOccurrence')
    .set({ gateJson: p('gateJson') })
    .where('executionId', '=', p('executionId'))
    .where('gateJson', 'is', null),
);

/** Stores the wake gate's verdict, so that a resumed run has the same message. Returns the one that holds: the first that was stored. */
export const keepGate = operation(
  'cron.keepGate',
  async (tx, { executionId, gateJson }: { readonly executionId: string; readonly gateJson: string }): Promise<string> => {
    await tx.run(setGate, { executionId, gateJson });
    return (await tx.get(gateOf, { executionId }))?.gateJson ?? gateJson;
  },
);

export const readGate = operation(
  'cron.gate',
  async (tx, input: { readonly executionId: string }): Promise<string | null> => (await tx.get(gateOf, input))?.gateJson ?? null,
);

export const cronOccurrenceOperations = [listRuns, lastRuns, findRun, countRunning, keepGate, readGate];
