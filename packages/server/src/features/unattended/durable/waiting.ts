import type { ProviderFailure, Waiting, WorkWait } from './api.ts';

const firstLookMs = 10_000;
const longestLookMs = 5 * 60_000;
/** An item may be looked at later than planned: others were before it, or a timer was late. */
const slackMs = 60_000;

/** How long an item has waited for the same thing, without the time in which the daemon was stopped or the clock was set. */
export function waitedMs(before: Waiting, atMs: number): number {
  const planned = before.lookAtMs - before.atMs + slackMs;
  return before.waitedMs + Math.min(planned, Math.max(0, atMs - before.atMs));
}

/** What is stored of a wait: one that continues for the same kind of thing keeps when it began. */
export function toWaiting(before: Waiting | undefined, { kind, untilMs, lookAtMs = untilMs, subject, cause }: WorkWait, atMs: number): Waiting {
  const same = before?.kind === kind ? before : undefined;
  return {
    kind,
    // A clock that was set back since would have it begin in the future.
    sinceMs: Math.min(same?.sinceMs ?? atMs, atMs),
    untilMs,
    lookAtMs,
    atMs,
    waitedMs: same === undefined ? 0 : waitedMs(same, atMs),
    waits: (same?.waits ?? 0) + 1,
    ...(subject !== undefined && { subject }),
    ...(cause !== undefined && { cause }),
    ...((kind === 'approval' || before?.hasAsked === true) && { hasAsked: true }),
    // A stop that came while it was claimed is not lost.
    ...(before?.endedBy !== undefined && { endedBy: before.endedBy }),
  };
}

/** The wait of work whose provider is at fault; undefined when it is not, or when the work has waited as long as it may. */
export function waitForProvider(
  before: Waiting | undefined,
  { failure, model }: { readonly failure?: ProviderFailure; readonly model: string },
  { atMs, maxWaitMs }: { readonly atMs: number; readonly maxWaitMs: number },
): WorkWait | undefined {
  if (failure?.transient !== true) return undefined;
  const same = before?.kind === 'provider' ? before : undefined;
  const leftMs = maxWaitMs - (same === undefined ? 0 : waitedMs(same, atMs));
  if (leftMs <= 0) return undefined;
  const lookMs = Math.min(longestLookMs, firstLookMs * 2 ** Math.min(10, same?.waits ?? 0));
  return {
    kind: 'provider',
    subject: model,
    untilMs: atMs + leftMs,
    lookAtMs: atMs + Math.min(leftMs, Math.max(lookMs, failure.retryAfterMs ?? 0)),
    cause: failure.cause ?? failure.message,
  };
}
