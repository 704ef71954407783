import { expect, test } from 'vitest';
import { createSlots } from './slots.ts';

const settle = () => new Promise((resolve) => setImmediate(resolve));

test('runs so many at once, the others in order, and refuses calls beyond the queue limit', async () => {
  const limited = createSlots({ running: 2, waiting: 2 });
  const { signal } = new AbortController();
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const work = (n: number) =>
    limited(signal, async () => {
      begun.push(n);
      await new Promise<void>((resolve) => ends.push(resolve));
    });
  const all = [0, 1, 2, 3].map(work);
  await settle();
  expect(begun).toEqual([0, 1]);
  await expect(work(4)).rejects.toMatchObject({ code: 'unavailable', details: { retryAfterMs: 1000 } });
  ends.shift()?.();
  await settle();
  expect(begun).toEqual([0, 1, 2]);
  while (begun.length < 4 || ends.length > 0) {
    ends.shift()?.();
    await settle();
  }
  await Promise.all(all);
  await limited(signal, async () => begun.push(5));
  expect(begun).toEqual([0, 1, 2, 3, 5]);
});

test('aborting while waiting frees the slot in the queue, and so does a failure', async () => {
  const limited = createSlots({ running: 1, waiting: 5 });
  const controller = new AbortController();
  let fail: (error: Error) => void = () => undefined;
  const first = limited(new AbortController().signal, () => new Promise<void>((_, reject) => (fail = reject)));
  const second = limited(controller.signal, async () => 'never');
  const third = limited(new AbortController().signal, async () => 'third');
  controller.abort();
  await expect(second).rejects.toMatchObject({ code: 'cancelled' });
  fail(new Error('broken'));
  await expect(first).rejects.toThrow('broken');
  expect(await third).toBe('third');
  await expect(limited(controller.signal, async () => 'never')).rejects.toMatchObject({ code: 'cancelled' });
});
