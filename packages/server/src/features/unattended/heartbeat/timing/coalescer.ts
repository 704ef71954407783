import type { EventPayload } from '@gatehouse/contract';
import type { Clock } from '../../../../kernel/clock.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import { newId } from '../../../../kernel/ids.ts';
import type { Admitted, WakeLane, WakeReason } from '../api.ts';

const debounceMs = 250;
const spacingMs = 30_000;
const floodMs = 60_000;
const maxStarts = 5;
const recheckMs = 1_000;
/** Maximum concurrent beats of all agents; after a sleep of the machine all are due. */
const maxRunning = 8;
const maxWaiting = 10_000;

const priorities: Readonly<Record<WakeReason, number>> = { interval: 1, manual: 2, hook: 2, wake: 2, 'exec-event': 3, cron: 3, task: 4 };

/** The agent to wake; undefined means the check of all heartbeats. */
type Target = string | undefined;
type Terminal = EventPayload<'scheduler:heartbeat_wake_terminal'>;
type Deferral = EventPayload<'scheduler:heartbeat_wake_deferred'>['reason'];

/** One beat, from its admission to its end. */
export interface Occurrence {
  readonly correlationId: string;
  readonly agentId: Target;
  readonly lane: WakeLane;
  readonly reason: WakeReason;
  readonly startedAtMs: number;
  /** Requested only by the interval. */
  readonly isPlanned?: boolean;
}

interface Waiting {
  readonly correlationId: string;
  readonly agentId: Target;
  readonly lane: WakeLane;
  admittedAtMs: number;
  reason: WakeReason;
  dueAtMs: number;
  bypassesSpacing: boolean;
  /** Triggered manually, whatever joined it since, so that it ignores backoff. */
  isManual: boolean;
  isPlanned: boolean;
  /** When it is checked next. */
  checkAtMs: number;
  deferredBy: Deferral | undefined;
}

export interface WakeOrder {
  readonly agentId: Target;
  readonly reason: WakeReason;
  readonly lane: WakeLane;
  readonly bypassesSpacing: boolean;
  /** Earliest time at which it may start. */
  readonly dueAtMs: number;
}

export interface CoalescerDeps {
  readonly clock: Clock;
  readonly bus: EventBus;
  /** Returns whether a turn is running in the conversation of the agent's beats. */
  readonly isBusy: (agentId: string) => boolean;
  /** Returns the end of the agent's backoff after failures. */
  readonly backoffUntil: (agentId: string) => number | null;
  readonly start: (occurrence: Occurrence) => void;
  /** Called when a beat has ended, so that others may start. */
  readonly changed: () => void;
}

export interface Coalescer {
  /** Requests a beat; returns undefined when too many are pending. */
  wake(order: WakeOrder): Admitted | undefined;
  /** Registers a resumed beat of an earlier process. */
  adopt(occurrence: Occurrence): void;
  /** Call when a beat has called its model; spacing and flood cap count from there. */
  began(agentId: string, atMs: number): void;
  end(occurrence: Occurrence, how: Pick<Terminal, 'status' | 'eventCount' | 'errorKind'>): void;
  /** Cancels the pending beats of the agent, or of all agents. */
  cancel(agentId: string | undefined, why: NonNullable<Terminal['cancelReason']>): void;
  /** Adjusts pending beats to a backward clock step. */
  setBack(byMs: number): void;
  /** Starts the beats that may start; returns when to check again, undefined when none is pending. */
  run(): number | undefined;
  /** Returns when the agent's running beat started. */
  runningSince(agentId: string): number | null;
}

/** Merges requests into few beats and spaces them (docs/decisions/0024). */
export function createCoalescer({ clock, bus, isBusy, backoffUntil, start, changed }: CoalescerDeps): Coalescer {
  /** Pending beats by agent and lane. */
  const waiting = new Map<string, Waiting>();
  const running = new Map<string, Occurrence>();
  /** Start times of an agent's last beats that called a model. */
  const starts = new Map<Target, number[]>();

  const keyOf = (agentId: Target, lane: WakeLane) => `${agentId ?? ''} ${lane}`;
  const about = ({ correlationId, agentId, lane }: Pick<Waiting, 'correlationId' | 'agentId' | 'lane'>) => ({
    correlationId,
    target: agentId === undefined ? ('monitoring' as const) : ('agent' as const),
    ...(agentId !== undefined && { agentId }),
    lane,
  });

  function wake({ agentId, reason, lane, bypassesSpacing, dueAtMs: askedMs }: WakeOrder): Admitted | undefined {
    const now = clock.now();
    const key = keyOf(agentId, lane);
    // Beats by the interval already have their own time.
    const dueAtMs = reason === 'interval' ? askedMs : Math.max(askedMs, now + debounceMs);
    const earlier = waiting.get(key);
    const isManual = reason === 'manual';
    const isPlanned = reason === 'interval';
    if (earlier === undefined) {
      if (waiting.size >= maxWaiting) return undefined;
      const fresh = {
        correlationId: newId('hw'),
        agentId,
        lane,
        admittedAtMs: now,
        reason,
        dueAtMs,
        bypassesSpacing,
        isManual,
        isPlanned,
        checkAtMs: dueAtMs,
        deferredBy: undefined,
      };
      waiting.set(key, fresh);
      return admitted(fresh, 'new_occurrence');
    }
    const isMore =
      priorities[reason] > priorities[earlier.reason] ||
      dueAtMs < earlier.dueAtMs ||
      (bypassesSpacing && !earlier.bypassesSpacing) ||
      (isManual && !earlier.isManual);
    earlier.isPlanned &&= isPlanned;
    if (!isMore) return { status: 'coalesced', accepted: false, coalesced: true, ...retained(earlier) };
    earlier.reason = reason;
    earlier.dueAtMs = Math.min(earlier.dueAtMs, dueAtMs);
    earlier.bypassesSpacing ||= bypassesSpacing;
    earlier.isManual ||= isManual;
    earlier.checkAtMs = earlier.dueAtMs;
    return admitted(earlier, 'occurrence_upgraded');
  }

  const retained = ({ correlationId, lane, reason }: Waiting) => ({ correlationId, lane, retainedReason: reason });

  function admitted(one: Waiting, disposition: NonNullable<Admitted['disposition']>): Admitted {
    bus.emit('scheduler:heartbeat_wake_admitted', {
      ...about(one),
      retainedReason: one.reason,
      disposition,
      dueAtMs: one.dueAtMs,
      timestamp: clock.now(),
    });
    return { status: 'accepted', accepted: true, coalesced: false, disposition, ...retained(one) };
  }

  const isRunning = (agentId: Target) => [...running.values()].some((beat) => beat.agentId === agentId);

  function recentStarts(agentId: Target, now: number): readonly number[] {
    // A backward clock step must not delay beats longer than usual.
    return (starts.get(agentId) ?? []).filter((atMs) => atMs > now - floodMs && atMs <= now);
  }

  function deferral(one: Waiting, now: number): { readonly reason: Deferral; readonly untilMs: number } | undefined {
    const { agentId } = one;
    const soon = now + recheckMs;
    if (isRunning(agentId) || (agentId !== undefined && isBusy(agentId))) return { reason: 'session_busy', untilMs: soon };
    const backoffMs = agentId === undefined || one.isManual ? null : backoffUntil(agentId);
    if (backoffMs !== null && backoffMs > now) return { reason: 'backoff', untilMs: backoffMs };
    const recent = recentStarts(agentId, now);
    const last = recent.at(-1);
    if (last !== undefined && !one.bypassesSpacing && last + spacingMs > now) return { reason: 'spacing_deferred', untilMs: last + spacingMs };
    const first = recent[0];
    if (first !== undefined && recent.length >= maxStarts) return { reason: 'flood_deferred', untilMs: first + floodMs };
    return running.size >= maxRunning ? { reason: 'root_unavailable', untilMs: soon } : undefined;
  }

  function defer(one: Waiting, { reason, untilMs }: NonNullable<ReturnType<typeof deferral>>): void {
    one.checkAtMs = untilMs;
    // Reported once per cause, not at each check.
    if (one.deferredBy === reason) return;
    one.deferredBy = reason;
    bus.emit('scheduler:heartbeat_wake_deferred', {
      ...about(one),
      retainedReason: one.reason,
      reason,
      nextEligibleAtMs: untilMs,
      timestamp: clock.now(),
    });
  }

  function terminal(
    one: Pick<Waiting, 'correlationId' | 'agentId' | 'lane'>,
    how: Omit<Terminal, 'correlationId' | 'target' | 'lane' | 'timestamp'>,
  ): void {
    bus.emit('scheduler:heartbeat_wake_terminal', { ...about(one), ...how, timestamp: clock.now() });
  }

  return {
    wake,
    runningSince: (agentId) => [...running.values()].find((beat) => beat.agentId === agentId)?.startedAtMs ?? null,
    adopt(occurrence) {
      running.set(occurrence.correlationId, occurrence);
    },
    began(agentId, atMs) {
      starts.set(agentId, [...recentStarts(agentId, atMs), atMs].slice(-maxStarts));
    },
    end(occurrence, how) {
      if (!running.delete(occurrence.correlationId)) return;
      if (occurrence.agentId === undefined)
        starts.set(undefined, [...recentStarts(undefined, clock.now()), occurrence.startedAtMs].slice(-maxStarts));
      terminal(occurrence, { ...how, durationMs: Math.max(0, clock.now() - occurrence.startedAtMs) });
      for (const one of waiting.values()) if (one.deferredBy === 'session_busy' || one.deferredBy === 'root_unavailable') one.checkAtMs = one.dueAtMs;
      changed();
    },
    cancel(agentId, why) {
      for (const [key, one] of waiting) {
        if (agentId !== undefined && one.agentId !== agentId) continue;
        waiting.delete(key);
        terminal(one, {
          status: 'cancelled_before_start',
          cancelReason: why,
          durationMs: Math.max(0, clock.now() - one.admittedAtMs),
          eventCount: 0,
        });
      }
      if (agentId !== undefined && why === 'agent_deleted') starts.delete(agentId);
    },
    setBack(byMs) {
      for (const one of waiting.values()) {
        one.admittedAtMs -= byMs;
        one.dueAtMs -= byMs;
        one.checkAtMs -= byMs;
      }
    },
    run() {
      const now = clock.now();
      const due = [...waiting].filter(([, one]) => one.checkAtMs <= now);
      due.sort(([, a], [, b]) => priorities[b.reason] - priorities[a.reason] || a.dueAtMs - b.dueAtMs);
      for (const [key, one] of due) {
        // A beat started earlier in this loop may have ended and started this one.
        if (waiting.get(key) !== one) continue;
        const why = deferral(one, now);
        if (why !== undefined) {
          defer(one, why);
          continue;
        }
        waiting.delete(key);
        const { correlationId, agentId, lane, reason, isPlanned } = one;
        const occurrence: Occurrence = { correlationId, agentId, lane, reason, startedAtMs: now, isPlanned };
        running.set(correlationId, occurrence);
        start(occurrence);
      }
      let next: number | undefined;
      for (const { checkAtMs } of waiting.values()) if (next === undefined || checkAtMs < next) next = checkAtMs;
      return next;
    },
  };
}
