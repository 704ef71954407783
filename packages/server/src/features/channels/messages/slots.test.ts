import { expect, test } from 'vitest';
import { createSlots } from './slots.ts';

test('runs at most so many at the same time, in order, and continues after a failure', async () => {
  const inSlot = createSlots(2);
  const ends = Array.from({ length: 5 }, () => Promise.withResolvers<void>());
  const begun: number[] = [];
  const all = ends.map(({ promise }, index) =>
    inSlot(() => {
      begun.push(index);
      return promise;
    }),
  );
  const begins = async (count: number) => {
    await expect.poll(() => begun.length).toBe(count);
    expect(begun).toEqual([0, 1, 2, 3, 4].slice(0, count));
  };
  await begins(2);
  ends[1]?.reject(new Error('failed'));
  await expect(all[1]).rejects.toThrow('failed');
  await begins(3);
  for (const { resolve } of ends) resolve();
  await Promise.allSettled(all);
  await begins(5);
});
