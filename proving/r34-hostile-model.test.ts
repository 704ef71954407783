import { expect, test } from 'vitest';
import { channels, proveHostileModel } from './r34-hostile-model.ts';

test('a model that obeys everything it reads runs no call that changes something or reaches out, unless that call was approved', async () => {
  const report = await proveHostileModel({ injections: 5 * channels.length });
  expect(report.wrong).toEqual([]);
  expect(Object.values(report.attempts)).toEqual(channels.map(() => 5));
  expect(report.ran).toBeGreaterThan(0);
});

test('a build that relies on fences alone is caught', async () => {
  const { wrong } = await proveHostileModel({ injections: channels.length, broken: 'fence-without-policy' });
  expect(wrong.filter((line) => line.includes('ran without an approval')).length).toBeGreaterThan(channels.length / 2);
});
