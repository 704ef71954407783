import { describe, expect, it } from 'vitest';
import { createCircuitBreakers, type TurnHealth } from './circuit-breaker.ts';
import { createSteppedClock } from './testing.ts';

const config = { failures: 3, resetMs: 1000 };

function setUp() {
  const clock = createSteppedClock();
  const breakers = createCircuitBreakers(clock);
  const begin = (agentId = 'a') => {
    const admission = breakers.admit(agentId, config);
    if (!('settle' in admission)) expect.fail(`not admitted for ${admission.retryAfterMs} ms`);
    return admission;
  };
  return { clock, begin, refused: () => breakers.admit('a', config), run: (health: TurnHealth, agentId = 'a') => begin(agentId).settle(health) };
}

describe('circuit breaker', () => {
  it('opens at the given number of failures in a row, for that agent only', () => {
    const { run, refused, begin } = setUp();
    run('failure');
    run('failure');
    run('success');
    run('failure');
    run('neutral');
    run('failure');
    begin();
    run('failure');
    expect(refused()).toEqual({ retryAfterMs: 1000 });
    begin('b');
  });

  it('lets one try after the pause: success closes it, failure opens it anew, anything else leaves the next one to try', () => {
    const { run, refused, clock, begin } = setUp();
    for (let index = 0; index < 3; index += 1) run('failure');
    clock.step(1000);
    const probe = begin();
    expect(refused()).toEqual({ retryAfterMs: 1000 });
    probe.settle('failure');
    expect(refused()).toEqual({ retryAfterMs: 1000 });
    clock.step(1000);
    begin().settle('neutral');
    begin().settle('success');
    run('failure');
    begin();
  });

  it('is not held open by turns that began before it opened', () => {
    const { refused, clock, begin } = setUp();
    const early = Array.from({ length: 6 }, () => begin());
    for (const admission of early.slice(0, 3)) admission.settle('failure');
    clock.step(600);
    for (const admission of early.slice(3)) admission.settle('failure');
    expect(refused()).toEqual({ retryAfterMs: 400 });
  });
});
