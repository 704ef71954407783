import { expect, it } from 'vitest';
import { connectionsWithin, descriptorLimit } from './descriptors.ts';

it('keeps connections below the limit of descriptors, leaving a second socket for each', () => {
  expect(connectionsWithin(10_000, undefined)).toBe(10_000);
  expect(connectionsWithin(10_000, 1_048_576)).toBe(10_000);
  expect(connectionsWithin(10_000, 1024)).toBe(456);
  expect(connectionsWithin(10_000, 256)).toBe(72);
  expect(connectionsWithin(10_000, 64)).toBe(16);
  expect(connectionsWithin(8, 64)).toBe(8);
});

it.runIf(process.platform === 'linux')('reads the limit of this process', () => {
  expect(descriptorLimit()).toBeGreaterThan(0);
});
