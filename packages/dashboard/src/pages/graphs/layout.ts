import { Graph, layout } from '@dagrejs/dagre';

export interface Arrow {
  readonly from: string;
  readonly to: string;
}

export interface NodePosition {
  readonly x: number;
  readonly y: number;
}

/** Direction of the arrows. */
export type Direction = 'right' | 'down';

export const nodeWidth = 180;
export const nodeHeight = 78;
const layerGap = 56;
const siblingGap = 22;

/**
 * Places nodes in layers, each after all its dependencies, so that few arrows cross. Ignores arrows to missing nodes and
 * self-references, and tolerates cycles: a graph being edited may be invalid.
 */
export function layOut(ids: readonly string[], arrows: readonly Arrow[], direction: Direction): ReadonlyMap<string, NodePosition> {
  const graph = new Graph();
  // An arrow that passes a layer gets as much space there as a node, because it is drawn as a curve between its ends.
  const edgesep = (direction === 'right' ? nodeHeight : nodeWidth) + siblingGap;
  graph.setGraph({ rankdir: direction === 'right' ? 'LR' : 'TB', ranksep: layerGap, nodesep: siblingGap, edgesep });
  graph.setDefaultEdgeLabel(() => ({}));
  const known = new Set(ids);
  for (const id of ids) graph.setNode(id, { width: nodeWidth, height: nodeHeight });
  for (const { from, to } of arrows) if (from !== to && known.has(from) && known.has(to)) graph.setEdge(from, to);
  layout(graph);
  // Positions are those of centres.
  return new Map(
    ids.map((id) => {
      const { x, y } = graph.node(id);
      return [id, { x: x - nodeWidth / 2, y: y - nodeHeight / 2 }];
    }),
  );
}

/** Returns the direction in which a drawing fills a box of this size best; prefers right when they are close. */
export function betterDirection(ids: readonly string[], arrows: readonly Arrow[], width: number, height: number): Direction {
  const scale = (direction: Direction): number => {
    const positions = [...layOut(ids, arrows, direction).values()];
    const right = Math.max(0, ...positions.map(({ x }) => x)) + nodeWidth;
    const bottom = Math.max(0, ...positions.map(({ y }) => y)) + nodeHeight;
    return Math.min(1, width / right, height / bottom);
  };
  return scale('down') > scale('right') * 1.15 ? 'down' : 'right';
}
