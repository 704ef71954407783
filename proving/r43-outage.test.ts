import { expect, test } from 'vitest';
import { liveThroughOutage } from './lib/outage.ts';

const few = { webhooks: 6, messages: 3, oneShots: 2, recurring: 1, minutes: 6, patienceMin: 40 };

test('work accepted while its provider fails runs afterwards, once each, and no job is paused', async () => {
  const { wrong, ran, refused } = await liveThroughOutage(few);
  expect(wrong).toEqual([]);
  expect(ran).toEqual({ webhook: 6, message: 3, once: 2, recurring: 1 });
  expect(refused).toBeGreaterThan(5);
});
