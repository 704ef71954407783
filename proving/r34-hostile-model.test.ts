import { expect, test } from 'vitest';
import { channels, proveHostileModel } from './r34-hostile-model.ts';

test('a model that obeys everything it reads runs no call that changes something or reaches out, unless that call was approved', async () => {
  const report = await proveHostileModel({ injections: 5 * channels.length });
  expect(report.wrong).toEqual([]);
  expect(Object.values(report.attempts)).toEqual(channels.map(() => 5));
  expect(report.ran).toBeGreaterThan(0);
});

test('a build that relies on fences alone is caught', async () => {
  const { wrong } = await proveHostileModel({ injections: 2 * channels.length, broken: 'fence-without-policy' });
  expect(wrong.filter((line) => line.includes('ran without an approval')).length).toBeGreaterThan(channels.length);
});

test.each([
  ['every-file-clean', ['file', 'text in files']],
  ['digest-without-files', ['script']],
])('the build %s is caught', async (broken, caught) => {
  const { wrong } = await proveHostileModel({ injections: 2 * channels.length, broken });
  for (const channel of caught) expect(wrong.filter((line) => line.startsWith(channel)).length).toBeGreaterThan(0);
});
