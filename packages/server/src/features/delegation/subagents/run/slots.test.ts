import { expect, test } from 'vitest';
import { Slots } from './slots.ts';

const never = new AbortController().signal;

/** Creates slots and records who entered, in order. */
function createSlots(limits: { readonly all: number; readonly each: number }) {
  const slots = new Slots(() => limits);
  const inside: string[] = [];
  const enter = (name: string, requester: string | undefined, first = false, signal = never) =>
    slots.enter({ requester, first, signal }).then((slot) => (inside.push(name), slot));
  return { slots, inside, enter };
}

test('serves in order of arrival, skipping requesters that have reached their limit', async () => {
  const { slots, inside, enter } = createSlots({ all: 3, each: 2 });
  const [first] = await Promise.all([enter('a1', 'a'), enter('a2', 'a')]);
  void enter('a3', 'a');
  const b1 = await enter('b1', 'b');
  void enter('graph', undefined);
  expect(inside).toEqual(['a1', 'a2', 'b1']);
  expect(slots.counts).toEqual({ active: 3, max: 3, queued: 2 });
  b1.leave();
  b1.leave();
  await expect.poll(() => inside.at(-1)).toBe('graph');
  first?.leave();
  await expect.poll(() => inside.at(-1)).toBe('a3');
  expect(slots.counts).toEqual({ active: 3, max: 3, queued: 0 });
});

test('a lent slot lets others in and is reclaimed at once', async () => {
  const { slots, inside, enter } = createSlots({ all: 1, each: 5 });
  const parent = await enter('parent', 'p');
  void enter('child', 'c');
  const reclaim = parent.lend();
  await expect.poll(() => inside).toEqual(['parent', 'child']);
  reclaim();
  reclaim();
  expect(slots.counts.active).toBe(2);
  parent.lend();
  parent.leave();
  expect(slots.counts.active).toBe(1);
});

test('an aborted waiter leaves the queue, and resumed runs come first', async () => {
  const { slots, inside, enter } = createSlots({ all: 1, each: 1 });
  const held = await enter('held', 'a');
  const gone = new AbortController();
  const waiting = enter('gone', 'b', false, gone.signal);
  void enter('new', 'c');
  void enter('resumed', 'd', true);
  gone.abort(new Error('left'));
  await expect(waiting).rejects.toThrow('left');
  expect(slots.counts.queued).toBe(2);
  held.leave();
  await expect.poll(() => inside).toEqual(['held', 'resumed']);
  await expect(slots.enter({ requester: 'x', first: false, signal: gone.signal })).rejects.toThrow('left');
});
