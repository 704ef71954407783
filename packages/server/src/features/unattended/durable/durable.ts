import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Operation } from '../../../kernel/db/operation.ts';
import type { Log } from '../../../kernel/log.ts';
import type { TraceWork } from '../../../kernel/work-trace.ts';
import type { DurableWork, NewWork, WorkClaim, WorkItem } from './api.ts';
import { afterErrorMs, claimDue } from './claim-due.ts';
import { HeldWork, leaseMs } from './held-work.ts';
import { type Kind, longestRetryMs, runItem } from './run-item.ts';
import { startMaintenance } from './maintenance.ts';
import { QueueCredit } from './queue-credit.ts';
import { freeWork, type Settlement, takeOverWork } from './store.ts';
import { Sweeper } from './sweeper.ts';
import { createWaits } from './waits.ts';

export interface DurableDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly traceWork?: TraceWork;
  /** Identifies this process, as the owner of the work that it claims. */
  readonly bootId: string;
  /** `settleWork`, plus what other features end along with the work. */
  readonly endWork: Operation<Settlement, boolean>;
  /** `durable.maxWaitMs`; 24 hours when absent. */
  readonly maxWaitMs?: () => number;
  /** Called with each model (`provider/model`) that work waits for, also at start; report its next answer through `resumeWaiting`. */
  readonly watchModel?: (model: string) => void;
  readonly isSuspended?: (agentId: string) => boolean;
  /** Called when a claim of this process has ended; `waitsForAgent`: the item waits until its agent is resumed. */
  readonly onClaimEnd?: (work: WorkClaim, waitsForAgent: boolean) => void;
  /** Returns true while no work may start, such as when the disk is full; accepted work stays queued. */
  readonly isHeld?: () => boolean;
}

export interface Durable extends AsyncDisposable {
  readonly api: DurableWork;
  /** Stops claiming and waits up to `ms` for running work; the rest is left to the next start. */
  drain(ms: number): Promise<void>;
  /** Continues the work of owners that died while this process runs. */
  recover(): Promise<void>;
}

/** Delay between the first attempts at start of items waiting for the same model, whose provider may still be down. */
const startStepMs = 1_000;
/** Waits for a person may be longer than waits for a provider. */
const longestAheadMs = 7 * 24 * 60 * 60_000;

/** Runs work that must outlive a process, with fenced claims, leases, retries and terminal states (docs/decisions/0022). */
export function createDurable(deps: DurableDeps): Durable {
  const {
    db,
    clock,
    log,
    bootId,
    maxWaitMs = () => 24 * 60 * 60_000,
    watchModel = () => {},
    isSuspended = () => false,
    isHeld = () => false,
    traceWork = () => {},
  } = deps;
  const kinds = new Map<string, Kind>();
  const held = new HeldWork(db, clock);
  const credit = new QueueCredit(db);
  const chores = new AsyncDisposableStack();
  const stopping = new AbortController();
  const waits = createWaits({ db, clock, log, maxWaitMs, held, wake: () => sweeper.wake(), stopping: stopping.signal });
  const running = { ...deps, traceWork, isSuspended, untilResumed: waits.untilResumed };
  const claiming = {
    ...deps,
    kinds,
    heldIds: () => held.ids(),
    isHeld,
    isStopped: () => !sweeper.isRunning,
    stopping: stopping.signal,
    begin,
  };
  const sweeper = new Sweeper(clock, () =>
    claimDue(claiming).catch((error: unknown) => {
      log.error({ err: error }, 'Failed to claim work');
      return afterErrorMs;
    }),
  );

  function begin(item: WorkItem): void {
    const kind = kinds.get(item.kind);
    if (kind === undefined) return;
    const entry = held.add(item);
    kind.running += 1;
    entry.ended = runItem(running, kind, entry)
      .catch((error: unknown) => {
        log.error({ err: error, workId: item.id, kind: item.kind }, 'Failed to store the outcome of a work item');
        return false;
      })
      .then((isOver) => {
        held.remove(entry);
        deps.onClaimEnd?.(item, entry.waitsForAgent === true);
        // The wait is stored now, so that later answers find it.
        if (entry.waitsFor !== undefined) watchModel(entry.waitsFor);
        const wasFull = kind.running >= kind.limits.concurrency;
        kind.running -= 1;
        // A sweep costs a read: skip it when this end cannot have made anything due.
        if (wasFull || !isOver) sweeper.wake();
      });
  }

  function canBegin(kind: Kind | undefined, { notBeforeMs }: NewWork): kind is Kind {
    return sweeper.isRunning && !isHeld() && kind !== undefined && kind.running < kind.limits.concurrency && notBeforeMs === undefined;
  }

  const api: DurableWork = {
    handle(kind, handler, limits) {
      if (sweeper.isRunning || kinds.has(kind)) throw new RangeError(`work kind ${kind} needs exactly one handler, registered before the start`);
      kinds.set(kind, { handler, limits, running: 0 });
    },
    begin(work, accept) {
      const kind = kinds.get(work.kind);
      if (!canBegin(kind, work))
        return accept(work.owed === true ? work : { ...work, fits: credit.take(work.kind) }).finally(() => api.wake(work.kind));
      const accepted = accept({ ...work, claim: { owner: bootId, leaseUntilMs: clock.now() + leaseMs } });
      const { id, key, agentId, payload, atMs: createdAtMs } = work;
      begin({ id, owner: bootId, fence: 1, kind: work.kind, key, agentId, payload, attempts: 1, resumes: 0, resumed: false, createdAtMs });
      return accepted;
    },
    fits: (kind) => credit.take(kind),
    wake(kind) {
      const woken = kinds.get(kind);
      // Without a free slot a sweep is useless: the end of a running item triggers the next one.
      if (woken !== undefined && woken.running < woken.limits.concurrency) sweeper.wake();
    },
    ...waits,
    async start() {
      await takeOver(deps, { maxWaitMs: maxWaitMs(), watchModel });
      if (stopping.signal.aborted) return;
      chores.use(startMaintenance({ db, clock, log, held }));
      sweeper.start();
    },
    counts: () => ({ running: held.size }),
  };

  return {
    api,
    async recover() {
      const left = await db.write(freeWork, { owner: bootId });
      if (left > 0) log.warn({ left }, 'Resuming work of a daemon that died');
      sweeper.wake();
    },
    async drain(ms) {
      await sweeper.stop();
      await held.ends(ms);
      await held.abort();
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await sweeper.stop();
      await held.abort();
      await chores.disposeAsync();
    },
  };
}

async function takeOver(
  { db, clock, log, bootId }: DurableDeps,
  { maxWaitMs, watchModel }: { readonly maxWaitMs: number; readonly watchModel: (model: string) => void },
): Promise<void> {
  const atMs = clock.now();
  const untilMs = atMs + Math.max(longestRetryMs, maxWaitMs) + longestAheadMs;
  const { left, moved, models } = await db.write(takeOverWork, { owner: bootId, atMs, untilMs, stepMs: startStepMs });
  for (const model of models) watchModel(model);
  if (left > 0) log.warn({ left }, 'Resuming interrupted work');
  if (moved > 0) log.warn({ moved }, 'Rescheduled work that was postponed too far because the clock was wrong');
}
