import type { Result } from '@gatehouse/contract';

/** A summary of a conversation, as returned by `context.tree`. */
export type SummaryNode = Result<'context.tree'>['nodes'][number];

/** One line of the tree, from top to bottom. */
export interface TreeItem {
  readonly node: SummaryNode;
  /** Level from 1, as in `aria-level`. */
  readonly level: number;
  readonly parent: string | undefined;
  readonly children: readonly string[];
  readonly position: number;
  readonly siblings: number;
  /** True when the model reads this summary instead of its messages. */
  readonly inView: boolean;
}

/**
 * Returns the summaries as a forest in the order of their messages, parents before children. A node whose parent is
 * missing is a root. The model sees only roots that end at or before `cutSeq`; the rest is kept for search
 * and inspection.
 */
export function readTree(nodes: readonly SummaryNode[], cutSeq: number): readonly TreeItem[] {
  const known = new Map(nodes.map((node) => [node.summaryId, node]));
  const bySeq = (a: SummaryNode, b: SummaryNode): number => a.fromSeq - b.fromSeq || a.toSeq - b.toSeq;
  const items: TreeItem[] = [];
  const seen = new Set<string>();
  function walk(siblings: readonly SummaryNode[], level: number, parent: string | undefined): void {
    for (const [at, node] of siblings.entries()) {
      // Trees from the server have no cycles, but drawing must terminate in any case.
      if (seen.has(node.summaryId)) continue;
      seen.add(node.summaryId);
      const children = node.childIds
        .flatMap((id) => known.get(id) ?? [])
        .filter(({ summaryId }) => !seen.has(summaryId))
        .toSorted(bySeq);
      const inView = parent === undefined && node.toSeq <= cutSeq;
      items.push({ node, level, parent, children: children.map(({ summaryId }) => summaryId), position: at + 1, siblings: siblings.length, inView });
      walk(children, level + 1, node.summaryId);
    }
  }
  walk(nodes.filter(({ parentIds }) => !parentIds.some((id) => known.has(id))).toSorted(bySeq), 1, undefined);
  return items;
}

/** Position of a summary: a bar over its messages, placed higher the more it condenses. */
export interface Box {
  readonly id: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface Picture {
  readonly boxes: readonly Box[];
  /** Edge from the bottom of a summary to the top of one that it condenses. */
  readonly edges: readonly { readonly key: string; readonly x1: number; readonly y1: number; readonly x2: number; readonly y2: number }[];
  readonly axisY: number;
  readonly height: number;
  /** Position where the summaries end and the messages that the model sees in full begin. */
  readonly cutX: number;
  readonly xOf: (seq: number) => number;
}

const barHeight = 22;
const rowHeight = 46;
const leastWidth = 6;
const padding = 8;
/** Position of the end of the conversation, for the last axis label. */
const sideMargin = 14;

/** Computes the drawing in pixels for a width; `messageCount` messages run along the axis from left to right. */
export function layOut(items: readonly TreeItem[], messageCount: number, cutSeq: number, width: number): Picture {
  const span = Math.max(1, messageCount);
  const innerWidth = Math.max(40, width - 2 * sideMargin);
  const xOf = (seq: number): number => sideMargin + (Math.min(span, Math.max(0, seq)) / span) * innerWidth;
  // One row per existing depth, so that deep trees have no empty rows.
  const depths = [...new Set(items.map(({ node }) => node.depth))].toSorted((a, b) => b - a);
  const rowOf = new Map(depths.map((depth, row) => [depth, row]));
  const boxes = items.map(({ node }): Box => {
    const from = xOf(node.fromSeq - 1);
    // A gap between neighbours, which would otherwise look like one bar.
    const width = Math.max(leastWidth, xOf(node.toSeq) - from - 2);
    return { id: node.summaryId, x: from + 1, y: padding + (rowOf.get(node.depth) ?? 0) * rowHeight, width, height: barHeight };
  });
  const byId = new Map(boxes.map((box) => [box.id, box]));
  const edges = items.flatMap(({ node, children }) =>
    children.flatMap((id) => {
      const [parent, child] = [byId.get(node.summaryId), byId.get(id)];
      if (parent === undefined || child === undefined) return [];
      return [{ key: `${node.summaryId} ${id}`, x1: middle(parent), y1: parent.y + parent.height, x2: middle(child), y2: child.y }];
    }),
  );
  const axisY = padding + depths.length * rowHeight + 4;
  return { boxes, edges, axisY, height: axisY + 34, cutX: xOf(cutSeq), xOf };
}

function middle({ x, width }: Box): number {
  return x + width / 2;
}
