import type { Clock } from '../kernel/clock.ts';

export interface Quota {
  readonly allowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds until the window ends. */
  readonly resetMs: number;
}

export interface RateLimiter {
  /** Takes `cost` from the window of `key`. Refused calls cost nothing. */
  take(key: string, cost?: number): Quota;
  /** Returns what `take` would return now, without taking anything. */
  peek(key: string): Quota;
  /** Value of the `RateLimit-Policy` header. */
  readonly policy: string;
}

interface Window {
  used: number;
  endsMs: number;
}

/**
 * Fixed windows per key (http-gateway.md §8), at most `maxKeys` of them, the oldest window dropped first. Synchronous and
 * without a timer per key: it runs before every request, where a promise and a timer would cost more than the route.
 */
export function createRateLimiter(options: {
  readonly windowMs: number;
  readonly maxRequests: number;
  readonly clock: Clock;
  readonly maxKeys?: number;
  /** Called for each refused call. */
  readonly onRefused?: (() => void) | undefined;
}): RateLimiter {
  const { windowMs, maxRequests, clock, maxKeys = 20_000, onRefused } = options;
  const windows = new Map<string, Window>();
  return {
    policy: `${maxRequests};w=${Math.max(1, Math.ceil(windowMs / 1000))}`,
    take(key, cost = 1) {
      const now = clock.monotonic();
      let window = windows.get(key);
      if (window === undefined || window.endsMs <= now) {
        // Deleted first, so that the map stays ordered by the ends of the windows.
        windows.delete(key);
        if (windows.size >= maxKeys)
          for (const oldest of windows.keys()) {
            windows.delete(oldest);
            break;
          }
        window = { used: 0, endsMs: now + windowMs };
        windows.set(key, window);
      }
      const allowed = window.used + cost <= maxRequests;
      if (allowed) window.used += cost;
      else onRefused?.();
      return { allowed, limit: maxRequests, remaining: maxRequests - window.used, resetMs: window.endsMs - now };
    },
    peek(key) {
      const now = clock.monotonic();
      const window = windows.get(key);
      const isOpen = window !== undefined && window.endsMs > now;
      const used = isOpen ? window.used : 0;
      return { allowed: used < maxRequests, limit: maxRequests, remaining: maxRequests - used, resetMs: isOpen ? window.endsMs - now : windowMs };
    },
  };
}

/**
 * Counts events per key within the last `windowMs`, exactly (a sliding window): at most `max` of them. Used where a burst
 * across a boundary must not count as two windows.
 */
export class SlidingWindow {
  #times: number[] = [];
  /** Index of the window's start in `#times`; older entries are dropped once they are half of the list. */
  #head = 0;
  readonly #max: number;
  readonly #windowMs: number;

  constructor(max: number, windowMs: number) {
    this.#max = max;
    this.#windowMs = windowMs;
  }

  /** Returns the milliseconds until one more fits; 0 when it does now. */
  waitMs(now: number): number {
    const times = this.#times;
    while (this.#head < times.length && (times[this.#head] ?? 0) + this.#windowMs <= now) this.#head += 1;
    if (this.#head > 16 && this.#head * 2 > times.length) {
      this.#times = times.slice(this.#head);
      this.#head = 0;
    }
    if (this.#times.length - this.#head < this.#max) return 0;
    return (this.#times[this.#times.length - this.#max] ?? 0) + this.#windowMs - now;
  }

  add(now: number): void {
    this.#times.push(now);
  }

  /** Counts one event when it fits; otherwise returns the milliseconds to wait. */
  take(now: number): number {
    const wait = this.waitMs(now);
    if (wait === 0) this.add(now);
    return wait;
  }
}
