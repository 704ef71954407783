import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveStopUnderLoad, stopKinds } from './r12-stop-under-load.ts';

const seed = freshSeed();

test('a stop while fifty turns run drops nothing acknowledged, and ends in time', async () => {
  const { dropped, wrong, ...report } = await proveStopUnderLoad({ stops: 3, seed });
  expect({ dropped, wrong }, JSON.stringify(report)).toEqual({ dropped: [], wrong: [] });
  expect(report.running, `seed ${seed}`).toBeGreaterThanOrEqual(45);
  for (const kind of stopKinds) expect(report.acked[kind], `${kind}, seed ${seed}`).toBeGreaterThan(0);
}, 180_000);
