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
  background: 'in the background',
  running: 'running',
};

export const recordNames: Readonly<Record<TraceRecord['kind'], string>> = {
  turn: 'Turn',
  delivery: 'Delivery',
  compaction: 'Compaction',
  review: 'Memory review',
  synthesis: 'Skill synthesis',
  background: 'Background task',
  wake_gate: 'Wake gate',
  breaker: 'Circuit breaker',
  autonomy: 'Autonomy',
  pipeline: 'Pipeline',
  orchestrate: 'Script',
  media: 'Speech, image or video',
};

export const stepNames: Readonly<Record<TraceStep['kind'], string>> = {
  context: 'Context',
  recall: 'Memory recall',
  model: 'Model call',
  attempt: 'Attempt',
  tool: 'Tool call',
  approval: 'Approval',
  compaction: 'Compaction',
  off_load: 'Off-load',
  delegation: 'Delegation',
  delivery: 'Delivery',
  breaker: 'Circuit breaker',
  skill: 'Skill',
  outcome: 'Outcome',
};

const recordIcons: Readonly<Record<TraceRecord['kind'], IconName>> = {
  turn: 'agent',
  delivery: 'send',
  compaction: 'list',
  review: 'memory',
  synthesis: 'file',
  background: 'play',
  wake_gate: 'clock',
  breaker: 'warning',
  autonomy: 'shield',
  pipeline: 'graph',
  orchestrate: 'code',
  media: 'play',
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
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : duration(ms / 1000);
}

export function tokensText({ in: input, out, cached }: TraceRecord['tokens']): string {
  return `${shortCount(input)} in${cached > 0 ? ` (${shortCount(cached)} cached)` : ''}, ${shortCount(out)} out`;
}

export function costText(costNano: number | null | undefined): string {
  return costNano === null || costNano === undefined ? 'price unknown' : money(costNano / 1e9);
}
