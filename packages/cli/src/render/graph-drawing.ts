/** A node of a drawing: its text, and the ids of its predecessors. */
export interface DrawnNode {
  readonly id: string;
  readonly text: string;
  readonly after: readonly string[];
}

interface Spot {
  readonly layer: number;
  readonly line: number;
  /** Undefined for a pass-through line. */
  readonly text: string | undefined;
}

const [up, down, left, right] = [1, 2, 4, 8];
/** Box characters by the sides that a stroke reaches; a crossed vertical line has no side strokes. */
const strokes = new Map([
  [left | down, '┐'],
  [left | up, '┘'],
  [right | down, '┌'],
  [right | up, '└'],
  [left | right | down, '┬'],
  [left | right | up, '┴'],
  [up | down | right, '├'],
  [up | down | left, '┤'],
  [up | down | left | right, '┼'],
]);

/**
 * Draws an acyclic graph as text, from left to right. Neighbouring layers use separate lines, and
 * each node has its own vertical track between them, so that unrelated arrows never share a stroke; where two
 * arrows cross, the horizontal one goes behind.
 */
export function drawGraph(nodes: readonly DrawnNode[]): string {
  const { spots, steps } = place(nodes);
  const layers = Math.max(0, ...[...spots.values()].map(({ layer }) => layer + 1));
  const height = Math.max(0, ...[...spots.values()].map(({ line }) => line + 1));
  const lines = Array.from({ length: height }, () => '');
  for (let layer = 0; layer < layers; layer += 1) {
    const here = [...spots].filter(([, spot]) => spot.layer === layer);
    const width = Math.max(0, ...here.map(([, { text }]) => text?.length ?? 0));
    const from = steps.filter(([source]) => spots.get(source)?.layer === layer);
    for (const [line, before] of lines.entries()) {
      const [id, spot] = here.find(([, one]) => one.line === line) ?? [];
      const leads = id !== undefined && from.some(([source]) => source === id);
      const fill = spot?.text === undefined && spot !== undefined ? '─' : leads ? '─' : ' ';
      const text = spot?.text === undefined ? '' : leads ? `${spot.text} ` : spot.text;
      lines[line] = before + text.padEnd(width + 2, fill);
    }
    for (const [line, between] of drawGutter(from, spots, height).entries()) lines[line] += between;
  }
  return lines
    .map((line) => line.trimEnd())
    .filter((line) => line !== '')
    .join('\n');
}

/** Arranges nodes in layers; an arrow over several layers has its own spot in each. */
function place(nodes: readonly DrawnNode[]): { readonly spots: ReadonlyMap<string, Spot>; readonly steps: readonly (readonly [string, string])[] } {
  const layerOf = new Map<string, number>();
  const depth = (id: string): number => {
    const known = layerOf.get(id);
    if (known !== undefined) return known;
    const after = nodes.find((node) => node.id === id)?.after ?? [];
    const layer = Math.max(-1, ...after.map(depth)) + 1;
    layerOf.set(id, layer);
    return layer;
  };
  const columns: { id: string; text: string | undefined }[][] = [];
  for (const { id, text } of nodes) (columns[depth(id)] ??= []).push({ id, text });
  const steps: (readonly [string, string])[] = [];
  for (const { id, after } of nodes)
    for (const source of after) {
      let at = source;
      for (let layer = depth(source) + 1; layer < depth(id); layer += 1) {
        const passing = `${source} ${layer}`;
        const column = (columns[layer] ??= []);
        if (!column.some((one) => one.id === passing)) column.push({ id: passing, text: undefined });
        if (!steps.some(([from, to]) => from === at && to === passing)) steps.push([at, passing]);
        at = passing;
      }
      steps.push([at, id]);
    }
  const spots = columns.flatMap((column, layer) => column.map(({ id, text }, at) => [id, { layer, line: at * 2 + (layer % 2), text }] as const));
  return { spots: new Map(spots), steps };
}

/** Draws the strokes between two layers, line by line; each source has a column for its vertical line. */
function drawGutter(steps: readonly (readonly [string, string])[], spots: ReadonlyMap<string, Spot>, height: number): string[] {
  const lineOf = (id: string): number => spots.get(id)?.line ?? 0;
  const tracks = [...new Set(steps.map(([source]) => source))]
    .map((source) => ({ from: lineOf(source), targets: steps.flatMap(([one, to]) => (one === source ? [lineOf(to)] : [])) }))
    .toSorted((a, b) => a.from - b.from)
    .map(({ from, targets }) => ({ from, targets, top: Math.min(from, ...targets), bottom: Math.max(from, ...targets) }));
  const passing = new Set(steps.flatMap(([, to]) => (spots.get(to)?.text === undefined ? [lineOf(to)] : [])));
  return Array.from({ length: height }, (_, line) => {
    if (tracks.length === 0) return '';
    const cells = tracks.map(({ from, targets, top, bottom }, at) => {
      const cameIn = tracks.some((track, other) => other < at && track.targets.includes(line));
      if (line < top || line > bottom) return cameIn || tracks.some((track, other) => other > at && track.from === line) ? '─' : ' ';
      const isTarget = targets.includes(line);
      const bits = [line > top && up, line < bottom && down, (line === from || (isTarget && cameIn)) && left, isTarget && right];
      return strokes.get(bits.reduce<number>((mask, bit) => mask | Number(bit), 0)) ?? '│';
    });
    const arrives = tracks.some(({ targets }) => targets.includes(line));
    return `${cells.join('')}${arrives ? (passing.has(line) ? '──' : '─ ') : '  '}`;
  });
}
