import { expect, test } from 'vitest';
import { drawGraph } from './graph-drawing.ts';

const node = (id: string, ...after: string[]) => ({ id, text: id, after });

test('places dependent nodes to the right, with an arrow from each dependency', () => {
  const nodes = [node('research'), node('debate', 'research'), node('vote', 'research'), node('gate', 'debate', 'vote'), node('report', 'gate')];
  expect(drawGraph(nodes).split('\n')).toEqual([
    'research ─┐          ┌┬─ gate ─┐',
    '          ├─ debate ─┘│        └─ report',
    '          │           │',
    '          └─ vote ────┘',
  ]);
});

test('an arrow over several layers passes the nodes in between, and crossing arrows do not join', () => {
  const nodes = [node('a'), node('b'), node('c', 'a', 'b'), node('d', 'b'), node('e', 'a', 'c'), node('f', 'd', 'e', 'a'), node('alone')];
  expect(drawGraph(nodes).split('\n')).toEqual([
    'a ─────┐      ┌─┬─ e ─┐',
    '       ├┬─ c ─┘ │     └┬┬─ f',
    'b ─────│┤      ┌│──────┘│',
    '       │└─ d ──┘│       │',
    'alone  │        ├───────┘',
    '       └────────┘',
  ]);
});

test('draws one node, and none', () => {
  expect(drawGraph([node('one')])).toBe('one');
  expect(drawGraph([])).toBe('');
});
