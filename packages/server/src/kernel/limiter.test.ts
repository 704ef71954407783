import { createStepClock } from '@gatehouse/testkit';
import { describe, expect, it } from 'vitest';
import { RateLimiter } from './limiter.ts';

describe('a fixed window', () => {
  it('begins with the first event and forgets all events together', () => {
    const clock = createStepClock();
    const limiter = new RateLimiter({ windowMs: 1_000, limit: 2, clock });
    expect(limiter.peek('a')).toEqual({ allowed: true, limit: 2, remaining: 2, resetMs: 1_000 });
    expect(limiter.take('a')).toEqual({ allowed: true, limit: 2, remaining: 1, resetMs: 1_000 });
    clock.advance(400);
    expect(limiter.take('a')).toMatchObject({ allowed: true, remaining: 0, resetMs: 600 });
    expect(limiter.take('a')).toMatchObject({ allowed: false, remaining: 0, resetMs: 600 });
    expect(limiter.peek('a')).toMatchObject({ allowed: false, remaining: 0, resetMs: 600 });
    expect(limiter.take('b')).toMatchObject({ allowed: true });
    clock.advance(600);
    expect(limiter.take('a')).toMatchObject({ allowed: true, remaining: 1, resetMs: 1_000 });
    expect(limiter.policy).toBe('2;w=1');
  });

  it('counts a refused cost as nothing and reports it', () => {
    let refusals = 0;
    const limiter = new RateLimiter({ windowMs: 1_000, limit: 3, clock: createStepClock(), onRefused: () => (refusals += 1) });
    expect(limiter.take('a', 4)).toEqual({ allowed: false, limit: 3, remaining: 3, resetMs: 1_000 });
    expect([limiter.take('a', 3).allowed, limiter.take('a').allowed, refusals]).toEqual([true, false, 2]);
  });
});

describe('a sliding window', () => {
  it('allows no more events than its limit in any span', () => {
    const clock = createStepClock();
    const limiter = new RateLimiter({ windowMs: 100, limit: 3, slides: true, clock });
    const taken: number[] = [];
    for (; clock.monotonic() < 1_000; clock.advance(7)) if (limiter.take('a').allowed) taken.push(clock.monotonic());
    for (const [index, at] of taken.entries()) expect(taken.slice(index).filter((other) => other < at + 100).length).toBeLessThanOrEqual(3);
    expect(taken.length).toBeGreaterThanOrEqual(27);
  });

  it('forgets events one by one', () => {
    const clock = createStepClock();
    const limiter = new RateLimiter({ windowMs: 1_000, limit: 3, slides: true, clock });
    limiter.take('a');
    clock.advance(300);
    expect(limiter.take('a', 2)).toMatchObject({ allowed: true, remaining: 0, resetMs: 700 });
    clock.advance(700);
    expect(limiter.peek('a')).toMatchObject({ allowed: true, remaining: 1, resetMs: 300 });
    expect(limiter.take('a', 2)).toMatchObject({ allowed: false, remaining: 1, resetMs: 300 });
    clock.advance(300);
    expect(limiter.peek('a')).toMatchObject({ remaining: 3 });
  });
});

it.each([true, false])('keeps a bounded number of keys, those whose windows began last (sliding: %s)', (slides) => {
  const clock = createStepClock();
  const limiter = new RateLimiter({ windowMs: 1_000, limit: 1, slides, clock, maxKeys: 2 });
  for (const key of ['a', 'b', 'c']) limiter.take(key);
  expect([limiter.peek('c').allowed, limiter.peek('b').allowed, limiter.peek('a').allowed]).toEqual([false, false, true]);
  clock.advance(1_000);
  for (const key of ['b', 'a']) limiter.take(key);
  expect([limiter.peek('a').allowed, limiter.peek('b').allowed]).toEqual([false, false]);
  limiter.forget('a');
  expect(limiter.take('a').allowed).toBe(true);
});

it('drops the key whose last event is oldest, not one that is counted all the time', () => {
  const clock = createStepClock();
  const limiter = new RateLimiter({ windowMs: 1_000, limit: 3, slides: true, clock, maxKeys: 2 });
  for (const key of ['guesser', 'other', 'guesser', 'another', 'guesser', 'third']) {
    limiter.take(key);
    clock.advance(10);
  }
  expect(limiter.peek('guesser').remaining).toBe(0);
});
