import { expect, test } from 'vitest';
import { proveCatchUp } from './r10-catch-up.ts';

test('overdue jobs start one by one, and none is left out', async () => {
  const { wrong, ...report } = await proveCatchUp({ jobs: 25, speed: 30 });
  expect(wrong).toEqual([]);
  expect(report.overdue).toBe(25);
  expect(report.burst).toBeLessThanOrEqual(5);
  expect(report.atOnce).toBeGreaterThan(1);
  expect(report.atOnce).toBeLessThanOrEqual(5);
});
