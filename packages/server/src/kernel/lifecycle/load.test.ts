import { createStepClock } from '@gatehouse/testkit';
import { expect, it } from 'vitest';
import { watchLoad } from './load.ts';

/** A step clock whose timers can be late, as they are when the event loop is blocked. */
function lateClock() {
  const clock = createStepClock();
  let lateMs = 0;
  return {
    ...clock,
    after: (ms: number, run: () => void) => clock.after(ms + lateMs, run),
    setLate: (ms: number) => (lateMs = ms),
  };
}

it('refuses work after two consecutive late seconds, and accepts it again after a good one', () => {
  const clock = lateClock();
  const notices: (string | undefined)[] = [];
  using load = watchLoad({ clock, onChange: (reason) => notices.push(reason), heapShare: () => 0.1, cpuMs: () => clock.monotonic() * 0.8 });
  clock.advance(2_000);
  expect([load.overload(), load.loopDelayMs()]).toEqual([undefined, 0]);
  clock.setLate(300);
  clock.advance(2_800);
  expect(load.loopDelayMs()).toBe(300);
  expect(load.overload()).toBeUndefined();
  clock.advance(2_200);
  expect(load.overload()).toMatch(/more work/);
  clock.setLate(0);
  clock.advance(5_000);
  expect(load.overload()).toBeUndefined();
  expect(notices).toEqual([expect.stringMatching(/more work/), undefined]);
});

it('accepts work while only other programs make it late', () => {
  const clock = lateClock();
  using load = watchLoad({ clock, onChange: () => {}, heapShare: () => 0.1, cpuMs: () => clock.monotonic() * 0.2 });
  clock.setLate(300);
  clock.advance(10_000);
  expect([load.loopDelayMs(), load.overload()]).toEqual([300, undefined]);
});

it('does not count one late second as overload', () => {
  const clock = lateClock();
  const notices: (string | undefined)[] = [];
  using load = watchLoad({ clock, onChange: (reason) => notices.push(reason), heapShare: () => 0.1, cpuMs: () => clock.monotonic() * 0.8 });
  clock.setLate(300);
  clock.advance(600);
  clock.setLate(0);
  clock.advance(10_000);
  expect([load.overload(), notices]).toEqual([undefined, []]);
});

it('refuses while the heap is nearly full', () => {
  const clock = createStepClock();
  let share = 0.9;
  const notices: (string | undefined)[] = [];
  using load = watchLoad({ clock, onChange: (reason) => notices.push(reason), heapShare: () => share });
  clock.advance(1_000);
  expect(load.overload()).toMatch(/memory/);
  share = 0.5;
  clock.advance(1_000);
  expect(load.overload()).toBeUndefined();
  expect(notices).toHaveLength(2);
});
