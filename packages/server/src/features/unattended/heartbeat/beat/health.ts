import type { HeartbeatStateRow } from '../store.ts';

/** Backoff of an agent's beats after consecutive failures. */
const ladderMs = [30_000, 60_000, 300_000, 900_000, 3_600_000] as const;
export const longestBackoffMs = ladderMs[4];
/** Beats with undelivered events are retried as often as other work waiting for its provider (features/unattended/durable/waiting.ts). */
const longestOwedMs = 5 * 60_000;

/** Failures that the next beat would hit again: of a model call, or catalogue codes with which a turn was rejected. */
const permanent: ReadonlySet<string> = new Set([
  'auth',
  'billing',
  'bad_request',
  'context_length',
  'not_found',
  'precondition_failed',
  'denied',
  'invalid_params',
]);

/** Returns whether an error persists until someone intervenes. */
export const isStopping = (kind: string): kind is 'auth' | 'billing' => kind === 'auth' || kind === 'billing';

export interface Alert {
  readonly consecutiveErrors: number;
  readonly classification: 'transient' | 'permanent';
  readonly reason: string;
  readonly backoffMs: number;
  /** Whether queued events make the beat run again after the backoff. */
  readonly owesEvents: boolean;
}

export interface Health {
  readonly state: HeartbeatStateRow;
  readonly alert?: Alert;
}

/** Returns the state after a failed beat, and the alert to raise, if any (docs/decisions/0024). */
export function afterFailure(
  state: HeartbeatStateRow,
  failure: {
    readonly kind: string;
    readonly atMs: number;
    readonly fingerprint: string;
    readonly owesEvents: boolean;
    readonly retryAfterMs?: number | undefined;
  },
  rules: { readonly alertThreshold: number; readonly alertCooldownMs: number },
): Health {
  const { kind, atMs, owesEvents, retryAfterMs = 0 } = failure;
  const consecutiveErrors = state.consecutiveErrors + 1;
  const classification = permanent.has(kind) ? 'permanent' : 'transient';
  const stepMs = stepOf(consecutiveErrors);
  const backoffMs = owesEvents ? Math.min(longestBackoffMs, Math.max(Math.min(longestOwedMs, stepMs), retryAfterMs)) : stepMs;
  const stoppedBy = isStopping(kind) ? kind : null;
  const isFirstPermanent = classification === 'permanent' && state.lastErrorKind !== 'permanent';
  // An alert in the future dates from before a backward step of the clock.
  // Retries for owed events come more often than alerts should.
  const cooldownMs = Math.max(rules.alertCooldownMs, owesEvents && state.consecutiveErrors > 0 ? stepOf(state.consecutiveErrors) : 0);
  const isCool = state.lastAlertAtMs === null || state.lastAlertAtMs > atMs || atMs - state.lastAlertAtMs >= cooldownMs;
  // A failure that stops the beats always raises an alert, because no later beat would report it.
  const isAlert = (stoppedBy !== null && state.stoppedBy === null) || (isCool && (isFirstPermanent || consecutiveErrors >= rules.alertThreshold));
  return {
    state: {
      ...state,
      consecutiveErrors,
      backoffUntilMs: atMs + backoffMs,
      lastErrorKind: classification,
      stoppedBy,
      stoppedUnder: stoppedBy === null ? null : failure.fingerprint,
      lastAlertAtMs: isAlert ? atMs : state.lastAlertAtMs,
    },
    ...(isAlert && { alert: { consecutiveErrors, classification, reason: kind, backoffMs, owesEvents } }),
  };
}

const stepOf = (consecutiveErrors: number): number => ladderMs[Math.min(consecutiveErrors, ladderMs.length) - 1] ?? ladderMs[0];

/** Returns the state in which the next beat may start, after the provider recovered or a manual retry; its success clears the rest. */
export function released(state: HeartbeatStateRow): HeartbeatStateRow {
  return { ...state, backoffUntilMs: null, stoppedBy: null, stoppedUnder: null };
}

/** Returns the state without earlier failures, keeping the time of the last alert. */
export function healthy(state: HeartbeatStateRow): HeartbeatStateRow {
  return { ...state, consecutiveErrors: 0, backoffUntilMs: null, lastErrorKind: null, stoppedBy: null, stoppedUnder: null };
}

export function newState(agentId: string): HeartbeatStateRow {
  return {
    agentId,
    lastSlotMs: 0,
    lastRunAtMs: null,
    consecutiveErrors: 0,
    backoffUntilMs: null,
    lastErrorKind: null,
    lastAlertAtMs: null,
    stoppedBy: null,
    stoppedUnder: null,
  };
}
