import type { Result } from '@gatehouse/contract';
import type { FieldErrors } from '../../data/field-errors.ts';

type Warning = Result<'graph.define'>['warnings'][number];

/** What is wrong with one node, or with the graph: errors by the path inside of it, and warnings. */
export interface Problems {
  readonly errors: FieldErrors;
  readonly warnings: readonly Warning[];
}

export interface Checked {
  /** By the place of the node. */
  readonly nodes: ReadonlyMap<number, FieldErrors>;
  /** What belongs to no node, by its path. */
  readonly graph: FieldErrors;
}

const ofNode = /^nodes[.[](\d+)\]?(?:\.|$)/;

/** Sorts what the gateway finds wrong by the node that it is about. */
export function sortErrors(errors: FieldErrors): Checked {
  const nodes = new Map<number, Map<string, string>>();
  const graph = new Map<string, string>();
  for (const [path, message] of errors) {
    const found = ofNode.exec(path);
    if (found === null) {
      graph.set(path, message);
      continue;
    }
    const at = Number(found[1]);
    const inside = nodes.get(at) ?? new Map<string, string>();
    inside.set(path.slice(found[0].length), message);
    nodes.set(at, inside);
  }
  return { nodes, graph };
}
