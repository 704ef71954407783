import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveMalformed } from './r21-malformed.ts';

const seed = freshSeed();

test('nothing malformed makes the daemon fail, hang or crash', async () => {
  const report = await proveMalformed({ raw: 300, json: 500, seed });
  expect(report.wrong).toEqual([]);
  expect(report.ailment, `seed ${seed}`).toBe('');
  const { answers } = report;
  // Both kinds reached their targets.
  for (const kind of ['200', '400', '404', '-32700', '-32602', 'ok']) expect(answers[kind] ?? 0, `${kind}, seed ${seed}`).toBeGreaterThan(5);
});
