import type { Clock } from '../../../../kernel/clock.ts';

export type BreakerState = 'closed' | 'open' | 'halfOpen';

/** Consecutive failures that open it, and how long it then stays open; longer each time up to the last. */
const failuresToOpen = 5;
const openMs = [15_000, 60_000, 300_000] as const;

/** Keeps searches from waiting for an embedder that is down; after a pause one call may try. */
export interface EmbeddingBreaker {
  readonly state: BreakerState;
  /** Milliseconds until the next call may try; 0: now. */
  waitMs(): number;
  succeeded(): void;
  failed(): void;
}

export function createEmbeddingBreaker(clock: Clock): EmbeddingBreaker {
  let failures = 0;
  let openings = 0;
  let opensUntil: number | undefined;
  const waitMs = () => (opensUntil === undefined ? 0 : Math.max(0, opensUntil - clock.monotonic()));
  return {
    get state() {
      if (opensUntil === undefined) return 'closed';
      return waitMs() > 0 ? 'open' : 'halfOpen';
    },
    waitMs,
    succeeded() {
      failures = 0;
      openings = 0;
      opensUntil = undefined;
    },
    failed() {
      failures += 1;
      // Calls that fail while it is open started before it opened.
      if (waitMs() > 0 || (opensUntil === undefined && failures < failuresToOpen)) return;
      opensUntil = clock.monotonic() + (openMs[Math.min(openings, openMs.length - 1)] ?? openMs[0]);
      openings += 1;
    },
  };
}
