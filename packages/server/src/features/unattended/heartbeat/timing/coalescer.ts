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
/** Beats of all agents that run at once: after a pause of the whole machine all are due. */
const maxRunning = 8;
const maxWaiting = 10_000;

const priorities: Readonly<Record<WakeReason, number>> = { interval: 1, manual: 2, hook: 2, wake: 2, 'exec-event': 3, cron: 3, task: 4 };

/** The agent that is woken; undefined: the look at all heartbeats. */
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
  /** Nobody asked for it but the interval. */
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
  /** Somebody triggered it by hand, whatever joined it since: no backoff holds it. */
  isManual: boolean;
  isPlanned: boolean;
  /** When it is looked at next. */
  lookAtMs: number;
  deferredBy: Deferral | undefined;
}

export interface WakeOrder {
  readonly agentId: Target;
  readonly reason: WakeReason;
  readonly lane: WakeLane;
  readonly bypassesSpacing: boolean;
  /** When it may begin at the earliest. */
  readonly dueAtMs: number;
}

export interface CoalescerDeps {
  readonly clock: Clock;
  readonly bus: EventBus;
  /** A turn runs in the conversation of the agent's beats. */
  readonly isBusy: (agentId: string) => boolean;
  /** Until when beats of the agent wait after failures. */
  readonly backoffUntil: (agentId: string) => number | null;
  readonly start: (occurrence: Occurrence) => void;
  /** A beat ended: what waited for it may begin. */
  readonly changed: () => void;
}

export interface Coalescer {
  /** Undefined when too much waits. */
  wake(order: WakeOrder): Admitted | undefined;
  /** A beat that an earlier run of the daemon began goes on. */
  adopt(occurrence: Occurrence): void;
  /** The beat has called for its model: spacing and flood cap count from here. */
  began(agentId: string, atMs: number): void;
  end(occurrence: Occurrence, how: Pick<Terminal, 'status' | 'eventCount' | 'errorKind'>): void;
  /** What waits for the agent, or for any, never begins. */
  cancel(agentId: string | undefined, why: NonNullable<Terminal['cancelReason']>): void;
  /** The clock was set back: what waits waits no longer for it. */
  setBack(byMs: number): void;
  /** Begins what may begin; gives when to look again, undefined when nothing waits. */
  run(): number | undefined;
  /** When the beat of the agent began that runs. */
  runningSince(agentId: string): number | null;
}

/** Joins what asks for beats into few of them, and keeps them apart (docs/decisions/0024). */
export function createCoalescer({ clock, bus, isBusy, backoffUntil, start, changed }: CoalescerDeps): Coalescer {
  /** By agent and lane. */
  const waiting = new Map<string, Waiting>();
  const running = new Map<string, Occurrence>();
  /** When the last beats of an agent began that called a model. */
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
    // Beats by the interval have a time of their own already.
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
        lookAtMs: dueAtMs,
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
    earlier.lookAtMs = earlier.dueAtMs;
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
    // A clock that was set back must not hold beats for longer than it ever does.
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
    one.lookAtMs = untilMs;
    // Told once for each cause, not at each look.
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
      for (const one of waiting.values()) if (one.deferredBy === 'session_busy' || one.deferredBy === 'root_unavailable') one.lookAtMs = one.dueAtMs;
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
        one.lookAtMs -= byMs;
      }
    },
    run() {
      const now = clock.now();
      const due = [...waiting].filter(([, one]) => one.lookAtMs <= now);
      due.sort(([, a], [, b]) => priorities[b.reason] - priorities[a.reason] || a.dueAtMs - b.dueAtMs);
      for (const [key, one] of due) {
        // What began before it may have ended already, and begun this one.
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
      for (const { lookAtMs } of waiting.values()) if (next === undefined || lookAtMs < next) next = lookAtMs;
      return next;
    },
  };
}
