import { expect, test } from 'vitest';
import { RollingSum } from './rolling-sum.ts';

const minute = 60_000;

test('holds no less than the exact window and at most one step more', () => {
  // mulberry32: the same steps at every run.
  let state = 7;
  const random = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const sum = new RollingSum(minute, 60);
  const used: { readonly atMs: number; readonly tokens: number }[] = [];
  let nowMs = 1_790_000_000_000;
  for (let n = 0; n < 5000; n += 1) {
    nowMs += Math.floor(random() ** 6 * 2 * 60 * minute);
    const tokens = Math.floor(random() * 1000);
    sum.add(nowMs, nowMs, tokens, tokens * 3);
    used.push({ atMs: nowMs, tokens });
    const since = (ms: number) => used.filter(({ atMs }) => atMs > nowMs - ms).reduce((total, one) => total + one.tokens, 0);
    const now = sum.used(nowMs, 'tokens');
    expect(now).toBeGreaterThanOrEqual(since(60 * minute));
    expect(now).toBeLessThanOrEqual(since(61 * minute));
    expect(sum.used(nowMs, 'nano')).toBe(now * 3);
    while ((used[0]?.atMs ?? nowMs) <= nowMs - 61 * minute) used.shift();
  }
});

test('says when so much of it will have left', () => {
  const sum = new RollingSum(minute, 60);
  const start = 1_790_000_040_000;
  sum.add(start, start, 10, 0);
  sum.add(start + 10 * minute, start + 10 * minute, 5, 0);
  const now = start + 20 * minute;
  const first = sum.freesInMs(now, 'tokens', 10) ?? 0;
  const second = sum.freesInMs(now, 'tokens', 11) ?? 0;
  expect(sum.freesInMs(now, 'tokens', 16)).toBeUndefined();
  expect(second - first).toBe(10 * minute);
  expect(sum.used(now + first - 1, 'tokens')).toBe(15);
  expect(sum.used(now + first, 'tokens')).toBe(5);
  expect(sum.used(now + second, 'tokens')).toBe(0);
});

test('inserts earlier usage, and skips what is too old', () => {
  const sum = new RollingSum(minute, 60);
  const now = 1_790_000_000_000;
  sum.add(now - 59 * minute, now, 7, 0);
  sum.add(now - 90 * minute, now, 100, 0);
  expect(sum.used(now, 'tokens')).toBe(7);
  expect(sum.used(now + 3 * minute, 'tokens')).toBe(0);
});
