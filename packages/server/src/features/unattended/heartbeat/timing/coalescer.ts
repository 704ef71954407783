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

/** Why a beat cannot start yet, and when it is checked next. */
interface Deferral {
  readonly reason: EventPayload<'scheduler:heartbeat_wake_deferred'>['reason'];
  readonly untilMs: number;
}

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
  deferredBy: Deferral['reason'] | undefined;
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

/** Merges requests into few beats and spaces them (docs/decisions/0024). */
export class Coalescer {
  readonly #deps: CoalescerDeps;
  /** Pending beats by agent and lane. */
  readonly #waiting = new Map<string, Waiting>();
  readonly #running = new Map<string, Occurrence>();
  /** Start times of an agent's last beats that called a model. */
  readonly #starts = new Map<Target, number[]>();

  constructor(deps: CoalescerDeps) {
    this.#deps = deps;
  }

  /** Requests a beat; returns undefined when too many are pending. */
  wake(order: WakeOrder): Admitted | undefined {
    const now = this.#deps.clock.now();
    const { agentId, reason, lane, dueAtMs: askedMs } = order;
    const key = `${agentId ?? ''} ${lane}`;
    // Beats by the interval already have their own time.
    const dueAtMs = reason === 'interval' ? askedMs : Math.max(askedMs, now + debounceMs);
    const earlier = this.#waiting.get(key);
    if (earlier !== undefined) return this.#merge(earlier, { ...order, dueAtMs });
    if (this.#waiting.size >= maxWaiting) return undefined;
    const fresh: Waiting = {
      correlationId: newId('hw'),
      agentId,
      lane,
      admittedAtMs: now,
      reason,
      dueAtMs,
      bypassesSpacing: order.bypassesSpacing,
      isManual: reason === 'manual',
      isPlanned: reason === 'interval',
      checkAtMs: dueAtMs,
      deferredBy: undefined,
    };
    this.#waiting.set(key, fresh);
    return this.#admitted(fresh, 'new_occurrence');
  }

  #merge(earlier: Waiting, { reason, dueAtMs, bypassesSpacing }: WakeOrder): Admitted {
    const isManual = reason === 'manual';
    const isMore =
      priorities[reason] > priorities[earlier.reason] ||
      dueAtMs < earlier.dueAtMs ||
      (bypassesSpacing && !earlier.bypassesSpacing) ||
      (isManual && !earlier.isManual);
    earlier.isPlanned &&= reason === 'interval';
    if (!isMore) return { status: 'coalesced', accepted: false, coalesced: true, ...retained(earlier) };
    earlier.reason = reason;
    earlier.dueAtMs = Math.min(earlier.dueAtMs, dueAtMs);
    earlier.bypassesSpacing ||= bypassesSpacing;
    earlier.isManual ||= isManual;
    earlier.checkAtMs = earlier.dueAtMs;
    return this.#admitted(earlier, 'occurrence_upgraded');
  }

  #admitted(one: Waiting, disposition: NonNullable<Admitted['disposition']>): Admitted {
    const { bus, clock } = this.#deps;
    bus.emit('scheduler:heartbeat_wake_admitted', {
      ...about(one),
      retainedReason: one.reason,
      disposition,
      dueAtMs: one.dueAtMs,
      timestamp: clock.now(),
    });
    return { status: 'accepted', accepted: true, coalesced: false, disposition, ...retained(one) };
  }

  /** Returns when the agent's running beat started. */
  runningSince(agentId: string): number | null {
    return this.#runningBeat(agentId)?.startedAtMs ?? null;
  }

  /** Registers a resumed beat of an earlier process. */
  adopt(occurrence: Occurrence): void {
    this.#running.set(occurrence.correlationId, occurrence);
  }

  /** Call when a beat has called its model; spacing and flood cap count from there. */
  began(agentId: Target, atMs: number): void {
    this.#starts.set(agentId, [...this.#recentStarts(agentId, atMs), atMs].slice(-maxStarts));
  }

  end(occurrence: Occurrence, how: Pick<Terminal, 'status' | 'eventCount' | 'errorKind'>): void {
    const { clock, changed } = this.#deps;
    const { correlationId, agentId, startedAtMs } = occurrence;
    if (!this.#running.delete(correlationId)) return;
    if (agentId === undefined) this.#starts.set(undefined, [...this.#recentStarts(undefined, clock.now()), startedAtMs].slice(-maxStarts));
    this.#emitTerminal(occurrence, { ...how, durationMs: Math.max(0, clock.now() - startedAtMs) });
    for (const one of this.#waiting.values())
      if (one.deferredBy === 'session_busy' || one.deferredBy === 'root_unavailable') one.checkAtMs = one.dueAtMs;
    changed();
  }

  /** Cancels the pending beats of the agent, or of all agents. */
  cancel(agentId: string | undefined, cancelReason: NonNullable<Terminal['cancelReason']>): void {
    for (const [key, one] of this.#waiting) {
      if (agentId !== undefined && one.agentId !== agentId) continue;
      this.#waiting.delete(key);
      const durationMs = Math.max(0, this.#deps.clock.now() - one.admittedAtMs);
      this.#emitTerminal(one, { status: 'cancelled_before_start', cancelReason, durationMs, eventCount: 0 });
    }
    if (agentId !== undefined && cancelReason === 'agent_deleted') this.#starts.delete(agentId);
  }

  /** Adjusts pending beats to a backward clock step. */
  setBack(byMs: number): void {
    for (const one of this.#waiting.values()) {
      one.admittedAtMs -= byMs;
      one.dueAtMs -= byMs;
      one.checkAtMs -= byMs;
    }
  }

  /** Starts the beats that may start; returns when to check again, undefined when none is pending. */
  run(): number | undefined {
    const now = this.#deps.clock.now();
    const due = [...this.#waiting].filter(([, one]) => one.checkAtMs <= now);
    due.sort(([, a], [, b]) => priorities[b.reason] - priorities[a.reason] || a.dueAtMs - b.dueAtMs);
    for (const [key, one] of due) {
      // A beat started earlier in this loop may have ended and started this one.
      if (this.#waiting.get(key) !== one) continue;
      const deferral = this.#deferralOf(one, now);
      if (deferral !== undefined) {
        this.#defer(one, deferral);
        continue;
      }
      this.#waiting.delete(key);
      const { correlationId, agentId, lane, reason, isPlanned } = one;
      const occurrence: Occurrence = { correlationId, agentId, lane, reason, startedAtMs: now, isPlanned };
      this.#running.set(correlationId, occurrence);
      this.#deps.start(occurrence);
    }
    let next: number | undefined;
    for (const { checkAtMs } of this.#waiting.values()) if (next === undefined || checkAtMs < next) next = checkAtMs;
    return next;
  }

  #deferralOf(one: Waiting, now: number): Deferral | undefined {
    const { isBusy, backoffUntil } = this.#deps;
    const { agentId } = one;
    const soon = now + recheckMs;
    if (this.#runningBeat(agentId) !== undefined || (agentId !== undefined && isBusy(agentId))) return { reason: 'session_busy', untilMs: soon };
    const backoffMs = agentId === undefined || one.isManual ? null : backoffUntil(agentId);
    if (backoffMs !== null && backoffMs > now) return { reason: 'backoff', untilMs: backoffMs };
    const recent = this.#recentStarts(agentId, now);
    const last = recent.at(-1);
    if (last !== undefined && !one.bypassesSpacing && last + spacingMs > now) return { reason: 'spacing_deferred', untilMs: last + spacingMs };
    const first = recent[0];
    if (first !== undefined && recent.length >= maxStarts) return { reason: 'flood_deferred', untilMs: first + floodMs };
    return this.#running.size >= maxRunning ? { reason: 'root_unavailable', untilMs: soon } : undefined;
  }

  #defer(one: Waiting, { reason, untilMs }: Deferral): void {
    const { bus, clock } = this.#deps;
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

  #emitTerminal(one: BeatIdentity, how: Omit<Terminal, 'correlationId' | 'target' | 'lane' | 'timestamp'>): void {
    const { bus, clock } = this.#deps;
    bus.emit('scheduler:heartbeat_wake_terminal', { ...about(one), ...how, timestamp: clock.now() });
  }

  #runningBeat(agentId: Target): Occurrence | undefined {
    return this.#running.values().find((beat) => beat.agentId === agentId);
  }

  #recentStarts(agentId: Target, now: number): readonly number[] {
    // A backward clock step must not delay beats longer than usual.
    return (this.#starts.get(agentId) ?? []).filter((atMs) => atMs > now - floodMs && atMs <= now);
  }
}

type BeatIdentity = Pick<Occurrence, 'correlationId' | 'agentId' | 'lane'>;

const retained = ({ correlationId, lane, reason }: Waiting) => ({ correlationId, lane, retainedReason: reason });

const about = ({ correlationId, agentId, lane }: BeatIdentity) => ({
  correlationId,
  target: agentId === undefined ? ('monitoring' as const) : ('agent' as const),
  ...(agentId !== undefined && { agentId }),
  lane,
});
