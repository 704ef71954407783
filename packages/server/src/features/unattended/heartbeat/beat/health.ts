import type { HeartbeatStateRow } from '../store.ts';

/** How long an agent's beats wait after failures in a row. */
const ladderMs = [30_000, 60_000, 300_000, 900_000, 3_600_000] as const;
export const longestBackoffMs = ladderMs[4];
/** Beats that owe events are tried again as often as other work that waits for its provider (features/unattended/durable/waiting.ts). */
const longestOwedMs = 5 * 60_000;

/** Failures that the next beat would meet again: of a model call, or codes of the catalogue that a turn was refused with. */
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

/** Errors that no later call survives until somebody does something. */
export const isStopping = (kind: string): kind is 'auth' | 'billing' => kind === 'auth' || kind === 'billing';

export interface Alert {
  readonly consecutiveErrors: number;
  readonly classification: 'transient' | 'permanent';
  readonly reason: string;
  readonly backoffMs: number;
  /** Queued events make the beat run again after the backoff. */
  readonly owesEvents: boolean;
}

export interface Health {
  readonly state: HeartbeatStateRow;
  readonly alert?: Alert;
}

/** What a beat that failed does to the next ones, and whether somebody must be told (docs/decisions/0024). */
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
  // An alert of the future is of a clock that was set back since.
  // Retries for owed events come more often than alerts should.
  const cooldownMs = Math.max(rules.alertCooldownMs, owesEvents && state.consecutiveErrors > 0 ? stepOf(state.consecutiveErrors) : 0);
  const isCool = state.lastAlertAtMs === null || state.lastAlertAtMs > atMs || atMs - state.lastAlertAtMs >= cooldownMs;
  // What stops the beats is told whatever was told before: nothing else would ever tell it.
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

/** The provider answers again, or somebody asked for another try: the next beat may begin. Its success clears the rest. */
export function released(state: HeartbeatStateRow): HeartbeatStateRow {
  return { ...state, backoffUntilMs: null, stoppedBy: null, stoppedUnder: null };
}

/** Nothing of earlier failures holds any more; when the last alert was is kept. */
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
