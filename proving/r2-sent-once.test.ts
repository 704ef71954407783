import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveSentOnce, sendings } from './r2-sent-once.ts';

const seed = freshSeed();

test('outward messages are sent once, through kills at any moment', async () => {
  const { sent, unknown, kills, ...report } = await proveSentOnce({
    rounds: 3,
    seed,
    until: (soFar) => sendings.every((kind) => soFar.sent[kind] > 0) && soFar.unknown > 0,
  });
  expect(report).toEqual({ seed, doubled: [], missing: [], untrue: [] });
  for (const kind of sendings) expect(sent[kind], `${kind}, ${kills} kills, seed ${seed}`).toBeGreaterThan(0);
  expect(unknown, `${kills} kills, seed ${seed}`).toBeGreaterThan(0);
}, 180_000);
