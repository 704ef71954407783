import { expect, test } from 'vitest';
import { createLive, livePart } from './live.ts';

const fail = (error: unknown): never => {
  throw error;
};

test('parts that are equal keep their identity, and when nothing differs nobody is called', async () => {
  const live = createLive({ a: { list: [1] }, b: { c: 1 } }, fail);
  const calls: unknown[] = [];
  live.onChange((next, before) => void calls.push([next, before]));
  const { a, b } = live.current;
  await live.set({ a: { list: [1] }, b: { c: 1 } });
  expect(calls).toEqual([]);
  await live.set({ a: { list: [1] }, b: { c: 2 } });
  expect(calls).toEqual([
    [
      { a, b: { c: 2 } },
      { a, b },
    ],
  ]);
  expect(live.current.a).toBe(a);
});

test('a part calls only for its own changes, until it is disposed of', async () => {
  const live = createLive({ a: 1, b: 1 }, fail);
  const part = livePart(live, ({ a }) => a);
  const calls: number[] = [];
  const listening = part.onChange((next) => void calls.push(next));
  await live.set({ a: 1, b: 2 });
  await live.set({ a: 2, b: 2 });
  listening[Symbol.dispose]();
  await live.set({ a: 3, b: 2 });
  expect([calls, part.current]).toEqual([[2], 3]);
});

test('set waits for those that rebuild, and one that fails does not stop the others', async () => {
  const errors: unknown[] = [];
  const live = createLive(1, (error) => errors.push(error));
  let rebuilt = 0;
  live.onChange(() => {
    throw new Error('no');
  });
  live.onChange(async (next) => {
    await Promise.resolve();
    rebuilt = next;
  });
  await live.set(2);
  expect([rebuilt, errors]).toEqual([2, [new Error('no')]]);
});
