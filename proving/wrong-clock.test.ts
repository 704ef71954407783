import { expect, test } from 'vitest';
import { liveThroughWrongClock } from './lib/wrong-clock.ts';
import { proveWrongClock } from './wrong-clock.ts';

test('one start with the clock years ahead deletes nothing and repeats nothing; a build that believes it is caught', async () => {
  const load = { each: 1, offDays: [1095], minutes: 2 };
  const [whole, broken] = await Promise.all([liveThroughWrongClock(load), proveWrongClock({ ...load, broken: 'ages-by-the-clock' })]);
  expect(whole).toEqual({ repeats: 4, wrong: [] });
  expect(broken.wrong.join('\n')).toMatch(/ran 2 times/);
});
