import { t } from '../../language.ts';
import type { TraceRecord, TraceStep } from '@gatehouse/contract';
import { duration, money, shortCount } from '../../data/format.ts';
import type { IconName } from '../../ui/icon.tsx';
import type { Tone } from '../../ui/parts.tsx';
import type { TraceNode } from './trace-rows.ts';

type Outcome = NonNullable<TraceRecord['outcome']> | NonNullable<TraceStep['outcome']> | 'running';

export const outcomeTones: Readonly<Record<Outcome, Tone>> = {
  ok: 'good',
  degraded: 'warn',
  failed: 'bad',
  error: 'bad',
  denied: 'bad',
  cancelled: 'warn',
  waiting: 'warn',
  skipped: 'neutral',
  background: 'accent',
  running: 'accent',
};

export const outcomeLabels: Readonly<Record<Outcome, string>> = {
  ok: 'ok',
  degraded: 'degraded',
  failed: 'failed',
  error: 'error',
  denied: 'denied',
  cancelled: 'cancelled',
  waiting: 'waiting',
  skipped: 'skipped',
  background: t('in the background'),
  running: 'running',
};

export const recordNames: Readonly<Record<TraceRecord['kind'], string>> = {
  turn: t('Turn'),
  delivery: t('Delivery'),
  compaction: t('Compaction'),
  review: t('Memory review'),
  synthesis: t('Memory consolidation'),
  background: t('Background task'),
  wake_gate: t('Wake gate'),
  breaker: t('Circuit breaker'),
  autonomy: t('Autonomy'),
  pipeline: t('Pipeline'),
  orchestrate: t('Script'),
  media: t('Speech, image or video'),
  embedding: t('Embedding'),
};

export const stepNames: Readonly<Record<TraceStep['kind'], string>> = {
  context: t('Context'),
  recall: t('Memory recall'),
  model: t('Model call'),
  attempt: t('Attempt'),
  tool: t('Tool call'),
  approval: t('Approval'),
  compaction: t('Compaction'),
  off_load: 'Off-load',
  delegation: t('Delegation'),
  delivery: t('Delivery'),
  breaker: t('Circuit breaker'),
  skill: t('Skill'),
  outcome: t('Outcome'),
};

const recordIcons: Readonly<Record<TraceRecord['kind'], IconName>> = {
  turn: 'agent',
  delivery: 'send',
  compaction: 'list',
  review: 'memory',
  synthesis: 'memory',
  background: 'play',
  wake_gate: 'clock',
  breaker: 'warning',
  autonomy: 'shield',
  pipeline: 'graph',
  orchestrate: 'code',
  media: 'play',
  embedding: 'memory',
};

const stepIcons: Readonly<Record<TraceStep['kind'], IconName>> = {
  context: 'list',
  recall: 'memory',
  model: 'chat',
  attempt: 'retry',
  tool: 'code',
  approval: 'hand',
  compaction: 'list',
  off_load: 'file',
  delegation: 'branch',
  delivery: 'send',
  breaker: 'warning',
  skill: 'file',
  outcome: 'flag',
};

export function iconOf({ record, step }: TraceNode): IconName {
  return step === undefined ? recordIcons[record.kind] : stepIcons[step.kind];
}

export function kindOf({ record, step }: TraceNode): string {
  return step === undefined ? recordNames[record.kind] : stepNames[step.kind];
}

/** Returns the name of a node: of a record the node of its graph and its agent. */
export function nameOf({ record, step }: TraceNode): string {
  if (step !== undefined) return step.name === '' ? stepNames[step.kind] : step.name;
  const { nodeId, runId } = record.refs;
  const what = nodeId ?? (runId === undefined ? undefined : 'sub-agent');
  return [what, record.agentId ?? recordNames[record.kind]].filter((part) => part !== undefined).join(' · ');
}

export function outcomeOf({ record, step }: TraceNode): Outcome {
  if (step === undefined) return record.outcome ?? 'running';
  return step.outcome ?? (record.endedAtMs === null ? 'running' : 'cancelled');
}

/** "82 ms", "1.4 s", "12 min". */
export function timeText(ms: number): string {
  if (ms < 1000) return t('{max} ms', { max: Math.max(0, Math.round(ms)) });
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : duration(ms / 1000);
}

export function tokensText({ in: input, out, cached }: TraceRecord['tokens']): string {
  return t('{input} in{cached}, {out} out', {
    input: shortCount(input),
    cached: cached > 0 ? ` ${t('({cached} cached)', { cached: shortCount(cached) })}` : '',
    out: shortCount(out),
  });
}

export function costText(costNano: number | null | undefined): string {
  return costNano === null || costNano === undefined ? t('price unknown') : money(costNano / 1e9);
}
