import { expect, test } from 'vitest';
import { liveThroughWrongClock } from './lib/wrong-clock.ts';

test('one start with the clock years ahead deletes nothing and repeats nothing', async () => {
  expect(await liveThroughWrongClock({ each: 1, offDays: [1095], minutes: 2 })).toEqual({ repeats: 4, wrong: [] });
});
