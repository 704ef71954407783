import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import { RateLimiter } from '../../../../kernel/limiter.ts';

const windowMs = 60_000;
const maxBytes = 64 * 1024 * 1024;
const maxMessages = 20_000;

/** Limits what one server may send within a minute, over all its users: a server that never stops would block the event loop. */
export interface FloodGuard {
  /** Throws `unavailable` beyond the limit. */
  bytes(length: number): void;
  message(): void;
}

export function createFloodGuard(clock: Clock): FloodGuard {
  const bytes = new RateLimiter({ limit: maxBytes, windowMs, clock });
  const messages = new RateLimiter({ limit: maxMessages, windowMs, clock });
  /** Until then smaller messages, which would fit, are refused as well. */
  let exceededUntilMs = -Infinity;
  function count(limiter: RateLimiter, cost: number): void {
    const now = clock.monotonic();
    if (now >= exceededUntilMs) {
      const { allowed, resetMs } = limiter.take('', cost);
      if (allowed) return;
      exceededUntilMs = now + resetMs;
    }
    throw new AppError('unavailable', `The server sent more than ${maxBytes} bytes or ${maxMessages} messages within a minute`);
  }
  return { bytes: (length) => count(bytes, length), message: () => count(messages, 1) };
}
