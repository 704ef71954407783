import { expect, test } from 'vitest';
import { type Arrow, betterDirection, layOut } from './layout.ts';

const arrows = (...pairs: string[]): Arrow[] =>
  pairs.map((pair) => {
    const [from = '', to = ''] = pair.split('>');
    return { from, to };
  });
const xs = (places: ReturnType<typeof layOut>, ...ids: string[]) => ids.map((id) => places.get(id)?.x ?? NaN);

test('each node stands behind all that it depends on, also by the longest way', () => {
  const places = layOut(['d', 'a', 'b', 'c'], arrows('a>b', 'b>c', 'a>c', 'c>d'), 'right');
  const [a = 0, b = 0, c = 0, d = 0] = xs(places, 'a', 'b', 'c', 'd');
  expect([a < b, b < c, c < d]).toEqual([true, true, true]);
});

test('no two nodes stand in one place, and downwards the axes change', () => {
  const ids = Array.from({ length: 20 }, (_, at) => `n${at}`);
  const all = ids.slice(1).map((to) => ({ from: 'n0', to }));
  for (const direction of ['right', 'down'] as const) {
    const places = layOut(ids, all, direction);
    expect(new Set([...places.values()].map(({ x, y }) => `${x} ${y}`)).size).toBe(20);
  }
  const down = layOut(['a', 'b'], arrows('a>b'), 'down');
  expect((down.get('b')?.y ?? 0) > (down.get('a')?.y ?? 0)).toBe(true);
});

test('neighbours stand beside each other, so that arrows do not cross', () => {
  const places = layOut(['a', 'b', 'x', 'y'], arrows('a>y', 'b>x'), 'right');
  expect((places.get('y')?.y ?? 0) < (places.get('x')?.y ?? 0)).toBe((places.get('a')?.y ?? 0) < (places.get('b')?.y ?? 0));
});

test('an arrow over several layers finds no node between its ends', () => {
  const places = layOut(['debate', 'vote', 'gate', 'report'], arrows('debate>gate', 'vote>gate', 'gate>report', 'debate>report'), 'right');
  const [debate, gate, report] = ['debate', 'gate', 'report'].map((id) => places.get(id)?.y ?? NaN);
  expect(Math.abs((gate ?? NaN) - ((debate ?? NaN) + (report ?? NaN)) / 2)).toBeGreaterThanOrEqual(50);
});

test('what is half edited is drawn: a circle, an arrow to itself, an arrow to nothing', () => {
  expect(layOut(['a', 'b', 'c'], arrows('a>b', 'b>c', 'c>a', 'a>a', 'a>gone', 'gone>b'), 'right').size).toBe(3);
  expect(layOut([], [], 'right').size).toBe(0);
});

test('a long chain goes down where it is narrow, and to the right where it is wide', () => {
  const ids = ['a', 'b', 'c', 'd', 'e'];
  const chain = arrows('a>b', 'b>c', 'c>d', 'd>e');
  expect([betterDirection(ids, chain, 350, 400), betterDirection(ids, chain, 1200, 400)]).toEqual(['down', 'right']);
});
