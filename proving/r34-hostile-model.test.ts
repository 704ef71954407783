import { expect, test } from 'vitest';
import { channels, proveHostileModel } from './r34-hostile-model.ts';

test('a model that obeys everything it reads runs no call that changes something or reaches out, unless that call was approved', async () => {
  const report = await proveHostileModel({ injections: 5 * channels.length });
  expect(report.wrong).toEqual([]);
  expect(Object.values(report.attempts)).toEqual(channels.map(() => 5));
  expect(report.ran).toBeGreaterThan(0);
});
