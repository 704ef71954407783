import { createHash } from 'node:crypto';
import type { ResultInput } from '@gatehouse/contract';
import type { CaseStep } from './rules/case.ts';
import { isMissingDependency, kindOf } from './rules/tool-rules.ts';
import { countFact, type StoredRecord, textFact } from '../records.ts';

type Report = ResultInput<'obs.explain'>;
export type Failure = Report['failures'][number];

/** A step with its number in everything that was read. */
export interface NumberedStep extends CaseStep {
  readonly seq: number;
}

export function numberSteps(records: readonly StoredRecord[]): NumberedStep[] {
  return records.flatMap((record) => record.steps.map((step) => ({ record, step }))).map((one, seq) => ({ ...one, seq }));
}

/** Returns what failed, newest first: calls, attempts, deliveries, and turns that failed without any of them. */
export function failuresOf(steps: readonly NumberedStep[], records: readonly StoredRecord[]): Failure[] {
  // A failed model call has its failed attempts below it.
  const withAttempts = new Set(
    steps.flatMap(({ step, record }) => (step.kind === 'attempt' && isFailure(step) ? [`${record.id} ${step.parent}`] : [])),
  );
  const failed = steps.filter(({ step, record }) => isFailure(step) && !(step.kind === 'model' && withAttempts.has(`${record.id} ${step.id}`)));
  const bySteps = failed.map(failureOf);
  const explained = new Set(failed.map(({ record }) => record));
  const turns = records.filter((record) => record.outcome === 'failed' && !explained.has(record)).map((record) => turnFailure(record, steps));
  return [...bySteps, ...turns].toSorted((a, b) => b.seq - a.seq);
}

function isFailure({ kind, outcome }: CaseStep['step']): boolean {
  if (kind === 'tool') return outcome === 'error' || outcome === 'denied';
  return (kind === 'model' || kind === 'attempt' || kind === 'delivery') && outcome === 'error';
}

function failureOf({ seq, step, record }: NumberedStep): Failure {
  const kind = step.kind === 'attempt' ? 'model' : (step.kind as 'tool' | 'model' | 'delivery');
  const errorKind = step.outcome === 'denied' ? 'denied' : kindOf(step);
  const rule = isMissingDependency({ step, record }) ? { matchedRule: 'missing_dependency' } : {};
  return {
    seq,
    recordId: record.id,
    kind,
    toolName: step.name,
    classifiedFailureBy: judgeOf(kind, errorKind, step.outcome === 'denied'),
    transportOk: !['network', 'timeout', 'mcp_unavailable', 'mcp_unreachable', 'unavailable'].includes(errorKind),
    ...(step.error?.status !== undefined && { httpStatus: step.error.status }),
    errorKind,
    ...rule,
    ...digestOf(step.output, step.error?.text),
    ...(step.input !== undefined && { argsDigest: step.input.digest }),
  };
}

/** Returns what decided that a step failed. */
function judgeOf(kind: 'tool' | 'model' | 'delivery', errorKind: string, isDenied: boolean): Failure['classifiedFailureBy'] {
  if (kind === 'delivery') return kind;
  if (kind === 'model') return errorKind === 'budget_exceeded' ? 'gate' : 'provider';
  return isDenied ? 'gate' : 'tool_result';
}

function turnFailure(record: StoredRecord, steps: readonly NumberedStep[]): Failure {
  return {
    seq: steps.findLast((one) => one.record === record)?.seq ?? steps.length,
    recordId: record.id,
    kind: 'turn',
    toolName: 'turn',
    classifiedFailureBy: 'turn',
    transportOk: true,
    errorKind: record.error?.kind ?? record.endReason ?? 'unknown',
    ...digestOf(undefined, record.error?.text),
  };
}

function digestOf(output: CaseStep['step']['output'], text = ''): Pick<Failure, 'resultDigest' | 'resultBytes'> {
  if (output !== undefined) return { resultDigest: output.digest, resultBytes: output.bytes };
  return { resultDigest: createHash('sha256').update(text).digest('hex').slice(0, 16), resultBytes: Buffer.byteLength(text) };
}

/** Counts calls of each tool; a denied call failed, one with a pending approval is counted when it is made. Tools are in alphabetical order. */
export function toolStatsOf(steps: readonly CaseStep[]): Report['toolStats'] {
  const counts = new Map<string, { ok: number; failed: number; kinds: Map<string, number> }>();
  for (const { step } of steps) {
    if (step.kind !== 'tool' || step.outcome === 'waiting') continue;
    const entry = counts.get(step.name) ?? { ok: 0, failed: 0, kinds: new Map<string, number>() };
    counts.set(step.name, entry);
    if (step.outcome !== 'error' && step.outcome !== 'denied') {
      entry.ok += 1;
      continue;
    }
    entry.failed += 1;
    const kind = step.outcome === 'denied' ? 'denied' : kindOf(step);
    entry.kinds.set(kind, (entry.kinds.get(kind) ?? 0) + 1);
  }
  return Object.fromEntries(
    [...counts]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, { ok, failed, kinds }]) => {
        const [top] = [...kinds].toSorted(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
        return [name, { ok, failed, ...(top !== undefined && { topErrorKind: top[0] }) }];
      }),
  );
}

type Breaker = Report['breakerTimeline'][number];

export function breakersOf(steps: readonly NumberedStep[]): Breaker[] {
  return steps.flatMap(({ seq, step }) => {
    if (step.kind !== 'breaker') return [];
    const event = textFact(step.facts?.['event']);
    if (event !== 'opened' && event !== 'refused' && event !== 'reset') return [];
    const failures = countFact(step.facts?.['failures']);
    return [{ seq, event, toolName: step.name, ...(failures > 0 && { consecutiveFailures: failures }) }];
  });
}

export function offLoadsOf(steps: readonly NumberedStep[]): Report['offloads'] {
  return steps.flatMap(({ seq, step }) =>
    step.kind === 'off_load'
      ? [
          {
            seq,
            toolName: textFact(step.facts?.['tool']) ?? step.name,
            originalChars: countFact(step.facts?.['chars']),
            pointer: textFact(step.facts?.['pointer']) ?? null,
          },
        ]
      : [],
  );
}
