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
/** Sweeps back and forth over the layers; more make no visible difference in graphs of twenty nodes. */
const sweeps = 4;

/**
 * Places nodes in layers, each after all its dependencies, and within a layer near the middle of its neighbours so that few
 * arrows cross. Ignores arrows to missing nodes, self-references and cycles: a graph being edited may be invalid.
 */
export function layOut(ids: readonly string[], arrows: readonly Arrow[], direction: Direction): ReadonlyMap<string, NodePosition> {
  const known = new Set(ids);
  const valid = arrows.filter(({ from, to }) => from !== to && known.has(from) && known.has(to));
  const layerOf = layersOf(ids, valid);
  const layers: string[][] = [];
  for (const id of ids) (layers[layerOf.get(id) ?? 0] ??= []).push(id);
  const steps = withPassages(layers, valid, layerOf);
  for (let sweep = 0; sweep < sweeps; sweep += 1) sortLayers(layers, steps, sweep % 2 === 0);
  const [along, across] = direction === 'right' ? [nodeWidth + layerGap, nodeHeight + siblingGap] : [nodeHeight + layerGap, nodeWidth + siblingGap];
  const widest = Math.max(0, ...layers.map((layer) => layer.length));
  return new Map(
    layers.flatMap((layer, at) =>
      layer.flatMap((id, position) => {
        if (!known.has(id)) return [];
        const main = at * along;
        const cross = (position + (widest - layer.length) / 2) * across;
        return [[id, direction === 'right' ? { x: main, y: cross } : { x: cross, y: main }] as const];
      }),
    ),
  );
}

/** Reserves a position in each layer that an arrow passes, so that no node gets in its way. */
function withPassages(layers: string[][], arrows: readonly Arrow[], layerOf: ReadonlyMap<string, number>): Arrow[] {
  return arrows.flatMap(({ from, to }) => {
    const steps: Arrow[] = [];
    let at = from;
    for (let layer = (layerOf.get(from) ?? 0) + 1; layer < (layerOf.get(to) ?? 0); layer += 1) {
      const passage = `${from}>${to}@${layer}`;
      layers[layer]?.push(passage);
      steps.push({ from: at, to: passage });
      at = passage;
    }
    return [...steps, { from: at, to }];
  });
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

/** Returns the longest path from a node without dependencies; nodes on a cycle keep their layer when no other can be placed. */
function layersOf(ids: readonly string[], arrows: readonly Arrow[]): ReadonlyMap<string, number> {
  const layers = new Map<string, number>();
  let waiting = [...ids];
  while (waiting.length > 0) {
    const ready = waiting.filter((id) => arrows.every(({ from, to }) => to !== id || layers.has(from)));
    const placed = ready.length > 0 ? ready : waiting.slice(0, 1);
    const depths = placed.map((id) =>
      Math.max(0, ...arrows.flatMap(({ from, to }) => (to === id && layers.has(from) ? [(layers.get(from) ?? 0) + 1] : []))),
    );
    for (const [at, id] of placed.entries()) layers.set(id, depths[at] ?? 0);
    waiting = waiting.filter((id) => !layers.has(id));
  }
  return layers;
}

function sortLayers(layers: string[][], arrows: readonly Arrow[], forth: boolean): void {
  const order = layers.map((_, at) => (forth ? at : layers.length - 1 - at));
  const positions = new Map<string, number>();
  for (const at of order) {
    const layer = layers[at] ?? [];
    const weight = new Map(layer.map((id, position) => [id, meanPosition(id, position, arrows, positions, forth)]));
    layers[at] = layer.toSorted((a, b) => (weight.get(a) ?? 0) - (weight.get(b) ?? 0));
    const middle = (layer.length - 1) / 2;
    for (const [position, id] of (layers[at] ?? []).entries()) positions.set(id, position - middle);
  }
}

function meanPosition(id: string, position: number, arrows: readonly Arrow[], positions: ReadonlyMap<string, number>, forth: boolean): number {
  const neighbours = arrows.flatMap(({ from, to }) => {
    const other = forth ? (to === id ? from : undefined) : from === id ? to : undefined;
    const place = other === undefined ? undefined : positions.get(other);
    return place === undefined ? [] : [place];
  });
  return neighbours.length === 0 ? position : neighbours.reduce((sum, place) => sum + place, 0) / neighbours.length;
}
