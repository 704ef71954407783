import type { ProviderFailure, Waiting, WorkWait } from './api.ts';

const firstCheckMs = 10_000;
const longestCheckMs = 5 * 60_000;
/** An item may be checked later than planned, behind others or because of a late timer. */
const slackMs = 60_000;

/** Returns how long an item has waited, excluding time while the daemon was stopped and changes of the clock. */
export function waitedMs(before: Waiting, atMs: number): number {
  const planned = before.lookAtMs - before.atMs + slackMs;
  return before.waitedMs + Math.min(planned, Math.max(0, atMs - before.atMs));
}

/** Returns the wait to store; a continued wait of the same kind keeps its start. */
export function toWaiting(
  before: Waiting | undefined,
  { kind, untilMs, lookAtMs = untilMs, subject, cause, rootRunId = before?.rootRunId, runId = before?.runId }: WorkWait,
  atMs: number,
): Waiting {
  const same = before?.kind === kind ? before : undefined;
  return {
    kind,
    // After a backward clock step the start would be in the future.
    sinceMs: Math.min(same?.sinceMs ?? atMs, atMs),
    untilMs,
    lookAtMs,
    atMs,
    waitedMs: same === undefined ? 0 : waitedMs(same, atMs),
    waits: (same?.waits ?? 0) + 1,
    ...(subject !== undefined && { subject }),
    ...(cause !== undefined && { cause }),
    ...(rootRunId !== undefined && { rootRunId }),
    ...(runId !== undefined && { runId }),
    ...((kind === 'approval' || before?.hasAsked === true) && { hasAsked: true }),
    // Keeps a stop request that arrived while the item was claimed.
    ...(before?.endedBy !== undefined && { endedBy: before.endedBy }),
  };
}

/** Returns the wait of work whose provider is at fault; undefined when it is not, or when the maximum wait is used up. */
export function waitForProvider(
  before: Waiting | undefined,
  { failure, model }: { readonly failure?: ProviderFailure; readonly model: string },
  { atMs, maxWaitMs }: { readonly atMs: number; readonly maxWaitMs: number },
): WorkWait | undefined {
  if (failure?.transient !== true) return undefined;
  const same = before?.kind === 'provider' ? before : undefined;
  const leftMs = maxWaitMs - (same === undefined ? 0 : waitedMs(same, atMs));
  if (leftMs <= 0) return undefined;
  const checkMs = Math.min(longestCheckMs, firstCheckMs * 2 ** Math.min(10, same?.waits ?? 0));
  return {
    kind: 'provider',
    subject: model,
    untilMs: atMs + leftMs,
    lookAtMs: atMs + Math.min(leftMs, Math.max(checkMs, failure.retryAfterMs ?? 0)),
    cause: failure.cause ?? failure.message,
  };
}
