import type { GraphNodeState } from '@gatehouse/contract';
import type { GraphSpec, SpecNode } from './definition.ts';

export const isOver = (state: GraphNodeState) => state === 'completed' || state === 'failed' || state === 'skipped';

/** What becomes of a node that is pending, by the states of those that it depends on. */
export type Verdict = 'wait' | 'run' | 'skip';

export function verdictOf(
  node: Pick<SpecNode, 'dependsOn' | 'barrier'>,
  onFailure: GraphSpec['onFailure'],
  stateOf: (id: string) => GraphNodeState,
): Verdict {
  const states = node.dependsOn.map(stateOf);
  // A barrier may be passed with failures, but not where the graph ends at the first one.
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
