import { expect, test } from 'vitest';
import { layOut, readTree, type SummaryNode } from './tree-layout.ts';

const node = (summaryId: string, fromSeq: number, toSeq: number, part: Partial<SummaryNode> = {}): SummaryNode => ({
  summaryId,
  kind: 'leaf',
  depth: 0,
  tokenCount: 10,
  contentPreview: summaryId,
  fromSeq,
  toSeq,
  childIds: [],
  parentIds: [],
  taint: 'clean',
  model: 'local/test-model',
  createdAt: 1,
  ...part,
});
const nodes = [
  node('c', 41, 60),
  node('b', 21, 40, { parentIds: ['top'] }),
  node('top', 1, 40, { kind: 'condensed', depth: 1, childIds: ['b', 'a'] }),
  node('a', 1, 20, { parentIds: ['top'] }),
];

test('orders a tree by its messages, parents first', () => {
  const items = readTree(nodes, 60);
  expect(items.map(({ node: { summaryId }, level, position, siblings, inView }) => [summaryId, level, `${position}/${siblings}`, inView])).toEqual([
    ['top', 1, '1/2', true],
    ['a', 2, '1/2', false],
    ['b', 2, '2/2', false],
    ['c', 1, '2/2', true],
  ]);
  expect(items[0]?.children).toEqual(['a', 'b']);
  expect(items[1]?.parent).toBe('top');
});

test('hides summaries beyond the cut from the model; tolerates missing parents and cycles', () => {
  expect(readTree([node('ahead', 61, 80)], 60)[0]?.inView).toBe(false);
  expect(readTree([node('orphan', 1, 2, { parentIds: ['gone'] })], 2)).toMatchObject([{ level: 1, inView: true }]);
  const circle = [node('x', 1, 2, { childIds: ['y'] }), node('y', 1, 2, { childIds: ['x'], parentIds: ['x'] })];
  expect(readTree(circle, 2).map(({ node: { summaryId } }) => summaryId)).toEqual(['x', 'y']);
});

test('draws bars over their messages, condensed ones above, within the width', () => {
  for (const width of [320, 1000]) {
    const picture = layOut(readTree(nodes, 60), 80, 60, width);
    const at = (id: string) => picture.boxes.find((box) => box.id === id);
    expect(at('top')?.y).toBeLessThan(at('a')?.y ?? 0);
    expect(at('a')?.y).toBe(at('c')?.y);
    expect(at('c')?.x).toBeCloseTo(picture.xOf(40) + 1);
    expect(picture.cutX).toBe(picture.xOf(60));
    for (const box of picture.boxes) {
      expect(box.x).toBeGreaterThanOrEqual(0);
      expect(box.x + box.width).toBeLessThanOrEqual(width);
    }
    expect(picture.edges.map(({ key }) => key)).toEqual(['top a', 'top b']);
  }
});
