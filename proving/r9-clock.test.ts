import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveClock } from './r9-clock.ts';

const seed = freshSeed();

test('the times of schedules match an oracle, and none comes twice when clocks are stepped', async () => {
  const report = await proveClock({ cases: 400, clocks: 20, seed });
  expect(report.wrong, `seed ${seed}`).toEqual([]);
  expect(report.zones).toBeGreaterThanOrEqual(20);
  expect(report.times).toBeGreaterThan(500);
  expect(report.stepped.times).toBeGreaterThan(20);
});

test('a build that adds to the time of day as if clocks never changed is caught', async () => {
  const { wrong } = await proveClock({ cases: 400, clocks: 0, seed, broken: 'naive-add' });
  expect(wrong.length, `seed ${seed}`).toBeGreaterThan(5);
});
