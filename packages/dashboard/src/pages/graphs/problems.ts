import type { Result } from '@gatehouse/contract';
import type { FieldErrors } from '../../data/field-errors.ts';

type Warning = Result<'graph.define'>['warnings'][number];

/** Problems of a node or of the graph: errors by their path inside it, and warnings. */
export interface Problems {
  readonly errors: FieldErrors;
  readonly warnings: readonly Warning[];
}

export interface Checked {
  /** Problems by node index. */
  readonly nodes: ReadonlyMap<number, FieldErrors>;
  /** Errors that belong to no node, by path. */
  readonly graph: FieldErrors;
}

const ofNode = /^nodes[.[](\d+)\]?(?:\.|$)/;

/** Groups the problems reported by the gateway by node. */
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
