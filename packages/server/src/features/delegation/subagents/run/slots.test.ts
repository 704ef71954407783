import { expect, test } from 'vitest';
import { Places } from './slots.ts';

const never = new AbortController().signal;

/** Enters and says who got in, in order. */
function door(limits: { readonly all: number; readonly each: number }) {
  const places = new Places(limits);
  const inside: string[] = [];
  const enter = (name: string, requester: string | undefined, first = false, signal = never) =>
    places.enter({ requester, first, signal }).then((place) => (inside.push(name), place));
  return { places, inside, enter };
}

test('serves in order of arrival, past requesters that have their share', async () => {
  const { places, inside, enter } = door({ all: 3, each: 2 });
  const [first] = await Promise.all([enter('a1', 'a'), enter('a2', 'a')]);
  void enter('a3', 'a');
  const b1 = await enter('b1', 'b');
  void enter('graph', undefined);
  expect(inside).toEqual(['a1', 'a2', 'b1']);
  expect(places.counts).toEqual({ active: 3, max: 3, queued: 2 });
  b1.leave();
  b1.leave();
  await expect.poll(() => inside.at(-1)).toBe('graph');
  first?.leave();
  await expect.poll(() => inside.at(-1)).toBe('a3');
  expect(places.counts).toEqual({ active: 3, max: 3, queued: 0 });
});

test('a place that is lent lets others in, and is there again at once', async () => {
  const { places, inside, enter } = door({ all: 1, each: 5 });
  const parent = await enter('parent', 'p');
  void enter('child', 'c');
  const takeBack = parent.lend();
  await expect.poll(() => inside).toEqual(['parent', 'child']);
  takeBack();
  takeBack();
  expect(places.counts.active).toBe(2);
  parent.lend();
  parent.leave();
  expect(places.counts.active).toBe(1);
});

test('who gives up leaves the queue, and what ran before comes first', async () => {
  const { places, inside, enter } = door({ all: 1, each: 1 });
  const held = await enter('held', 'a');
  const gone = new AbortController();
  const waiting = enter('gone', 'b', false, gone.signal);
  void enter('new', 'c');
  void enter('resumed', 'd', true);
  gone.abort(new Error('left'));
  await expect(waiting).rejects.toThrow('left');
  expect(places.counts.queued).toBe(2);
  held.leave();
  await expect.poll(() => inside).toEqual(['held', 'resumed']);
  await expect(places.enter({ requester: 'x', first: false, signal: gone.signal })).rejects.toThrow('left');
});
