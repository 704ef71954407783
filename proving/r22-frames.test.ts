import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveFrames } from './r22-frames.ts';

const seed = freshSeed();

test('any sequence of frames ends with the right close code, and the daemon stays up', async () => {
  const report = await proveFrames({ sequences: 540, seed });
  expect(report.wrong, `seed ${seed}`).toEqual([]);
  expect(report.ailment, `seed ${seed}`).toBe('');
  expect(Math.min(...Object.values(report.sequences))).toBe(20);
});

test('a build without a bound on messages is caught', async () => {
  const { wrong } = await proveFrames({
    sequences: 6,
    seed,
    broken: 'no-max-payload',
    kinds: ['huge length', 'fragments that are too much together'],
  });
  expect(wrong.length, `seed ${seed}`).toBe(6);
});
