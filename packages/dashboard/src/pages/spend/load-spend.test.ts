import { expect, test } from 'vitest';
import { stackDays, type Usage } from './load-spend.ts';

const sums = { calls: 1, inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, savedUsd: 0, unpriced: 0 };
const report = (rows: readonly (readonly [day: string, name: string | null, costUsd: number | null])[]): Usage => ({
  sinceMs: 0,
  untilMs: 1,
  timeZone: 'UTC',
  truncated: false,
  totals: { ...sums, costUsd: 0 },
  rows: rows.map(([day, name, costUsd]) => ({ ...sums, costUsd, keys: [day, name] })),
});
const period = { sinceMs: new Date(2026, 10, 1).getTime(), untilMs: new Date(2026, 10, 3, 12).getTime() };
const stack = (rows: Parameters<typeof report>[0]) =>
  stackDays({ period, byDayAndModel: report(rows), byDayAndAgent: report([]) }, 'model', ({ costUsd }) => costUsd ?? 0);

test('has a column for each day and a series for each model, largest first', () => {
  const { series, columns } = stack([
    ['2026-11-01', 'small', 1],
    ['2026-11-01', 'large', 5],
    ['2026-11-03', 'small', 2],
    ['2026-11-03', null, null],
  ]);
  expect(series).toEqual(['large', 'small', 'unknown']);
  expect(columns.map(({ key, values }) => [key, values])).toEqual([
    ['2026-11-01', [5, 1, 0]],
    ['2026-11-02', [0, 0, 0]],
    ['2026-11-03', [0, 2, 0]],
  ]);
});

test('merges models beyond the number of colours into one series without losing any', () => {
  const { series, columns } = stack(Array.from({ length: 9 }, (_, at) => ['2026-11-02', `model-${at}`, at + 1] as const));
  expect(series).toEqual(['model-8', 'model-7', 'model-6', 'model-5', 'model-4', 'others']);
  expect(columns[1]?.values).toEqual([9, 8, 7, 6, 5, 10]);
});
