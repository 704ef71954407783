import type { Clock } from '@gatehouse/server';

/** A clock that only moves when told to; timers that fall due run in order. */
export interface StepClock extends Clock {
  advance(ms: number): void;
}

export function createStepClock(startMs = 1_790_000_000_000): StepClock {
  let now = startMs;
  let timers: { readonly at: number; readonly run: () => void }[] = [];
  return {
    now: () => now,
    monotonic: () => now - startMs,
    after(ms, run) {
      const timer = { at: now + ms, run };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
    advance(ms) {
      const end = now + ms;
      for (;;) {
        const due = timers.filter((timer) => timer.at <= end).toSorted((a, b) => a.at - b.at)[0];
        if (due === undefined) break;
        timers = timers.filter((timer) => timer !== due);
        now = Math.max(now, due.at);
        due.run();
      }
      now = end;
    },
  };
}
