import { describe, expect, it } from 'vitest';
import { createStepClock } from '@gatehouse/testkit';
import { repeat, settledWithin, sleep } from './timers.ts';

const turns = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('sleep', () => {
  it('waits for the clock', async () => {
    const clock = createStepClock();
    let over = false;
    const sleeping = sleep(clock, 100).then(() => (over = true));
    clock.advance(99);
    await turns();
    expect(over).toBe(false);
    clock.advance(1);
    await sleeping;
  });

  it('ends early when the signal is aborted, before or during the wait', async () => {
    const clock = createStepClock();
    const aborter = new AbortController();
    const sleeping = sleep(clock, 100, aborter.signal);
    aborter.abort();
    await sleeping;
    await sleep(clock, 100, aborter.signal);
    expect(clock.monotonic()).toBe(0);
  });
});

describe('settledWithin', () => {
  it('waits for all work, failed work too', async () => {
    const clock = createStepClock();
    const isSettled: string[] = [];
    const slow = turns().then(() => isSettled.push('slow'));
    await settledWithin(clock, 100, [slow, Promise.reject(new Error('no'))]);
    expect(isSettled).toEqual(['slow']);
  });

  it('waits no longer than it may', async () => {
    const clock = createStepClock();
    const waiting = settledWithin(clock, 100, [new Promise(() => {})]);
    clock.advance(100);
    await expect(waiting).resolves.toBeUndefined();
  });
});

describe('repeat', () => {
  it('runs after each interval, as long as a run has not asked for another', async () => {
    const clock = createStepClock();
    const at: number[] = [];
    await using _job = repeat({
      clock,
      everyMs: 100,
      firstMs: 10,
      run: () => {
        at.push(clock.monotonic());
        return at.length === 2 ? 5 : undefined;
      },
      onError: () => {},
    });
    for (let ms = 0; ms < 300; ms += 5) {
      clock.advance(5);
      await turns();
    }
    expect(at).toEqual([10, 110, 115, 215]);
  });

  it('continues after a failure, which it reports', async () => {
    const clock = createStepClock();
    const errors: unknown[] = [];
    await using _job = repeat({ clock, everyMs: 100, run: () => Promise.reject(new Error('no')), onError: (error) => errors.push(error) });
    for (let round = 0; round < 3; round += 1) {
      clock.advance(100);
      await turns();
    }
    expect(errors).toHaveLength(3);
  });

  it('is never run twice at the same time, and disposal waits for the running one', async () => {
    const clock = createStepClock();
    const gate = Promise.withResolvers<void>();
    let runs = 0;
    let isDone = false;
    const job = repeat({
      clock,
      everyMs: 100,
      firstMs: 0,
      async run() {
        runs += 1;
        await gate.promise;
        isDone = true;
      },
      onError: () => {},
    });
    clock.advance(1000);
    await turns();
    expect(runs).toBe(1);
    const disposed = job[Symbol.asyncDispose]();
    gate.resolve();
    await disposed;
    expect(isDone).toBe(true);
    clock.advance(1000);
    await turns();
    expect(runs).toBe(1);
  });
});
