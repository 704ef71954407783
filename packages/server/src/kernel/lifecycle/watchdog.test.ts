import { createStepClock } from '@gatehouse/testkit';
import { expect, it } from 'vitest';
import { beginHeartbeat, watchHeartbeat } from './watchdog.ts';

it('kills a process whose heartbeat stops for thirty seconds, and no other', () => {
  const main = createStepClock();
  const other = createStepClock();
  let ended = 0;
  using heart = beginHeartbeat(main);
  watchHeartbeat(heart.beats, { clock: other, end: () => (ended += 1) });
  for (let second = 0; second < 120; second += 1) {
    main.advance(1_000);
    other.advance(1_000);
  }
  expect(ended).toBe(0);
  other.advance(25_000);
  main.advance(1_000);
  other.advance(29_000);
  expect(ended).toBe(0);
  other.advance(6_000);
  expect(ended).toBe(1);
});

it('a process that was suspended continues', () => {
  const main = createStepClock();
  let ended = 0;
  using heart = beginHeartbeat(main);
  const due: (() => void)[] = [];
  const clock = { ...main, after: (_ms: number, run: () => void) => (due.push(run), () => {}) };
  watchHeartbeat(heart.beats, { clock, end: () => (ended += 1) });
  // However long the stop was, the timers of the thread fire once.
  for (let stop = 0; stop < 20; stop += 1) {
    due.shift()?.();
    main.advance(1_000);
  }
  expect(ended).toBe(0);
});
