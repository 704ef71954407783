import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import type { CallContext, Identity } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import { newId, newTraceId } from '../../../../kernel/ids.ts';
import type { Tool } from '../../../../runtime/tool.ts';
import type { AutonomyApi } from '../../autonomy/api.ts';
import type { DurableWork, NewWork, WorkClaim, WorkHandler, WorkItem, WorkOutcome } from '../../../unattended/durable/api.ts';
import type { TurnOutcome, TurnsApi } from '../../../conversations/turns/api.ts';
import type { Accepted, RunAcceptance, RunBegin } from '../requests/acceptance.ts';
import type { RunEnding } from '../api.ts';
import { conclude, type ConcludeDeps, failure, overTime } from '../completion/conclude.ts';
import { LiveRun } from './live-run.ts';
import { authorityOf, boundsOf, readOptions } from '../requests/options.ts';
import { Slots } from './slots.ts';
import { type EndedRun, isEnded, type RunRow, storedRun } from './row.ts';
import type { RunEvents } from './run-events.ts';
import type { SteerRow } from '../requests/steer-store.ts';
import { findRun } from '../store.ts';
import type { Waiters } from '../status/waiters.ts';

export interface RunnerDeps extends ConcludeDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly events: RunEvents;
  readonly waiters: Waiters;
  /** Tools that runs of graph nodes have in addition to those of their agents. */
  readonly nodeTools: () => readonly Tool[];
  readonly autonomy: Pick<AutonomyApi, 'issuing'>;
  readonly durable: Pick<DurableWork, 'begin' | 'waitFor'>;
  readonly turns: Pick<TurnsApi, 'durable'>;
  /** Returns the current identity of a token; undefined when the token is gone. */
  readonly identityOf: (tokenId: string) => Identity | undefined;
  /** Called when announcements are pending. */
  readonly wakeAnnouncements: () => void;
  /** Called when messages were stored. */
  readonly noticeMessages: () => void;
  readonly operations: {
    readonly accept: Operation<RunAcceptance, Accepted>;
    readonly begin: Operation<RunBegin, readonly SteerRow[] | undefined>;
    readonly finish: Operation<{ readonly claim: WorkClaim; readonly ending: RunEnding }, EndedRun | undefined>;
  };
}

const RunWork = z.strictObject({ runId: z.string() });

/** Handlers hold their runs while these wait, because slots are assigned in memory. */
export const runLimits = { concurrency: 1000, maxAttempts: 4 };
const transientCodes: ReadonlySet<string> = new Set(['rate_limited', 'unavailable', 'conflict', 'timeout']);
const retryMs = ({ attempts }: WorkItem) => 1000 * 2 ** attempts;
const queueTimeout = 'No slot became free in time (`security.agentToAgent.subagentContext.queueTimeoutMs`)';
const authorityGone = 'The requesting token was revoked or may not use the agent any more';
/** The turn normally ends in time and knows whether its provider is at fault; the watchdog stops what does not get that far. */
const watchdogGraceMs = 30_000;
/** Whether the run itself took too long: its provider answered, or a tool was running. */
const isOverTime = ({ failure: failed }: TurnOutcome): boolean => failed?.kind === 'timeout' && !failed.transient;
const claimOf = ({ id, owner, fence }: WorkItem): WorkClaim => ({ id, owner, fence });

export interface Runner {
  /** Stores a run; it begins at once when a slot is free and is queued otherwise. `isNewConversation`: its conversation has no messages. */
  start(acceptance: RunAcceptance, isNewConversation: boolean): Promise<Accepted>;
  readonly handler: WorkHandler;
  gaveUp(item: WorkItem, errorKind: string, cause: string): Promise<void>;
  /** Call after the commit that ended these runs: stops what is still running and notifies waiters. */
  ended(runs: readonly EndedRun[]): void;
  live(runId: string): LiveRun | undefined;
  /** Returns the identity that a run acts with; undefined when it no longer exists. */
  identityOf(row: RunRow): Identity | undefined;
  counts(): Slots['counts'];
}

/** Runs sub-agents as durable work: a slot, a turn, an end. */
export function createRunner(deps: RunnerDeps): Runner {
  const { db, clock, events, config } = deps;
  const slots = new Slots({ all: config.graphMaxGlobalSubAgents, each: config.subagentContext.maxChildrenPerAgent });
  const lives = new Map<string, LiveRun>();
  /** Runs that are being accepted; their stored state does not have to be read. */
  const starting = new Map<string, { readonly acceptance: RunAcceptance; readonly isNewConversation: boolean }>();

  async function start(acceptance: RunAcceptance, isNewConversation: boolean): Promise<Accepted> {
    const row = storedRun(acceptance.row);
    async function accept(work: NewWork): Promise<Accepted> {
      const accepted = await db.write(deps.operations.accept, { ...acceptance, work });
      if (!('refused' in accepted) && accepted.isNew) {
        events.spawned(row);
        const { queuePosition, activeChildren } = accepted;
        if (queuePosition > 0) events.queued(row, { queuePosition, activeChildren, maxChildren: acceptance.limits?.children ?? activeChildren });
      }
      return accepted;
    }
    starting.set(row.id, { acceptance, isNewConversation });
    const accepting = deps.durable.begin(acceptance.work, accept);
    starting.delete(row.id);
    // Without the acceptance, the started run has no claim and may be waiting for a slot.
    const stop = () => lives.get(row.id)?.stop('killed');
    try {
      const accepted = await accepting;
      if ('refused' in accepted || !accepted.isNew) stop();
      return accepted;
    } catch (error) {
      stop();
      throw error;
    }
  }

  const handler: WorkHandler = async (item, signal) => {
    const { runId } = RunWork.parse(item.payload);
    const { acceptance, isNewConversation = false } = starting.get(runId) ?? {};
    const row = acceptance === undefined ? await db.read(findRun, { id: runId }) : storedRun(acceptance.row);
    if (row === undefined || isEnded(row)) return { state: 'done' };
    const live = new LiveRun(isNewConversation);
    lives.set(runId, live);
    const forgetLease = acceptance === undefined ? undefined : deps.autonomy.issuing(acceptance.lease);
    try {
      return await run(row, item, live, AbortSignal.any([signal, live.signal]));
    } catch (error) {
      if (live.stopped === 'killed') return 'settled';
      if (signal.aborted) throw error;
      if (live.stopped === 'watchdog')
        return await end(
          item,
          failure(runId, { endReason: 'watchdog_timeout', errorKind: 'watchdog_timeout', cause: overTime(row), atMs: clock.now() }),
        );
      if (live.stopped === 'queue_timeout')
        return await end(item, failure(runId, { errorKind: 'queue_timeout', cause: queueTimeout, atMs: clock.now() }));
      if (!(error instanceof AppError)) throw error;
      if (transientCodes.has(error.code)) return { retryAfterMs: retryMs(item), errorKind: error.code };
      return await end(item, failure(runId, { errorKind: error.code, cause: error.message, atMs: clock.now() }));
    } finally {
      live.slot?.leave();
      lives.delete(runId);
      forgetLease?.();
    }
  };

  async function run(row: RunRow, item: WorkItem, live: LiveRun, signal: AbortSignal): Promise<WorkOutcome> {
    const isCounted = row.counted === 1;
    // A run that waited for a person had its slot before.
    const isQueued = isCounted && row.startedAtMs === null;
    const cancelQueue = isQueued ? clock.after(config.subagentContext.queueTimeoutMs, () => live.stop('queue_timeout')) : () => {};
    try {
      live.slot = await slots.enter({ requester: isCounted ? row.requesterKey : undefined, first: row.startedAtMs !== null, signal });
    } finally {
      cancelQueue();
    }
    const atMs = clock.now();
    // Not awaited: the opening of the turn comes after it and shares its commit.
    const begun: RunRow = { ...row, state: 'running', startedAtMs: row.startedAtMs ?? atMs, activeAtMs: atMs };
    const beginning = begin(begun, atMs, row.startedAtMs !== null, item, live);
    beginning.catch(() => {});
    const options = readOptions(row.optionsJson);
    const cancelWatchdog = clock.after(options.timeoutMs + watchdogGraceMs, () => live.stop('watchdog'));
    try {
      return await runTurn(begun, options, item, live, signal);
    } catch (error) {
      // It ended in the meantime, together with its work.
      if (!(await beginning)) return 'settled';
      throw error;
    } finally {
      cancelWatchdog();
    }
  }

  /** Begins the run, unless it has ended; waiters are notified after its acceptance. */
  async function begin(begun: RunRow, atMs: number, isResumed: boolean, item: WorkItem, live: LiveRun): Promise<boolean> {
    const steers = await db.write(deps.operations.begin, { claim: claimOf(item), runId: begun.id, atMs });
    if (steers === undefined) return false;
    for (const message of steers) live.steer(message);
    events.started(begun, isResumed);
    return true;
  }

  async function runTurn(
    row: RunRow,
    options: ReturnType<typeof readOptions>,
    item: WorkItem,
    live: LiveRun,
    signal: AbortSignal,
  ): Promise<WorkOutcome> {
    const identity = identityOf(row);
    if (identity === undefined || identity.agents?.includes(row.agentId) === false)
      return end(item, failure(row.id, { errorKind: 'authority', cause: authorityGone, atMs: clock.now() }));
    const call: CallContext = { identity, traceId: newTraceId(), requestId: newId('rq'), signal, transport: 'process' };
    const { model } = options;
    const authority = authorityOf(options);
    const outcome = await deps.turns.durable(
      {
        workId: item.id,
        owner: item.owner,
        fence: item.fence,
        origin: row.graphId === null ? 'subagent' : 'graph',
        ...(authority !== undefined && { authority }),
        target: { ref: row.conversationRef, sessionKey: row.sessionKey, agentId: row.agentId, principalId: row.principalId },
        message: options.message,
        ...(model !== undefined && { model }),
        timeoutMs: options.timeoutMs,
        maxSteps: options.maxSteps,
        rootRunId: row.rootRunId,
        run: { runId: row.id, leaseId: row.leaseId, depth: row.depth },
        toolBounds: boundsOf(options),
        ...(row.graphId !== null && { extraTools: deps.nodeTools() }),
        ...(live.isNewConversation && { historyTurns: 0 }),
        kept: true,
        operation: 'subagent',
        steering: live,
        settle: async (turnOutcome, result) => {
          // The turn may have ended because of its provider before the watchdog stopped it.
          const wait = live.stopped === undefined || live.stopped === 'watchdog' ? deps.durable.waitFor(item, turnOutcome) : undefined;
          if (wait !== undefined) return wait;
          const stopped = live.stopped === 'watchdog' || isOverTime(turnOutcome) ? 'watchdog' : undefined;
          const runEnd = await conclude(deps, row, { outcome: turnOutcome, result, stopped }, { identity, signal });
          return {
            state: runEnd.state === 'completed' ? 'done' : 'failed',
            ...(runEnd.errorKind !== null && { errorKind: runEnd.errorKind }),
            alongside: { runEnd },
          };
        },
      },
      call,
    );
    if (outcome.endedRun !== undefined) ended([outcome.endedRun]);
    if (outcome.settled && outcome.state === 'accepted') deps.waiters.waits(row.id);
    return outcome.settled && outcome.state !== 'accepted' ? 'ended' : 'settled';
  }

  /** Webhooks and heartbeats act under their own names, for which there is no token. */
  function identityOf({ tokenId, principalId, agentId }: RunRow): Identity | undefined {
    if (tokenId === principalId) return { principalId, tokenId, scopes: [], agents: [agentId] };
    return deps.identityOf(tokenId);
  }

  async function end(item: WorkItem, ending: RunEnding): Promise<WorkOutcome> {
    const run = await db.write(deps.operations.finish, { claim: claimOf(item), ending });
    if (run === undefined) return 'settled';
    ended([run]);
    return 'ended';
  }

  function ended(runs: readonly EndedRun[]): void {
    for (const { row } of runs) {
      const live = lives.get(row.id);
      if (live !== undefined) live.ended = row;
      if (row.endReason === 'killed' || row.endReason === 'ghost_sweep') live?.stop('killed');
      events.completed(row);
      deps.waiters.ended(row);
    }
    if (runs.some(({ row }) => row.announceTo === 'conversation' || row.announceTo === 'inbox')) deps.wakeAnnouncements();
    // A turn announces its own messages; what a killed one had done was stored with its end.
    if (runs.some(({ row }) => row.endReason === 'killed')) deps.noticeMessages();
    for (const { row, seen } of runs) {
      if (row.announceTo === 'none') events.lifecycleEnded(row, 'none');
      for (const child of seen) events.lifecycleEnded(child, 'seen');
    }
  }

  return {
    start,
    handler,
    async gaveUp(item, errorKind, cause) {
      const { runId } = RunWork.parse(item.payload);
      await end(item, failure(runId, { errorKind, cause, atMs: clock.now() }));
    },
    ended,
    live: (runId) => lives.get(runId),
    identityOf,
    counts: () => slots.counts,
  };
}
