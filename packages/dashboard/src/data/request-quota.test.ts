import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RequestQuota } from './request-quota.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

const headers = (remaining: number, reset = 40) =>
  new Headers({ 'ratelimit-limit': '100', 'ratelimit-remaining': String(remaining), 'ratelimit-reset': String(reset) });

test('reloads after events wait longer the less of the limit is left, until the window ends', () => {
  const quota = new RequestQuota();
  const pauses = [100, 50, 25, 0].map((remaining) => {
    quota.note(headers(remaining));
    return quota.pauseMs();
  });
  expect(pauses).toEqual([0, 0, 20_000, 40_000]);
  vi.advanceTimersByTime(39_000);
  expect(quota.pauseMs()).toBe(1_000);
  vi.advanceTimersByTime(1_000);
  expect(quota.pauseMs()).toBe(0);
});

test('answers without these headers change nothing', () => {
  const quota = new RequestQuota();
  quota.note(headers(0));
  quota.note(new Headers());
  quota.note(new Headers({ 'ratelimit-limit': 'x', 'ratelimit-remaining': '1', 'ratelimit-reset': '1' }));
  expect(quota.pauseMs()).toBe(40_000);
});
