import type { TraceKind } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import { newTraceId } from '../../../../kernel/ids.ts';
import { ModelError, type ModelInfo } from '../../../../llm/model.ts';
import type { Attempt } from '../../../../llm/models.ts';
import { totalCost } from '../../../../llm/price.ts';
import { addCost, addTokens, tokensOf } from '../../../../runtime/turn-trace.ts';
import type { CallRecord } from '../../../../runtime/turn.ts';
import { tracedPart } from '../../../../kernel/work-trace.ts';
import type { TracesApi } from '../../../operations/traces/api.ts';
import type { WorkFor } from '../api.ts';

type Answered = Pick<CallRecord, 'usage' | 'cost'>;

type TracedWork = WorkFor & { readonly operation: CallRecord['operation'] };

const kinds: Partial<Record<CallRecord['operation'], TraceKind>> = { memoryReview: 'review', vision: 'media', embedding: 'embedding' };

/** A budget refuses with `rate_limited`, which in traces is what a provider answers. */
const refusalOf = ({ code, message }: AppError) => ({ kind: code === 'rate_limited' ? 'budget_exceeded' : code, text: message });

/** Begins the record of one model call outside of a turn. */
export function beginWorkTrace(traces: Pick<TracesApi, 'ofTurn' | 'work'>, work: TracedWork, [first]: readonly ModelInfo[]) {
  const trace = traces.ofTurn();
  const { traceId = newTraceId() } = work.part ?? {};
  let model = first === undefined ? '' : `${first.provider}/${first.modelId}`;
  const step = trace?.begin('model', model, { facts: { operation: work.operation } });
  const records: Answered[] = [];

  function end(isAborted: boolean, failure?: unknown): void {
    if (trace === undefined) return;
    const isFailed = failure !== undefined;
    const error = !isFailed ? null : failure instanceof AppError ? refusalOf(failure) : trace.errorOf(failure);
    trace.end(step, { outcome: isAborted ? 'cancelled' : isFailed ? 'error' : 'ok', ...(error !== null && { error }) });
    let tokens = { in: 0, out: 0, cached: 0, cacheWritten: 0 };
    let costNano: number | null = 0;
    for (const record of records) {
      tokens = addTokens(tokens, tokensOf(record));
      costNano = addCost(costNano, record.cost === null ? null : totalCost(record.cost));
    }
    traces.work({
      kind: kinds[work.operation] ?? 'compaction',
      traceId,
      ...tracedPart(work.part),
      agentId: work.agentId,
      principalId: work.principalId,
      ...(work.conversationRef !== undefined && { conversationRef: work.conversationRef }),
      startedAtMs: trace.startedAtMs,
      outcome: isAborted ? 'cancelled' : isFailed ? 'failed' : 'ok',
      endReason: isAborted ? 'aborted' : isFailed ? 'error' : 'stop',
      error,
      model,
      modelCalls: records.length,
      tokens,
      costNano,
      facts: { operation: work.operation },
      steps: trace.steps,
      droppedSteps: trace.dropped,
    });
  }

  return {
    traceId,
    attempt(attempt: Attempt, record: CallRecord): void {
      records.push(record);
      model = `${attempt.model.provider}/${attempt.model.modelId}`;
      trace?.attempt(step, attempt, record);
    },
    /** Stores the record when the call has ended. */
    async until<T>(call: Promise<T>, signal: AbortSignal): Promise<T> {
      try {
        const answer = await call;
        if (step !== undefined) step.name = model;
        end(false);
        return answer;
      } catch (error) {
        end(signal.aborted || (error instanceof ModelError && error.kind === 'aborted'), error);
        throw error;
      }
    },
  };
}
