import { isForOwners } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import type { Log } from '../../../../kernel/log.ts';
import { unfenced } from '../../../../runtime/cut-fenced.ts';
import { holdsTaint } from '../../../../runtime/fence.ts';
import type { WorkHandler, WorkItem } from '../../durable/api.ts';
import type { HeartbeatApi } from '../../heartbeat/api.ts';
import type { InboxApi } from '../../inbox/api.ts';
import { type ClaimPlan, lateMs } from './claim.ts';
import { eventOf, type Finish, type FinishDeps, finishOf, type LateRun, type RunResult } from './finish.ts';
import { type Job, parseJob } from '../jobs/job.ts';
import { findJob, type JobRow } from '../store.ts';
import { executeOccurrence, type ExecuteDeps, storedResult, unknownResult } from './execute.ts';
import { findRun, type OccurrenceRow } from './occurrence-store.ts';
import { CronWork, rootRunId } from './work.ts';

/** Result of `finishOccurrence`. */
export interface Finished {
  readonly row: OccurrenceRow;
  readonly paused: boolean;
  readonly delivered: boolean;
  readonly created: boolean;
}

/** Result of `readUnfinished`: an unfinished occurrence and the outcome of its work, null when that was deleted. */
export interface Unfinished {
  readonly row: OccurrenceRow;
  readonly work: { readonly state: string; readonly payload: unknown; readonly result: unknown; readonly errorKind: string | null } | null;
}

export interface RunnerDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly bootId: string;
  readonly defaultMaxErrors: number;
  /** Plans the claim of a job that is due at a time. */
  readonly planDue: (job: Job, nowMs: number) => ClaimPlan;
  readonly fence: FinishDeps['fence'];
  readonly execute: ExecuteDeps;
  readonly finish: Operation<Finish, Finished | undefined>;
  readonly heartbeat: Pick<HeartbeatApi, 'wake' | 'noticeEvent'>;
  readonly inbox: Pick<InboxApi, 'announce'>;
  /** Announces that messages were stored. */
  readonly noticeMessages: () => void;
  /** Called when an execution has ended. */
  readonly ended: (executionId: string) => void;
}

/** Runs occurrences as durable work, and ends each exactly once. */
export function createRunner(deps: RunnerDeps) {
  const { db, bus, clock, log } = deps;

  const identityOf = ({ executionId, jobId, agentId, scheduledForMs, trigger, workKind, startedAtMs }: OccurrenceRow) => ({
    executionId,
    jobId,
    agentId,
    scheduledForMs,
    trigger,
    workKind,
    rootRunId: rootRunId(executionId),
    startedAtMs,
  });

  function announceStart(row: OccurrenceRow): void {
    bus.emit('scheduler:cron_execution_started', { ...identityOf(row), bootId: row.bootId, timestamp: clock.now() }, row.principalId);
  }

  function announceEnd({ row, dependency }: { readonly row: OccurrenceRow; readonly dependency: Finish['dependency'] }): void {
    const terminalAtMs = row.terminalAtMs ?? clock.now();
    bus.emit(
      'scheduler:cron_execution_terminal',
      {
        ...identityOf(row),
        bootId: deps.bootId,
        terminalAtMs,
        durationMs: Math.max(0, terminalAtMs - row.startedAtMs),
        outcomeKind: dependency,
        executionStatus: row.status,
        deliveryStatus: row.deliveryStatus,
        ...(row.errorKind !== null && { errorKind: row.errorKind }),
        ...(row.effectsRefused > 0 && { effectsRefused: row.effectsRefused }),
        timestamp: clock.now(),
      },
      row.principalId,
    );
  }

  /** Stores and announces the end of an occurrence; without a claim when its work was already settled. */
  async function finish(work: CronWork, result: RunResult, claim: WorkItem | undefined, late?: LateRun): Promise<void> {
    const nowMs = clock.now();
    const plan = finishOf(work, result, {
      defaultMaxErrors: deps.defaultMaxErrors,
      nowMs,
      fence: deps.fence,
      forOwner: isForOwners(deps.execute.identityOf(work.tokenId)),
    });
    const { payload } = work;
    const isEvent = payload.kind === 'heartbeat_event' && result.status === 'dispatched';
    const isUrgent = isEvent && payload.wakeMode === 'now';
    const done = await db.write(deps.finish, {
      ...plan,
      ...(claim !== undefined && { claim: { id: claim.id, owner: claim.owner, fence: claim.fence } }),
      ...(late !== undefined && { late }),
      ...(isEvent && {
        systemEvent: eventOf(work, { text: unfenced(payload.text), clean: !holdsTaint(payload.text), atMs: nowMs, urgent: isUrgent }),
      }),
    });
    deps.ended(work.executionId);
    if (done === undefined) return;
    if (done.delivered && plan.inbox !== undefined) deps.inbox.announce(plan.inbox);
    if (done.delivered && plan.conversation !== undefined) tellConversation(plan.conversation, done.created);
    if (isUrgent) deps.heartbeat.wake({ agentId: work.agentId, reason: 'cron', mode: 'now', bypassSpacing: true });
    else if (isEvent || plan.systemEvent !== undefined) deps.heartbeat.noticeEvent(work.agentId);
    if (done.paused) log.warn({ jobId: work.jobId, agentId: work.agentId }, 'Job paused after consecutive provider failures');
    announceEnd({ row: done.row, dependency: plan.dependency });
  }

  function tellConversation({ ref, sessionKey, agentId, principalId }: NonNullable<Finish['conversation']>, created: boolean): void {
    deps.noticeMessages();
    if (created) bus.emit('session:created', { conversationRef: ref, sessionKey, agentId, timestamp: clock.now() }, principalId);
  }

  const handler: WorkHandler = async (item, signal) => {
    const work = CronWork.parse(item.payload);
    const row = await db.read(findRun, { executionId: work.executionId });
    // The ledger was reset or the end is already stored.
    if (row === undefined || row.terminalAtMs !== null) return { state: 'done' };
    const beganMs = clock.now();
    // A run that waited for an approval had started on time, so times that came due meanwhile still run after it.
    const isLate = item.waiting !== undefined && item.waiting.hasAsked !== true;
    const job = isLate ? await db.read(findJob, { id: work.jobId }) : undefined;
    const executed = await executeOccurrence(deps.execute, work, item, signal);
    if (executed === 'lost' || executed === 'waits') return 'settled';
    if ('wait' in executed) return executed;
    await finish(work, executed.result, executed.settled ? undefined : item, job && lateRunOf(work, job, beganMs));
    return 'settled';
  };

  /** Returns the late-run data of a run that waited: it is a catch-up and covers every time of its job that passed meanwhile. */
  function lateRunOf(work: CronWork, row: JobRow, beganMs: number): LateRun | undefined {
    if (beganMs - work.scheduledForMs <= lateMs) return undefined;
    const job = row.activeExecutionId === work.executionId && row.state === 'scheduled' ? parseJob(row) : undefined;
    if (job === undefined || row.dueAtMs === null || row.dueAtMs > beganMs) return {};
    const { occurrence, advance, skipped } = deps.planDue(job, beganMs);
    const reason = `Run ${work.executionId} was waiting and covers this time.`;
    const last: OccurrenceRow = { ...occurrence, status: 'skipped', deliveryStatus: 'not_requested', terminalAtMs: beganMs, reason };
    return {
      passed: {
        // The end of the run has already raised the revision by one.
        advance: { ...advance, revision: row.revision + 1, activeExecutionId: null, claimedForMs: null, claimedAtMs: null },
        skipped: [...skipped, last].map((one) => ({ ...one, trigger: 'catchup', reason })),
      },
    };
  }

  /** Finishes work that was given up; how far the last attempt got is unknown. */
  async function gaveUp(item: WorkItem, errorKind: string, cause: string): Promise<void> {
    const work = CronWork.parse(item.payload);
    if (errorKind === 'killed') return finish(work, { status: 'aborted', errorKind: 'aborted', reason: 'It was stopped while waiting.' }, item);
    if (errorKind === 'deleted')
      return finish(work, { status: 'aborted', errorKind: 'aborted', reason: 'Its conversation was deleted while it was waiting.' }, item);
    await finish(work, { status: 'unknown', errorKind, reason: 'It was retried too often without finishing.', cause, givenUp: true }, item);
  }

  /** Ends an occurrence whose turn an earlier process committed without ending the occurrence itself. */
  async function reconcile({ row, work }: Unfinished): Promise<void> {
    if (work !== null && (work.state === 'accepted' || work.state === 'running')) return;
    const parsed = CronWork.safeParse(work?.payload);
    const result = work?.state === 'unknown' || work === null ? unknownResult : storedResult(work.result);
    if (parsed.success) await finish(parsed.data, result, undefined);
    else await finish(orphanOf(row), unknownResult, undefined);
  }

  return { handler, gaveUp, reconcile, announceStart };
}

/** Rebuilds the work of an occurrence from its record alone. */
function orphanOf({ executionId, jobId, agentId, principalId, scheduledForMs, startedAtMs, trigger }: OccurrenceRow): CronWork {
  return {
    executionId,
    jobId,
    jobName: jobId,
    agentId,
    principalId,
    tokenId: '',
    scheduledForMs,
    startedAtMs,
    trigger,
    payload: { kind: 'internal_action', action: 'memory_review' },
    policies: {},
  };
}
