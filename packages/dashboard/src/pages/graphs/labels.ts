import { t } from '../../language.ts';
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
  agent: t('Agent'),
  debate: t('Debate'),
  vote: t('Vote'),
  refine: t('Refine'),
  collaborate: t('Collaborate'),
  'map-reduce': t('Map and reduce'),
  'approval-gate': t('Approval gate'),
};

export const cancelLabels: Readonly<Record<'manual' | 'timeout' | 'budget' | 'killed', string>> = {
  manual: t('cancelled manually'),
  timeout: t('timed out'),
  budget: t('over its budget'),
  killed: 'killed',
};

/** Returns the state of a node as a short label. */
export function nodeStanding({ status, waitsForAnswer, waiting, partial }: NodeView): { readonly text: string; readonly tone: Tone } {
  if (waitsForAnswer === true) return { text: t('waiting for you'), tone: 'warn' };
  if (waiting?.kind === 'approval') return { text: t('waiting for approval'), tone: 'warn' };
  return { text: partial === true ? t('{status}, in part', { status }) : status, tone: nodeTones[status] };
}
