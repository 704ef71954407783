import type { Clock } from './clock.ts';

export interface Quota {
  readonly allowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds until the oldest counted event is forgotten, and of a fixed window all others with it. */
  readonly resetMs: number;
}

export interface RateLimiterOptions {
  /** Read at each use, and so may be changed. */
  readonly limit: number | (() => number);
  readonly windowMs: number | (() => number);
  /**
   * True: no span of `windowMs` has more than `limit` events, which keeps a number for each. Otherwise a fixed window begins
   * with the first event, and two windows may meet in a burst.
   */
  readonly slides?: boolean;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Beyond it a key is dropped: the one whose window began first, or with `slides` the one whose last counted event is oldest. */
  readonly maxKeys?: number;
  /** Called for each refused event. */
  readonly onRefused?: (() => void) | undefined;
}

/**
 * Limits events per key within a window of time. Synchronous and without a timer per key: it runs before every request,
 * where a promise and a timer would cost more than the route.
 */
export class RateLimiter {
  readonly #options: RateLimiterOptions;
  /** Ordered by the beginnings of the windows, or with `slides` by their last events. */
  readonly #windows = new Map<string, Window>();

  constructor(options: RateLimiterOptions) {
    this.#options = options;
  }

  /** Value of the `RateLimit-Policy` header. */
  get policy(): string {
    return `${this.#limit};w=${Math.max(1, Math.ceil(this.#windowMs / 1000))}`;
  }

  /** Counts `cost` events of `key` if all of them fit. Refused ones are not counted. */
  take(key: string, cost = 1): Quota {
    const { slides = false, clock, onRefused } = this.#options;
    const [limit, windowMs] = [this.#limit, this.#windowMs];
    const now = clock.monotonic();
    let window = this.#windows.get(key);
    const used = window?.usedAt(now, slides) ?? 0;
    const allowed = used + cost <= limit;
    if (allowed) {
      if (window === undefined || used === 0) window = this.#open(key);
      else if (slides) this.#moveToEnd(key, window);
      window.add(now + windowMs, cost, slides);
    } else onRefused?.();
    return { allowed, limit, remaining: Math.max(0, limit - (allowed ? used + cost : used)), resetMs: (window?.endsMs ?? now + windowMs) - now };
  }

  /** Returns whether one more event fits, without counting it. */
  peek(key: string): Quota {
    const { slides = false, clock } = this.#options;
    const [limit, windowMs] = [this.#limit, this.#windowMs];
    const now = clock.monotonic();
    const window = this.#windows.get(key);
    const used = window?.usedAt(now, slides) ?? 0;
    return { allowed: used < limit, limit, remaining: Math.max(0, limit - used), resetMs: (window?.endsMs ?? now + windowMs) - now };
  }

  forget(key: string): void {
    this.#windows.delete(key);
  }

  get #limit(): number {
    const { limit } = this.#options;
    return typeof limit === 'function' ? limit() : limit;
  }

  get #windowMs(): number {
    const { windowMs } = this.#options;
    return typeof windowMs === 'function' ? windowMs() : windowMs;
  }

  #moveToEnd(key: string, window: Window): void {
    this.#windows.delete(key);
    this.#windows.set(key, window);
  }

  #open(key: string): Window {
    this.#windows.delete(key);
    if (this.#windows.size >= (this.#options.maxKeys ?? 20_000))
      for (const oldest of this.#windows.keys()) {
        this.#windows.delete(oldest);
        break;
      }
    const window = new Window();
    this.#windows.set(key, window);
    return window;
  }
}

/** The counted events of one key. */
class Window {
  #used = 0;
  /** When events are forgotten, oldest first: one entry for each if the window slides, one for all otherwise. */
  #ends: number[] = [];
  /** Index of the first entry that counts; earlier ones are removed once they are half of the list. */
  #head = 0;

  get endsMs(): number | undefined {
    return this.#ends[this.#head];
  }

  usedAt(now: number, slides: boolean): number {
    while (this.#head < this.#ends.length && (this.#ends[this.#head] ?? 0) <= now) {
      this.#head += 1;
      this.#used = slides ? this.#used - 1 : 0;
    }
    if (this.#head > 16 && this.#head * 2 > this.#ends.length) {
      this.#ends = this.#ends.slice(this.#head);
      this.#head = 0;
    }
    return this.#used;
  }

  add(endsMs: number, cost: number, slides: boolean): void {
    if (this.#ends.length === 0) this.#ends = [endsMs];
    else if (slides) this.#ends.push(endsMs);
    if (slides) for (let more = 1; more < cost; more += 1) this.#ends.push(endsMs);
    this.#used += cost;
  }
}
