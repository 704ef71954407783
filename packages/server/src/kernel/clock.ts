import { uptime } from 'node:os';

/** The one source of time; tests pass their own. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /**
   * The time by which ages are measured: deletion, expiry and repeat detection by age use it. Not later than `now`,
   * and never far ahead just because the clock is (`features/age-clock`).
   */
  ageNow(): number;
  /** Milliseconds of a clock that never steps; for durations. */
  monotonic(): number;
  /** Calls `run` once after `ms`; the returned function cancels. The timer does not keep the process alive. */
  after(ms: number, run: () => void): () => void;
}

const dayMs = 86_400_000;
let known = { day: Number.NaN, text: '' };

/** Returns the day in UTC as `YYYY-MM-DD`. Every turn asks for it, so the last answer is cached. */
export function today(clock: Clock): string {
  const day = Math.floor(clock.now() / dayMs);
  if (day !== known.day)
    known = {
      day,
      text: Temporal.Instant.fromEpochMilliseconds(day * dayMs)
        .toString()
        .slice(0, 10),
    };
  return known.text;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  ageNow: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/**
 * Returns milliseconds since the machine started, in steps of 10: the same in all its processes, and, unlike `monotonic`, counting
 * the time of a suspension.
 */
export function machineUptimeMs(): number {
  return Math.round(uptime() * 1000);
}

/**
 * Settles as `work` does and keeps the process alive until then. Timers of `systemClock` do not: a program whose only pending work
 * is one of them would exit before it has run (Node: "unsettled top-level await", code 13).
 */
export async function keepProcessAlive<T>(work: Promise<T>): Promise<T> {
  const timer = setInterval(() => {}, 2 ** 31 - 1);
  try {
    return await work;
  } finally {
    clearInterval(timer);
  }
}
