import type { Clock } from '@gatehouse/server';

/** A clock that only moves when a test moves it. */
export interface StepClock extends Clock {
  /** Time passes, and due timers run at their times, in order. */
  advance(ms: number): void;
  /** The machine sleeps: each timer that fell due meanwhile runs once, at the end. */
  leap(ms: number): void;
  /** Somebody sets the wall clock, back or forward: no time passes, and timers wait as long as before. */
  step(ms: number): void;
  /** Returns the number of pending timers. */
  pending(): number;
}

interface Timer {
  readonly at: number;
  readonly run: () => void;
}

export function createStepClock(startMs = 1_790_000_000_000): StepClock {
  let elapsed = 0;
  let setBy = 0;
  const timers = new Set<Timer>();
  const due = (end: number) => [...timers].filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at);
  /** Returns the first due timer, of several at one time the oldest. */
  function next(end: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of timers) if (timer.at <= end && (first === undefined || timer.at < first.at)) first = timer;
    return first;
  }
  const wallTime = () => startMs + setBy + elapsed;
  return {
    now: wallTime,
    ageNow: wallTime,
    monotonic: () => elapsed,
    after(ms, run) {
      const timer = { at: elapsed + ms, run };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    advance(ms) {
      const end = elapsed + ms;
      for (let timer = next(end); timer !== undefined; timer = next(end)) {
        timers.delete(timer);
        elapsed = Math.max(elapsed, timer.at);
        timer.run();
      }
      elapsed = end;
    },
    leap(ms) {
      elapsed += ms;
      // A timer may cancel another one.
      for (const timer of due(elapsed)) if (timers.delete(timer)) timer.run();
    },
    step(ms) {
      setBy += ms;
    },
    pending: () => timers.size,
  };
}
