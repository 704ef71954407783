import { expect, test } from 'vitest';
import { liveThroughOutage } from './lib/outage.ts';
import { proveOutage } from './r43-outage.ts';

const few = { webhooks: 6, messages: 3, oneShots: 2, recurring: 1, minutes: 6, patienceMin: 40 };

test('work that is accepted while its provider fails runs afterwards, once each, and no job is paused', async () => {
  const { wrong, ran, refused } = await liveThroughOutage(few);
  expect(wrong).toEqual([]);
  expect(ran).toEqual({ webhook: 6, message: 3, once: 2, recurring: 1 });
  expect(refused).toBeGreaterThan(5);
});

test('a build that counts each wait as an attempt is caught', async () => {
  // Enough load that the breaker opens and items are tried more than five times.
  const load = { webhooks: 20, messages: 5, oneShots: 5, recurring: 2, minutes: 10, patienceMin: 2 };
  const { wrong } = await proveOutage({ ...load, broken: 'wait-as-attempt' });
  expect(wrong.filter((line) => line.endsWith('is failed')).length).toBeGreaterThan(0);
});
