import { AppError } from '../../../kernel/app-error.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Operation } from '../../../kernel/db/operation.ts';
import type { Log } from '../../../kernel/log.ts';
import type { TraceWork } from '../../../kernel/work-trace.ts';
import type { DurableWork, WorkHandler, WorkItem, WorkLimits, WorkOutcome } from './api.ts';
import { givenUp } from './given-up.ts';
import { claimOf, type HeldItem } from './held-work.ts';
import { releaseWork, returnWork, type Settlement, suspendWork } from './store.ts';

/** A kind of work and its running items. */
export interface Kind {
  readonly handler: WorkHandler;
  readonly limits: WorkLimits;
  running: number;
}

export interface RunItemDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly traceWork: TraceWork;
  readonly endWork: Operation<Settlement, boolean>;
  readonly isSuspended: (agentId: string) => boolean;
  readonly untilResumed: DurableWork['untilResumed'];
}

/** Number of processes that may die during the same work item before it is given up without calling its handler. */
const maxResumes = 8;
export const longestRetryMs = 24 * 60 * 60_000;

/** Runs an item and stores its outcome. Returns true when nothing of it is left to do. */
export async function runItem(deps: RunItemDeps, { handler, limits }: Kind, held: HeldItem): Promise<boolean> {
  const { item } = held;
  const { signal } = held.aborter;
  if (item.waiting?.endedBy !== undefined) return giveUp(deps, { item, limits }, item.waiting.endedBy);
  if (item.resumes > maxResumes) {
    traceRecovery(deps, item, 'orphaned');
    return giveUp(deps, { item, limits }, 'too_many_resumes');
  }
  if (item.resumed) traceRecovery(deps, item, 'resumed');
  let outcome: WorkOutcome;
  try {
    // The handler must see resumed work even if the agent is suspended, as it may have to end as unknown.
    outcome = (item.resumed || item.waiting?.isRevoked === true ? undefined : waitForAgent(deps, limits, item)) ?? (await handler(item, signal));
  } catch (error) {
    if (!signal.aborted) deps.log.error({ err: error, workId: item.id, kind: item.kind }, 'Work item failed unexpectedly');
    outcome = { retryAfterMs: backoff(item.attempts), errorKind: error instanceof AppError ? error.code : 'internal' };
  }
  if (outcome === 'settled') return false;
  if (outcome === 'ended') return true;
  if (outcome === 'released' || signal.aborted) {
    await deps.db.write(releaseWork, claimOf(item));
    return false;
  }
  return store(deps, limits, held, outcome);
}

async function store(deps: RunItemDeps, limits: WorkLimits, held: HeldItem, given: Exclude<WorkOutcome, string>): Promise<boolean> {
  const { db, clock, endWork } = deps;
  const { item } = held;
  // A rejection by a suspended agent is not a failed attempt.
  const outcome = 'retryAfterMs' in given ? (waitForAgent(deps, limits, item) ?? given) : given;
  if ('wait' in outcome) {
    held.waitsForAgent = outcome.wait.kind === 'agent';
    await db.write(suspendWork, { ...claimOf(item), wait: outcome.wait, atMs: clock.now() });
    return false;
  }
  // Nobody knows how far it got when its process died.
  if ('state' in outcome && outcome.state === 'unknown') traceRecovery(deps, item, 'orphaned');
  if (!('retryAfterMs' in outcome)) return db.write(endWork, { ...claimOf(item), ...outcome, atMs: clock.now() });
  if (item.attempts >= limits.maxAttempts) return giveUp(deps, { item, limits }, outcome.errorKind);
  const waitMs = Math.min(longestRetryMs, Math.max(0, outcome.retryAfterMs));
  await db.write(returnWork, { ...claimOf(item), errorKind: outcome.errorKind, notBeforeMs: clock.now() + waitMs });
  return false;
}

/** Records what became of work whose process died. */
function traceRecovery({ traceWork }: RunItemDeps, { id, kind, agentId, resumes, createdAtMs }: WorkItem, event: 'resumed' | 'orphaned'): void {
  traceWork({
    kind: 'autonomy',
    ...(agentId !== null && { agentId }),
    startedAtMs: createdAtMs,
    outcome: event === 'resumed' ? 'ok' : 'failed',
    endReason: event,
    refs: { workId: id },
    facts: { event, workKind: kind, resumes },
  });
}

/** Returns the wait of work whose agent is suspended; undefined when it may run. */
function waitForAgent({ isSuspended, untilResumed }: RunItemDeps, { handlesSuspension }: WorkLimits, { agentId }: WorkItem) {
  return agentId === null || handlesSuspension === true || !isSuspended(agentId) ? undefined : untilResumed(agentId);
}

async function giveUp(
  { db, clock, log, endWork }: RunItemDeps,
  { item, limits }: { readonly item: WorkItem; readonly limits: WorkLimits },
  errorKind: string,
): Promise<boolean> {
  log.error({ workId: item.id, kind: item.kind, attempts: item.attempts, resumes: item.resumes, errorKind }, 'Giving up work item');
  try {
    await limits.gaveUp?.(item, errorKind, givenUp(item, errorKind));
  } finally {
    // Has no effect when the feature has settled the item.
    await db.write(endWork, { ...claimOf(item), state: 'failed', errorKind, atMs: clock.now() });
  }
  return true;
}

/** Returns 2 s, 8 s, 32 s and so on, at most 15 minutes. */
const backoff = (attempts: number) => Math.min(15 * 60_000, 500 * 4 ** attempts);
