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
