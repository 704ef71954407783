import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';

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
  let since = Number.NEGATIVE_INFINITY;
  let bytes = 0;
  let messages = 0;
  function count(more: number, one: number): void {
    const now = clock.monotonic();
    if (now - since >= windowMs) {
      since = now;
      bytes = 0;
      messages = 0;
    }
    bytes += more;
    messages += one;
    if (bytes > maxBytes || messages > maxMessages)
      throw new AppError('unavailable', `The server sent more than ${maxBytes} bytes or ${maxMessages} messages within a minute`);
  }
  return { bytes: (length) => count(length, 0), message: () => count(0, 1) };
}
