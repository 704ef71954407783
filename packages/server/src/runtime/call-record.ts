import type { Attempt } from '../llm/models.ts';
import { cacheSaving, costOf } from '../llm/price.ts';
import type { CallRecord } from './turn.ts';

/** Returns an attempt with its cost, as it is charged. */
export function toCallRecord(attempt: Attempt, operation: CallRecord['operation']): CallRecord {
  const { model, usage } = attempt;
  return {
    provider: model.provider,
    modelId: model.modelId,
    operation,
    usage,
    cost: costOf(usage, model.price),
    savedNano: cacheSaving(usage, model.price),
    latencyMs: attempt.latencyMs,
    startedAtMs: attempt.startedAtMs,
    outcome: attempt.outcome,
    ...(attempt.responseId !== undefined && { responseId: attempt.responseId }),
  };
}
