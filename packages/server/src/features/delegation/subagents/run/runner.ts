import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Identity, IdentityOf, PartOfRoot } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import { type Operation, outputOf, toCall } from '../../../../kernel/db/operation.ts';
import type { Tool } from '../../../../runtime/tool.ts';
import type { AutonomyApi } from '../../autonomy/api.ts';
import type { DurableWork, NewWork, WorkClaim, WorkItem, WorkOutcome } from '../../../unattended/durable/api.ts';
import type { TurnResult } from '../../../../runtime/turn.ts';
import type { TurnOutcome, TurnSettlement, TurnsApi } from '../../../conversations/turns/api.ts';
import type { Accepted, RunAcceptance, RunBegin } from '../requests/acceptance.ts';
import type { RunEnding } from '../api.ts';
import { conclude, type ConcludeDeps, failure, overTime } from '../completion/conclude.ts';
import { LiveRun } from './live-run.ts';
import { readOptions, type RunOptions } from '../requests/options.ts';
import { type Slot, Slots } from './slots.ts';
import { type EndedRun, isEnded, type RunRow, storedRun } from './row.ts';
import type { RunEvents } from './run-events.ts';
import type { SteerRow } from '../requests/steer-store.ts';
import { findRun } from '../store.ts';
import { callOf, turnOf } from './turn.ts';
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
  readonly turns: Pick<TurnsApi, 'runDurably'>;
  /** Returns the current identity of a token; undefined when the token is gone. */
  readonly identityOf: IdentityOf;
  /** Called when announcements are pending. */
  readonly wakeAnnouncements: () => void;
  /** Called when messages were stored. */
  readonly noticeMessages: () => void;
  readonly operations: {
    readonly accept: Operation<RunAcceptance, Accepted>;
    readonly begin: Operation<RunBegin, readonly SteerRow[] | undefined>;
    /** Commits with the last turn of a run. */
    readonly endWithTurn: Operation<RunEnding, EndedRun | undefined>;
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

/** One attempt of the work item of a run. */
interface Attempt {
  readonly row: RunRow;
  readonly item: WorkItem;
  readonly live: LiveRun;
  /** Aborted when the run is stopped or its claim is lost. */
  readonly signal: AbortSignal;
}

/** Runs sub-agents as durable work: a slot, a turn, an end. */
export class Runner {
  readonly #deps: RunnerDeps;
  readonly #slots: Slots;
  readonly #lives = new Map<string, LiveRun>();
  /** Runs that are being accepted; their stored state does not have to be read. */
  readonly #starting = new Map<string, { readonly acceptance: RunAcceptance; readonly isNewConversation: boolean }>();

  constructor(deps: RunnerDeps) {
    this.#deps = deps;
    this.#slots = new Slots(() => {
      const { graphMaxGlobalSubAgents: all, subagentContext } = deps.config.current;
      return { all, each: subagentContext.maxChildrenPerAgent };
    });
  }

  /** Call when the limits of slots have changed. */
  limitsChanged(): void {
    this.#slots.limitsChanged();
  }

  get counts(): Slots['counts'] {
    return this.#slots.counts;
  }

  live(runId: string): LiveRun | undefined {
    return this.#lives.get(runId);
  }

  /** Whether this process holds the run and its watchdog has not fired. */
  isWatched(runId: string): boolean {
    const live = this.#lives.get(runId);
    return live !== undefined && live.stopped === undefined;
  }

  /** Returns the identity that a run acts with; undefined when it no longer exists. */
  identityOf({ tokenId, principalId, agentId }: RunRow): Identity | undefined {
    // Webhooks and heartbeats have identities without a token.
    if (tokenId === principalId) return { principalId, tokenId, scopes: [], agents: [agentId] };
    return this.#deps.identityOf(tokenId, principalId);
  }

  /** Stores a run; it begins at once when a slot is free and is queued otherwise. `isNewConversation`: its conversation has no messages. */
  async start(acceptance: RunAcceptance, isNewConversation: boolean): Promise<Accepted> {
    const { id } = acceptance.row;
    this.#starting.set(id, { acceptance, isNewConversation });
    const accepting = this.#deps.durable.begin(acceptance.work, (work) => this.#accept(acceptance, work));
    this.#starting.delete(id);
    // Without the acceptance, the started run has no claim and may be waiting for a slot.
    const stop = () => this.#lives.get(id)?.stop('killed');
    try {
      const accepted = await accepting;
      if ('refused' in accepted || !accepted.isNew) stop();
      return accepted;
    } catch (error) {
      stop();
      throw error;
    }
  }

  async #accept(acceptance: RunAcceptance, work: NewWork): Promise<Accepted> {
    const { db, events, operations } = this.#deps;
    const row = storedRun(acceptance.row);
    const accepted = await db.write(operations.accept, { ...acceptance, work });
    if (!('refused' in accepted) && accepted.isNew) {
      events.spawned(row);
      const { queuePosition, activeChildren } = accepted;
      if (queuePosition > 0) events.queued(row, { queuePosition, activeChildren, maxChildren: acceptance.limits?.children ?? activeChildren });
    }
    return accepted;
  }

  /** Executes the work item of a run. */
  async handle(item: WorkItem, signal: AbortSignal): Promise<WorkOutcome> {
    const { db, autonomy } = this.#deps;
    const { runId } = RunWork.parse(item.payload);
    const { acceptance, isNewConversation = false } = this.#starting.get(runId) ?? {};
    const row = acceptance === undefined ? await db.read(findRun, { id: runId }) : storedRun(acceptance.row);
    if (row === undefined || isEnded(row)) return { state: 'done' };
    const live = new LiveRun(isNewConversation);
    this.#lives.set(runId, live);
    const forgetLease = acceptance === undefined ? undefined : autonomy.issuing(acceptance.lease);
    const attempt: Attempt = { row, item, live, signal: AbortSignal.any([signal, live.signal]) };
    try {
      return await this.#run(attempt);
    } catch (error) {
      if (live.stopped === 'killed') return 'settled';
      if (signal.aborted) throw error;
      return await this.#failed(attempt, error);
    } finally {
      live.slot?.leave();
      this.#lives.delete(runId);
      forgetLease?.();
    }
  }

  async #failed({ row, item, live }: Attempt, error: unknown): Promise<WorkOutcome> {
    const ended = { atMs: this.#deps.clock.now() };
    if (live.stopped === 'watchdog')
      return this.#end(item, failure(row.id, { endReason: 'watchdog_timeout', errorKind: 'watchdog_timeout', cause: overTime(row), ...ended }));
    if (live.stopped === 'queue_timeout') return this.#end(item, failure(row.id, { errorKind: 'queue_timeout', cause: queueTimeout, ...ended }));
    if (!(error instanceof AppError)) throw error;
    if (transientCodes.has(error.code)) return { retryAfterMs: retryMs(item), errorKind: error.code };
    return this.#end(item, failure(row.id, { errorKind: error.code, cause: error.message, ...ended }));
  }

  async #run(attempt: Attempt): Promise<WorkOutcome> {
    const { clock } = this.#deps;
    const { row, live } = attempt;
    live.slot = await this.#enter(attempt);
    const atMs = clock.now();
    // Not awaited: the opening of the turn comes after it and shares its commit.
    const begun: RunRow = { ...row, state: 'running', startedAtMs: row.startedAtMs ?? atMs, activeAtMs: atMs };
    const beginning = this.#begin(begun, attempt, atMs);
    beginning.catch(() => {});
    const options = readOptions(row.optionsJson);
    const cancelWatchdog = clock.after(options.timeoutMs + watchdogGraceMs, () => live.stop('watchdog'));
    try {
      return await this.#runTurn({ ...attempt, row: begun }, options);
    } catch (error) {
      // It ended in the meantime, together with its work.
      if (!(await beginning)) return 'settled';
      throw error;
    } finally {
      cancelWatchdog();
    }
  }

  async #enter({ row, live, signal }: Attempt): Promise<Slot> {
    const { clock, config } = this.#deps;
    const isCounted = row.counted === 1;
    // A run that waited for a person had its slot before.
    const wasStarted = row.startedAtMs !== null;
    const isQueued = isCounted && !wasStarted;
    const cancelQueue = isQueued ? clock.after(config.current.subagentContext.queueTimeoutMs, () => live.stop('queue_timeout')) : () => {};
    try {
      return await this.#slots.enter({ requester: isCounted ? row.requesterKey : undefined, first: wasStarted, signal });
    } finally {
      cancelQueue();
    }
  }

  /** Begins the run, unless it has ended; waiters are notified after its acceptance. */
  async #begin(begun: RunRow, { row, item, live }: Attempt, atMs: number): Promise<boolean> {
    const { db, events, operations } = this.#deps;
    const steers = await db.write(operations.begin, { claim: claimOf(item), runId: begun.id, atMs });
    if (steers === undefined) return false;
    for (const message of steers) live.steer(message);
    events.started(begun, row.startedAtMs !== null);
    return true;
  }

  async #runTurn(attempt: Attempt, options: RunOptions): Promise<WorkOutcome> {
    const { clock, turns, waiters, nodeTools, operations } = this.#deps;
    const { row, item, signal } = attempt;
    const identity = this.identityOf(row);
    if (identity === undefined || identity.agents?.includes(row.agentId) === false)
      return this.#end(item, failure(row.id, { errorKind: 'authority', cause: authorityGone, atMs: clock.now() }));
    const turn = turnOf(attempt, options, {
      extraTools: row.graphId === null ? undefined : nodeTools(),
      settle: (outcome, result, part) => this.#settle(attempt, { outcome, result }, { identity, part }),
    });
    const outcome = await turns.runDurably(turn, callOf(identity, signal));
    const endedRun = outputOf(operations.endWithTurn, outcome.outputs);
    if (endedRun !== undefined) this.ended([endedRun]);
    if (outcome.settled && outcome.state === 'accepted') waiters.waits(row.id);
    return outcome.settled && outcome.state !== 'accepted' ? 'ended' : 'settled';
  }

  /** Decides what the end of the turn means for the run. */
  async #settle(
    { row, item, live, signal }: Attempt,
    { outcome, result }: { readonly outcome: TurnOutcome; readonly result: TurnResult },
    as: { readonly identity: Identity; readonly part: PartOfRoot },
  ): Promise<TurnSettlement> {
    // The turn may have ended because of its provider before the watchdog stopped it.
    const wait = live.stopped === undefined || live.stopped === 'watchdog' ? this.#deps.durable.waitFor(item, outcome) : undefined;
    if (wait !== undefined) return wait;
    const stopped = live.stopped === 'watchdog' || isOverTime(outcome) ? 'watchdog' : undefined;
    const runEnd = await conclude(this.#deps, row, { outcome, result, stopped }, { ...as, signal });
    return {
      state: runEnd.state === 'completed' ? 'done' : 'failed',
      ...(runEnd.errorKind !== null && { errorKind: runEnd.errorKind }),
      alongside: [toCall(this.#deps.operations.endWithTurn, runEnd)],
    };
  }

  /** Records that the work of a run was given up. */
  async gaveUp(item: WorkItem, errorKind: string, cause: string): Promise<void> {
    const { runId } = RunWork.parse(item.payload);
    await this.#end(item, failure(runId, { errorKind, cause, atMs: this.#deps.clock.now() }));
  }

  async #end(item: WorkItem, ending: RunEnding): Promise<WorkOutcome> {
    const { db, operations } = this.#deps;
    const run = await db.write(operations.finish, { claim: claimOf(item), ending });
    if (run === undefined) return 'settled';
    this.ended([run]);
    return 'ended';
  }

  /** Call after the commit that ended these runs: stops what is still running and notifies waiters. */
  ended(runs: readonly EndedRun[]): void {
    const { events, waiters, wakeAnnouncements, noticeMessages } = this.#deps;
    for (const { row } of runs) {
      const live = this.#lives.get(row.id);
      if (live !== undefined) live.ended = row;
      if (row.endReason === 'killed' || row.endReason === 'ghost_sweep') live?.stop('killed');
      events.completed(row);
      waiters.ended(row);
    }
    if (runs.some(({ row }) => row.announceTo === 'conversation' || row.announceTo === 'inbox')) wakeAnnouncements();
    // A turn announces its own messages; what a killed one had done was stored with its end.
    if (runs.some(({ row }) => row.endReason === 'killed')) noticeMessages();
    for (const { row, seen } of runs) {
      if (row.announceTo === 'none') events.lifecycleEnded(row, 'none');
      for (const child of seen) events.lifecycleEnded(child, 'seen');
    }
  }
}
