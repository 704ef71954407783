import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveCrossOwner } from './r24-cross-owner.ts';

const seed = freshSeed();

test('foreign things are answered like nonexistent ones, in bytes and in time', async () => {
  const report = await proveCrossOwner({ pairs: 12, seed });
  expect(report.wrong, `seed ${seed}`).toEqual([]);
  expect(report.controls).toBeGreaterThan(50);
  expect(report.timed.inputs).toBeGreaterThan(10);
});

test('a build that does not check the owner is caught', async () => {
  const { wrong } = await proveCrossOwner({ pairs: 0, only: 'session.h', seed, broken: 'missing-owner-check' });
  expect(wrong.filter((line) => line.startsWith('session.history conversationRef × rpc'))).not.toEqual([]);
  expect(wrong.filter((line) => line.includes(' × none'))).toEqual([]);
});

test('a build that takes longer for hidden things is caught', async () => {
  const { wrong } = await proveCrossOwner({ pairs: 25, only: 'session.e', seed, broken: 'slow-for-strangers' });
  expect(
    wrong.filter((line) => line.startsWith('session.export conversationRef: foreign takes')),
    `seed ${seed}`,
  ).not.toEqual([]);
});
