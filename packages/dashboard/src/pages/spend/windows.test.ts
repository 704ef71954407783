import { expect, test } from 'vitest';
import { dayLabel, daysOf, periodOf } from './windows.ts';

const now = new Date(2026, 10, 3, 15, 30).getTime();

test('a window of days starts at midnight and lists each day', () => {
  const week = periodOf(7, now);
  expect(new Date(week.sinceMs).getHours()).toBe(0);
  expect(daysOf(week)).toEqual(['2026-10-28', '2026-10-29', '2026-10-30', '2026-10-31', '2026-11-01', '2026-11-02', '2026-11-03']);
  expect(daysOf(periodOf(90, now))).toHaveLength(90);
});

test('24 hours span two days', () => {
  expect(periodOf(1, now)).toEqual({ sinceMs: now - 86_400_000, untilMs: now });
  expect(daysOf(periodOf(1, now))).toEqual(['2026-11-02', '2026-11-03']);
});

test('a day has a short and a long name', () => {
  expect(dayLabel('2026-11-03', 'short')).toMatch(/3/);
  expect(dayLabel('2026-11-03', 'long')).toMatch(/2026/);
});
