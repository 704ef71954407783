import { expect, test } from 'vitest';
import { type Arrow, betterDirection, layOut } from './layout.ts';

const arrows = (...pairs: string[]): Arrow[] =>
  pairs.map((pair) => {
    const [from = '', to = ''] = pair.split('>');
    return { from, to };
  });
const xs = (positions: ReturnType<typeof layOut>, ...ids: string[]) => ids.map((id) => positions.get(id)?.x ?? NaN);

test('puts each node after all its dependencies, along the longest path', () => {
  const positions = layOut(['d', 'a', 'b', 'c'], arrows('a>b', 'b>c', 'a>c', 'c>d'), 'right');
  const [a = 0, b = 0, c = 0, d = 0] = xs(positions, 'a', 'b', 'c', 'd');
  expect([a < b, b < c, c < d]).toEqual([true, true, true]);
});

test('assigns every node a different position, and swaps the axes downwards', () => {
  const ids = Array.from({ length: 20 }, (_, at) => `n${at}`);
  const all = ids.slice(1).map((to) => ({ from: 'n0', to }));
  for (const direction of ['right', 'down'] as const) {
    const positions = layOut(ids, all, direction);
    expect(new Set([...positions.values()].map(({ x, y }) => `${x} ${y}`)).size).toBe(20);
  }
  const down = layOut(['a', 'b'], arrows('a>b'), 'down');
  expect((down.get('b')?.y ?? 0) > (down.get('a')?.y ?? 0)).toBe(true);
});

test("puts neighbours next to each other, so that arrows don't cross", () => {
  const positions = layOut(['a', 'b', 'x', 'y'], arrows('a>y', 'b>x'), 'right');
  expect((positions.get('y')?.y ?? 0) < (positions.get('x')?.y ?? 0)).toBe((positions.get('a')?.y ?? 0) < (positions.get('b')?.y ?? 0));
});

test.each([
  ['right', 'y', 75],
  ['down', 'x', 130],
] as const)('keeps nodes out of the way of an arrow over several layers, %s', (direction, across, distance) => {
  const positions = layOut(['debate', 'vote', 'gate', 'report'], arrows('debate>gate', 'vote>gate', 'gate>report', 'debate>report'), direction);
  const [debate = NaN, gate = NaN, report = NaN] = ['debate', 'gate', 'report'].map((id) => positions.get(id)?.[across]);
  expect(Math.abs(gate - (debate + report) / 2)).toBeGreaterThanOrEqual(distance);
});

test('draws invalid graphs: cycles, self-references and missing targets', () => {
  expect(layOut(['a', 'b', 'c'], arrows('a>b', 'b>c', 'c>a', 'a>a', 'a>gone', 'gone>b'), 'right').size).toBe(3);
  expect(layOut([], [], 'right').size).toBe(0);
});

test('runs a long chain down in a narrow box and to the right in a wide one', () => {
  const ids = ['a', 'b', 'c', 'd', 'e'];
  const chain = arrows('a>b', 'b>c', 'c>d', 'd>e');
  expect([betterDirection(ids, chain, 350, 400), betterDirection(ids, chain, 1200, 400)]).toEqual(['down', 'right']);
});
