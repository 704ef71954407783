import { t } from '../../language.ts';
import type { EvalResult, EvalRun } from '@gatehouse/contract';
import type { Tone } from '../../ui/parts.tsx';

export const stateLabels: Readonly<Record<EvalRun['state'], string>> = {
  running: 'running',
  completed: 'completed',
  stopped: 'stopped',
  budget_exceeded: t('budget exceeded'),
  interrupted: 'interrupted',
  failed: 'failed',
};
export const stateTones: Readonly<Record<EvalRun['state'], Tone>> = {
  running: 'accent',
  completed: 'good',
  stopped: 'warn',
  budget_exceeded: 'warn',
  interrupted: 'warn',
  failed: 'bad',
};
export const outcomeTones: Readonly<Record<EvalResult['outcome'], Tone>> = { passed: 'good', failed: 'bad', error: 'warn' };

export const variantName = ({ agentId, model }: EvalRun['variants'][number]): string =>
  model === null ? agentId : t('{agentId} with {model}', { agentId, model });
