import type { GraphNodeType, GraphState } from '@gatehouse/contract';
import type { Tone } from '../../ui/parts.tsx';
import type { NodeView } from './graph-state.ts';

export const graphTones: Readonly<Record<GraphState, Tone>> = {
  pending: 'neutral',
  running: 'accent',
  completed: 'good',
  failed: 'bad',
  cancelled: 'warn',
};

const nodeTones: Readonly<Record<NodeView['status'], Tone>> = {
  pending: 'neutral',
  running: 'accent',
  completed: 'good',
  failed: 'bad',
  skipped: 'neutral',
};

export const typeNames: Readonly<Record<GraphNodeType, string>> = {
  agent: 'Agent',
  debate: 'Debate',
  vote: 'Vote',
  refine: 'Refine',
  collaborate: 'Collaborate',
  'map-reduce': 'Map and reduce',
  'approval-gate': 'Approval gate',
};

export const cancelLabels: Readonly<Record<'manual' | 'timeout' | 'budget' | 'killed', string>> = {
  manual: 'cancelled manually',
  timeout: 'timed out',
  budget: 'over its budget',
  killed: 'killed',
};

/** Returns the state of a node as a short label. */
export function nodeStanding({ status, waitsForAnswer, waiting, partial }: NodeView): { readonly text: string; readonly tone: Tone } {
  if (waitsForAnswer === true) return { text: 'waiting for you', tone: 'warn' };
  if (waiting?.kind === 'approval') return { text: 'waiting for approval', tone: 'warn' };
  return { text: partial === true ? `${status}, in part` : status, tone: nodeTones[status] };
}
