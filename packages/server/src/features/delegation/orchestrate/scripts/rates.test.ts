import { expect, test } from 'vitest';
import { CallRates } from './rates.ts';

test('each script and each root have rate limits; a refusal returns the delay', () => {
  let now = 0;
  const rates = new CallRates({ monotonic: () => now }, () => ({ perRootPerSecond: 3, perSocketPerSecond: 2, connectsPerMinute: 4 }));
  expect([rates.take('a', 'root'), rates.take('a', 'root')]).toEqual([undefined, undefined]);
  expect(rates.take('a', 'root')).toBe(1000);
  expect(rates.take('b', 'root')).toBeUndefined();
  now = 400;
  expect(rates.take('b', 'root')).toBe(600);
  expect(rates.take('c', 'other')).toBeUndefined();
  now = 1000;
  expect([rates.take('a', 'root'), rates.take('a', 'root')]).toEqual([undefined, undefined]);
  now = 2000;
  // Four within the minute are the limit, and refused calls are not counted.
  expect(rates.take('a', 'root')).toBe(58_000);
  now = 60_000;
  expect(rates.take('a', 'root')).toBeUndefined();
  rates.forget('a', 'root', true);
  expect(rates.take('a', 'root')).toBeUndefined();
});
