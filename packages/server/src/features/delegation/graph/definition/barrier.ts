import type { GraphNodeState } from '@gatehouse/contract';
import type { GraphSpec, SpecNode } from './definition.ts';

export const isOver = (state: GraphNodeState) => state === 'completed' || state === 'failed' || state === 'skipped';

/** What happens to a pending node, depending on the states of its dependencies. */
export type Verdict = 'wait' | 'run' | 'skip';

export function verdictOf(
  node: Pick<SpecNode, 'dependsOn' | 'barrier'>,
  onFailure: GraphSpec['onFailure'],
  stateOf: (id: string) => GraphNodeState,
): Verdict {
  const states = node.dependsOn.map(stateOf);
  // A barrier may tolerate failures, but not when the graph fails fast.
  if (onFailure === 'fail-fast' && states.some((state) => state === 'failed' || state === 'skipped')) return 'skip';
  if (!states.every(isOver)) return 'wait';
  const completed = states.filter((state) => state === 'completed').length;
  return passes(node.barrier, completed, states.length) ? 'run' : 'skip';
}

function passes(barrier: SpecNode['barrier'], completed: number, all: number): boolean {
  if (all === 0) return true;
  if (barrier === 'best-effort') return completed > 0;
  return barrier === 'majority' ? completed * 2 > all : completed === all;
}
