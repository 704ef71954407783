import type { Clock } from '@gatehouse/server';

/** A clock that only moves when advanced; due timers run in order. */
export interface StepClock extends Clock {
  advance(ms: number): void;
  /** Somebody sets the wall clock, back or forward: no time passes, and timers wait as long as before. */
  step(ms: number): void;
}

export function createStepClock(startMs = 1_790_000_000_000): StepClock {
  let elapsed = 0;
  let setBy = 0;
  let timers: { readonly at: number; readonly run: () => void }[] = [];
  return {
    now: () => startMs + setBy + elapsed,
    ageNow: () => startMs + setBy + elapsed,
    monotonic: () => elapsed,
    after(ms, run) {
      const timer = { at: elapsed + ms, run };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
    advance(ms) {
      const end = elapsed + ms;
      for (;;) {
        const due = timers.filter((timer) => timer.at <= end).toSorted((a, b) => a.at - b.at)[0];
        if (due === undefined) break;
        timers = timers.filter((timer) => timer !== due);
        elapsed = Math.max(elapsed, due.at);
        due.run();
      }
      elapsed = end;
    },
    step(ms) {
      setBy += ms;
    },
  };
}
