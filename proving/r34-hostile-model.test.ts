import { expect, test } from 'vitest';
import { type Channel, channels, proveHostileModel } from './r34-hostile-model.ts';

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

test.each<[broken: string, caught: Channel[]]>([
  ['every-file-clean', ['file', 'text in files']],
  ['digest-without-files', ['script']],
])('the build %s is caught', async (broken, caught) => {
  const { wrong } = await proveHostileModel({ injections: 2 * channels.length, only: caught, broken });
  for (const channel of caught) expect(wrong).toContainEqual(expect.stringMatching(new RegExp(`^${channel} \\d+: .* without an approval$`)));
});
