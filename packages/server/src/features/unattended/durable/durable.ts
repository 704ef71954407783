import { AppError } from '../../../kernel/app-error.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Operation } from '../../../kernel/db/operation.ts';
import type { Log } from '../../../kernel/log.ts';
import type { DurableWork, NewWork, WorkClaim, WorkHandler, WorkItem, WorkLimits, WorkOutcome, WorkWait } from './api.ts';
import { givenUp } from './given-up.ts';
import {
  claimWork,
  endWaitingWork,
  nextWorkAt,
  pruneWork,
  releaseWork,
  renewWork,
  resumeAgentWork,
  resumeWork,
  returnWork,
  type Settlement,
  suspendWork,
  takeOverWork,
} from './store.ts';
import { waitForProvider } from './waiting.ts';

export interface DurableDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  /** Identifies this process; work held by any other is free to take. */
  readonly bootId: string;
  /** `settleWork`, plus what other features end along with the work. */
  readonly endWork: Operation<Settlement, boolean>;
  /** `durable.maxWaitMs`; 24 hours when absent. */
  readonly maxWaitMs?: number;
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
}

const leaseMs = 60_000;
const renewMs = 20_000;
/** Longest time between two sweeps, which bounds the cost of a lost hint. */
const sweepMs = 30_000;
const afterErrorMs = 1_000;
const heldCheckMs = 5_000;
/** Number of processes that may die during the same work item before it is given up without calling its handler. */
const maxResumes = 8;
/** Delay between the first attempts at start of items waiting for the same model, whose provider may still be down. */
const startStepMs = 1_000;
const longestRetryMs = 24 * 60 * 60_000;
/** Waits for a person may be longer than waits for a provider. */
const longestAheadMs = 7 * 24 * 60 * 60_000;
const pruneMs = 60 * 60_000;
const keptMs = 7 * 24 * 60 * 60_000;
const prunedAtOnce = 1_000;
/** How long aborted handlers may take to end. */
const abortedMs = 6_000;

interface Kind {
  readonly handler: WorkHandler;
  readonly limits: WorkLimits;
  running: number;
}

interface Held {
  readonly item: WorkItem;
  readonly aborter: AbortController;
  /** The model that the item waits for once this claim has ended. */
  waitsFor?: string;
  /** Whether the item waits until its agent is resumed. */
  waitsForAgent?: boolean;
  ended: Promise<void>;
}

/** Runs work that must outlive a process, with fenced claims, leases, retries and terminal states (docs/decisions/0022). */
export function createDurable(deps: DurableDeps): Durable {
  const {
    db,
    clock,
    log,
    bootId,
    endWork,
    maxWaitMs = 24 * 60 * 60_000,
    watchModel = () => {},
    isSuspended = () => false,
    isHeld = () => false,
    onClaimEnd = () => {},
  } = deps;
  const kinds = new Map<string, Kind>();
  const held = new Map<string, Held>();
  let isStarted = false;
  let isPaused = false;
  let isStopping = false;
  let sweeping: Promise<void> | undefined;
  let needsRerun = false;
  let cancelSweep = () => {};
  let cancelRenew = () => {};
  let cancelPrune = () => {};
  let maintenance: Promise<unknown> = Promise.resolve();

  function sweep(): void {
    if (!isStarted || isPaused || isStopping) return;
    if (sweeping !== undefined) {
      needsRerun = true;
      return;
    }
    cancelSweep();
    sweeping = claimAll()
      .catch((error: unknown) => {
        log.error({ err: error }, 'Failed to claim work');
        return afterErrorMs;
      })
      .then((waitMs) => {
        sweeping = undefined;
        if (isPaused || isStopping) return;
        if (needsRerun) {
          needsRerun = false;
          sweep();
        } else cancelSweep = clock.after(waitMs, sweep);
      });
  }

  /** Returns the delay until the next item can be claimed. */
  async function claimAll(): Promise<number> {
    for (;;) {
      if (isHeld()) return heldCheckMs;
      const free = [...kinds].flatMap(([kind, { limits, running }]) =>
        running < limits.concurrency ? [{ kind, free: limits.concurrency - running }] : [],
      );
      // The end of a running item triggers the next sweep.
      if (free.length === 0) return sweepMs;
      const next = await db.read(nextWorkAt, { kinds: free.map(({ kind }) => kind), atMs: clock.now() });
      const atMs = clock.now();
      if (isPaused || isStopping || next === undefined) return sweepMs;
      if (next.atMs > atMs) return Math.min(sweepMs, next.atMs - atMs);
      const due = free.filter(({ kind }) => next.kinds.includes(kind));
      const items = await db.write(claimWork, { owner: bootId, kinds: due, held: [...held.keys()], leaseUntilMs: atMs + leaseMs, atMs });
      // Items claimed during a stop are recovered by the next start.
      if (isStopping) return sweepMs;
      for (const item of items) begin(item);
      // Items held here may have an expired lease that is being renewed; nobody else takes them.
      if (items.length === 0) return afterErrorMs;
    }
  }

  function begin(item: WorkItem): void {
    const kind = kinds.get(item.kind);
    if (kind === undefined) return;
    const aborter = new AbortController();
    const entry: Held = { item, aborter, ended: Promise.resolve() };
    held.set(item.id, entry);
    kind.running += 1;
    entry.ended = run(kind, item, aborter.signal)
      .catch((error: unknown) => {
        log.error({ err: error, workId: item.id, kind: item.kind }, 'Failed to store the outcome of a work item');
        return false;
      })
      .then((isOver) => {
        // A waiting item may have been claimed again before this point.
        if (held.get(item.id) === entry) held.delete(item.id);
        onClaimEnd(item, entry.waitsForAgent === true);
        // The wait is stored now, so that later answers find it.
        if (entry.waitsFor !== undefined) watchModel(entry.waitsFor);
        const wasFull = kind.running >= kind.limits.concurrency;
        kind.running -= 1;
        if (held.size === 0) cancelRenew();
        // A sweep costs a read: skip it when this end cannot have made anything due.
        if (wasFull || !isOver) sweep();
      });
    if (held.size === 1) renewLater();
  }

  /** Runs an item; returns true when nothing of it is left to do. */
  async function run({ handler, limits }: Kind, item: WorkItem, signal: AbortSignal): Promise<boolean> {
    if (item.waiting?.endedBy !== undefined) return giveUp(limits, item, item.waiting.endedBy);
    if (item.resumes > maxResumes) return giveUp(limits, item, 'too_many_resumes');
    let outcome: WorkOutcome;
    try {
      // The handler must see resumed work even if the agent is suspended, as it may have to end as unknown.
      outcome = (item.resumed ? undefined : untilResumed(limits, item)) ?? (await handler(item, signal));
    } catch (error) {
      if (!signal.aborted) log.error({ err: error, workId: item.id, kind: item.kind }, 'Work item failed unexpectedly');
      outcome = { retryAfterMs: backoff(item.attempts), errorKind: error instanceof AppError ? error.code : 'internal' };
    }
    if (outcome === 'settled') return false;
    if (outcome === 'ended') return true;
    if (signal.aborted) {
      await db.write(releaseWork, claimOf(item));
      return false;
    }
    // A rejection by a suspended agent is not a failed attempt.
    if ('retryAfterMs' in outcome) outcome = untilResumed(limits, item) ?? outcome;
    if ('wait' in outcome) {
      const entry = held.get(item.id);
      if (entry !== undefined) entry.waitsForAgent = outcome.wait.kind === 'agent';
      await db.write(suspendWork, { ...claimOf(item), wait: outcome.wait, atMs: clock.now() });
      return false;
    }
    if (!('retryAfterMs' in outcome)) return db.write(endWork, { ...claimOf(item), ...outcome, atMs: clock.now() });
    if (item.attempts >= limits.maxAttempts) return giveUp(limits, item, outcome.errorKind);
    const waitMs = Math.min(longestRetryMs, Math.max(0, outcome.retryAfterMs));
    await db.write(returnWork, { ...claimOf(item), errorKind: outcome.errorKind, notBeforeMs: clock.now() + waitMs });
    return false;
  }

  /** Returns the wait of work whose agent is suspended; undefined when it may run. */
  function untilResumed({ handlesSuspension }: WorkLimits, { agentId }: WorkItem): { readonly wait: WorkWait } | undefined {
    return agentId === null || handlesSuspension === true || !isSuspended(agentId) ? undefined : api.untilResumed(agentId);
  }

  async function giveUp(limits: WorkLimits, item: WorkItem, errorKind: string): Promise<boolean> {
    log.error({ workId: item.id, kind: item.kind, attempts: item.attempts, resumes: item.resumes, errorKind }, 'Giving up work item');
    try {
      await limits.gaveUp?.(item, errorKind, givenUp(item, errorKind));
    } finally {
      // Has no effect when the feature has settled the item.
      await db.write(endWork, { ...claimOf(item), state: 'failed', errorKind, atMs: clock.now() });
    }
    return true;
  }

  function canBegin(kind: Kind | undefined, { notBeforeMs }: NewWork): kind is Kind {
    return (
      isStarted && !isPaused && !isStopping && !isHeld() && kind !== undefined && kind.running < kind.limits.concurrency && notBeforeMs === undefined
    );
  }

  function renewLater(): void {
    // Keep a single timer even when work ended and other work started during a renewal.
    cancelRenew();
    cancelRenew = clock.after(renewMs, () => {
      maintenance = renew()
        .catch((error: unknown) => log.error({ err: error }, 'Failed to renew leases'))
        .then(() => {
          if (held.size > 0 && !isStopping) renewLater();
        });
    });
  }

  async function renew(): Promise<void> {
    const lost = await db.write(renewWork, { claims: [...held.values()].map(({ item }) => claimOf(item)), leaseUntilMs: clock.now() + leaseMs });
    for (const id of lost) held.get(id)?.aborter.abort(new AppError('conflict', 'Another owner has taken over the work'));
  }

  function pruneLater(waitMs: number): void {
    cancelPrune = clock.after(waitMs, () => {
      maintenance = db
        .write(pruneWork, { beforeMs: clock.ageNow() - keptMs, limit: prunedAtOnce })
        .catch((error: unknown) => {
          log.warn({ err: error }, 'Failed to delete old work items');
          return 0;
        })
        .then((pruned) => {
          if (!isStopping) pruneLater(pruned === prunedAtOnce ? afterErrorMs : pruneMs);
        });
    });
  }

  /** Retries until stored: otherwise the items would wait for hours or days. */
  async function resumeWaiting(what: Parameters<DurableWork['resumeWaiting']>[0]): Promise<void> {
    try {
      if ((await db.write(resumeWork, { ...what, atMs: clock.now() })) > 0) sweep();
    } catch (error) {
      if (isStopping) return;
      log.warn({ err: error, ...what }, 'Failed to resume waiting work; retrying');
      clock.after(heldCheckMs, () => void (isStopping || resumeWaiting(what)));
    }
  }

  const api: DurableWork = {
    handle(kind, handler, limits) {
      if (isStarted || kinds.has(kind)) throw new RangeError(`work kind ${kind} needs exactly one handler, registered before the start`);
      kinds.set(kind, { handler, limits, running: 0 });
    },
    begin(work, accept) {
      const kind = kinds.get(work.kind);
      if (!canBegin(kind, work)) return accept(work).finally(() => api.wake(work.kind));
      const accepted = accept({ ...work, claim: { owner: bootId, leaseUntilMs: clock.now() + leaseMs } });
      const { id, key, agentId, payload, atMs: createdAtMs } = work;
      begin({ id, owner: bootId, fence: 1, kind: work.kind, key, agentId, payload, attempts: 1, resumes: 0, resumed: false, createdAtMs });
      return accepted;
    },
    wake(kind) {
      const woken = kinds.get(kind);
      // Without a free slot a sweep is useless: the end of a running item triggers the next one.
      if (woken !== undefined && woken.running < woken.limits.concurrency) sweep();
    },
    waitFor(item, ended) {
      const wait = waitForProvider(item.waiting, ended, { atMs: clock.now(), maxWaitMs });
      const entry = held.get(item.id);
      if (entry !== undefined && wait !== undefined) entry.waitsFor = ended.model;
      return wait && { wait };
    },
    untilResumed: (agentId) => ({
      wait: { kind: 'agent', subject: agentId, untilMs: clock.now() + maxWaitMs, cause: 'The agent is suspended' },
    }),
    resumeWaiting,
    async endWaiting(what) {
      if (await db.write(endWaitingWork, { ...what, atMs: clock.now() })) sweep();
    },
    async resumeAgent(agentId) {
      if ((await db.write(resumeAgentWork, { agentId, atMs: clock.now() })) > 0) sweep();
    },
    async start() {
      const atMs = clock.now();
      const untilMs = atMs + Math.max(longestRetryMs, maxWaitMs) + longestAheadMs;
      const { left, moved, models } = await db.write(takeOverWork, { owner: bootId, atMs, untilMs, stepMs: startStepMs });
      for (const model of models) watchModel(model);
      if (left > 0) log.warn({ left }, 'Resuming interrupted work');
      if (moved > 0) log.warn({ moved }, 'Rescheduled work that was postponed too far because the clock was wrong');
      isStarted = true;
      pruneLater(afterErrorMs);
      sweep();
    },
    counts: () => ({ running: held.size }),
  };

  async function drain(ms: number): Promise<void> {
    isPaused = true;
    cancelSweep();
    await sweeping;
    await within(ms, ends());
    await abort();
  }

  const ends = () => [...held.values()].map((entry) => entry.ended);

  /** Aborts running work. Items that end in time are released; the next start takes over the others. */
  async function abort(): Promise<void> {
    for (const { aborter } of held.values()) aborter.abort(new AppError('unavailable', 'The daemon is stopping'));
    await within(abortedMs, ends());
  }

  async function within(ms: number, work: readonly Promise<void>[]): Promise<void> {
    const waited = Promise.withResolvers<void>();
    const cancel = clock.after(ms, waited.resolve);
    await Promise.race([Promise.all(work), waited.promise]);
    cancel();
  }

  return {
    api,
    drain,
    async [Symbol.asyncDispose]() {
      isStopping = true;
      cancelSweep();
      cancelPrune();
      await sweeping;
      await abort();
      cancelRenew();
      await maintenance;
    },
  };
}

const claimOf = ({ id, owner, fence }: WorkItem) => ({ id, owner, fence });

/** Returns 2 s, 8 s, 32 s and so on, at most 15 minutes. */
const backoff = (attempts: number) => Math.min(15 * 60_000, 500 * 4 ** attempts);
