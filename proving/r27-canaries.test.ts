import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveCanaries } from './r27-canaries.ts';

const seed = freshSeed();

test('no secret leaks, however it is padded or cut', async () => {
  const report = await proveCanaries({ seed });
  expect(report.found, `seed ${seed}`).toEqual([]);
  expect(report.unprovoked, `seed ${seed}`).toEqual([]);
  expect(report.canaries).toBeGreaterThanOrEqual(30);
  expect(report.surfaces).toBeGreaterThan(40);
});

test('a build that shows differences of config.yaml as they are, and one whose redactor skips long texts, are caught', async () => {
  const { found } = await proveCanaries({ seed, failures: false, brief: true, broken: ['differences-as-they-are', 'redactor-with-a-limit'] });
  expect(found, `seed ${seed}`).toEqual(
    expect.arrayContaining([
      'answer of config.diff holds the secret of a key given to config.patch',
      'answer of config.read holds the secret of a provider key',
      'the file of a result of a sub-agent holds the secret of a provider key',
    ]),
  );
});
