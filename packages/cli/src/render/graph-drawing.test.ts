import { expect, test } from 'vitest';
import { drawGraph } from './graph-drawing.ts';

const node = (id: string, ...after: string[]) => ({ id, text: id, after });

test('what waits for others stands to their right, with an arrow from each', () => {
  const nodes = [node('research'), node('debate', 'research'), node('vote', 'research'), node('gate', 'debate', 'vote'), node('report', 'gate')];
  expect(drawGraph(nodes).split('\n')).toEqual([
    'research ─┐          ┌┬─ gate ─┐',
    '          ├─ debate ─┘│        └─ report',
    '          │           │',
    '          └─ vote ────┘',
  ]);
});

test('an arrow over several layers passes the nodes between, and one that crosses another does not join it', () => {
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

test('one node, and none', () => {
  expect(drawGraph([node('one')])).toBe('one');
  expect(drawGraph([])).toBe('');
});
