import * as z from 'zod';
import { AppError } from '../../kernel/app-error.ts';
import type { CallContext, Identity } from '../../kernel/call-context.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Db } from '../../kernel/db/db.ts';
import type { Operation } from '../../kernel/db/operation.ts';
import { newId, newTraceId } from '../../kernel/ids.ts';
import type { WorkClaim, WorkHandler, WorkItem, WorkOutcome } from '../durable/api.ts';
import type { TurnsApi } from '../turns/api.ts';
import type { RunEnding } from './api.ts';
import { conclude, type ConcludeDeps, failure } from './conclude.ts';
import { LiveRun } from './live-run.ts';
import { authorityOf, boundsOf, readOptions } from './options.ts';
import { Places } from './places.ts';
import { isEnded, type RunRow } from './row.ts';
import type { RunEvents } from './run-events.ts';
import { findSteers } from './steer-store.ts';
import { childrenTold, findRun } from './store.ts';
import type { Waiters } from './waiters.ts';

export interface RunnerDeps extends ConcludeDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly events: RunEvents;
  readonly waiters: Waiters;
  readonly turns: Pick<TurnsApi, 'durable'>;
  /** The identity of a token as it is now; undefined when it is gone. */
  readonly identityOf: (tokenId: string) => Identity | undefined;
  readonly wake: () => void;
  /** Messages were stored. */
  readonly noticeMessages: () => void;
  readonly operations: {
    readonly begin: Operation<{ readonly claim: WorkClaim; readonly runId: string; readonly atMs: number }, RunRow | undefined>;
    readonly finish: Operation<{ readonly claim: WorkClaim; readonly ending: RunEnding }, RunRow | undefined>;
  };
}

const RunWork = z.strictObject({ runId: z.string() });

/** Runs that wait are held by their handlers: places are handed out in memory. */
export const runLimits = { concurrency: 1000, maxAttempts: 4 };
const passing: ReadonlySet<string> = new Set(['rate_limited', 'unavailable', 'conflict', 'timeout']);
const retryMs = ({ attempts }: WorkItem) => 1000 * 2 ** attempts;
const claimOf = ({ id, owner, fence }: WorkItem): WorkClaim => ({ id, owner, fence });

export interface Runner {
  readonly handler: WorkHandler;
  gaveUp(item: WorkItem, errorKind: string): Promise<void>;
  /** After the commit that ended these runs: stops what still runs of them and tells who waits. */
  ended(rows: readonly RunRow[]): Promise<void>;
  live(runId: string): LiveRun | undefined;
  /** By whose rights a run acts, as they are now; undefined when they are gone. */
  identityOf(row: RunRow): Identity | undefined;
  counts(): Places['counts'];
}

/** Runs sub-agents as durable work: a place, a turn, an end. */
export function createRunner(deps: RunnerDeps): Runner {
  const { db, clock, events, config } = deps;
  const places = new Places({ all: config.graphMaxGlobalSubAgents, each: config.subagentContext.maxChildrenPerAgent });
  const lives = new Map<string, LiveRun>();

  const handler: WorkHandler = async (item, signal) => {
    const { runId } = RunWork.parse(item.payload);
    const row = await db.read(findRun, { id: runId });
    if (row === undefined || isEnded(row)) return { state: 'done' };
    const live = new LiveRun();
    lives.set(runId, live);
    try {
      return await run(row, item, live, AbortSignal.any([signal, live.signal]));
    } catch (error) {
      if (live.stopped === 'killed') return 'settled';
      if (signal.aborted) throw error;
      if (live.stopped === 'watchdog')
        return await end(item, failure(runId, { endReason: 'watchdog_timeout', errorKind: 'watchdog_timeout', atMs: clock.now() }));
      if (live.stopped === 'queue_timeout') return await end(item, failure(runId, { errorKind: 'queue_timeout', atMs: clock.now() }));
      if (!(error instanceof AppError)) throw error;
      if (passing.has(error.code)) return { retryAfterMs: retryMs(item), errorKind: error.code };
      return await end(item, failure(runId, { errorKind: error.code, atMs: clock.now() }));
    } finally {
      live.place?.leave();
      lives.delete(runId);
    }
  };

  async function run(row: RunRow, item: WorkItem, live: LiveRun, signal: AbortSignal): Promise<WorkOutcome> {
    const isCounted = row.counted === 1;
    const cancelQueue = isCounted ? clock.after(config.subagentContext.queueTimeoutMs, () => live.stop('queue_timeout')) : () => {};
    try {
      live.place = await places.enter({ requester: isCounted ? row.requesterKey : undefined, first: row.startedAtMs !== null, signal });
    } finally {
      cancelQueue();
    }
    const begun = await db.write(deps.operations.begin, { claim: claimOf(item), runId: row.id, atMs: clock.now() });
    // Ended meanwhile, with its work.
    if (begun === undefined) return 'settled';
    events.started(begun, row.startedAtMs !== null);
    const options = readOptions(row.optionsJson);
    const cancelWatchdog = clock.after(options.timeoutMs, () => live.stop('watchdog'));
    try {
      return await runTurn(begun, options, item, live, signal);
    } finally {
      cancelWatchdog();
    }
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
      return end(item, failure(row.id, { errorKind: 'authority', atMs: clock.now() }));
    for (const message of await db.read(findSteers, { runId: row.id })) live.steer(message);
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
        // The watchdog is earlier: it is the one that says why.
        timeoutMs: options.timeoutMs + 30_000,
        maxSteps: options.maxSteps,
        rootRunId: row.rootRunId,
        run: { runId: row.id, leaseId: row.leaseId, depth: row.depth },
        toolBounds: boundsOf(options),
        kept: true,
        operation: 'subagent',
        steering: live,
        settle: async (told, result) => {
          const stopped = live.stopped === 'watchdog' ? 'watchdog' : undefined;
          const runEnd = await conclude(deps, row, { outcome: told, result, stopped }, { identity, signal });
          return {
            state: runEnd.state === 'completed' ? 'done' : 'failed',
            ...(runEnd.errorKind !== null && { errorKind: runEnd.errorKind }),
            alongside: { runEnd },
          };
        },
      },
      call,
    );
    if (outcome.settled) await endedOne(row.id);
    return 'settled';
  }

  /** Webhooks and heartbeats act under names of their own, for which there is no token. */
  function identityOf({ tokenId, principalId, agentId }: RunRow): Identity | undefined {
    if (tokenId === principalId) return { principalId, tokenId, scopes: [], agents: [agentId] };
    return deps.identityOf(tokenId);
  }

  async function end(item: WorkItem, ending: RunEnding): Promise<WorkOutcome> {
    const row = await db.write(deps.operations.finish, { claim: claimOf(item), ending });
    if (row !== undefined) await endedOne(row.id);
    return 'settled';
  }

  async function endedOne(runId: string): Promise<void> {
    const row = await db.read(findRun, { id: runId });
    if (row !== undefined) await ended([row]);
  }

  async function ended(rows: readonly RunRow[]): Promise<void> {
    for (const row of rows) {
      lives.get(row.id)?.stop('killed');
      events.completed(row);
      deps.waiters.ended(row.id);
    }
    deps.wake();
    // A turn tells of its own messages; what a killed one had done was stored with its end.
    if (rows.some(({ endReason }) => endReason === 'killed')) deps.noticeMessages();
    for (const row of rows) {
      if (row.announceTo === 'none') events.lifecycleEnded(row, 'none');
      for (const child of await db.read(childrenTold, { id: row.id })) if (child.announced === 'seen') events.lifecycleEnded(child, 'seen');
    }
  }

  return {
    handler,
    async gaveUp(item, errorKind) {
      const { runId } = RunWork.parse(item.payload);
      await end(item, failure(runId, { errorKind, atMs: clock.now() }));
    },
    ended,
    live: (runId) => lives.get(runId),
    identityOf,
    counts: () => places.counts,
  };
}
