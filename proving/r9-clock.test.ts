import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveClock } from './r9-clock.ts';

const seed = freshSeed();

test('the times of schedules match an oracle, and none comes twice when clocks are stepped', async () => {
  const report = await proveClock({ cases: 120, clocks: 6, seed });
  expect(report.wrong, `seed ${seed}`).toEqual([]);
  expect(report.zones).toBeGreaterThanOrEqual(20);
  expect(report.times).toBeGreaterThan(150);
  expect(report.stepped.times).toBeGreaterThan(2);
});
