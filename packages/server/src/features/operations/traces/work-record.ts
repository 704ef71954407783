import type { Clock } from '../../../kernel/clock.ts';
import { newId, newTraceId } from '../../../kernel/ids.ts';
import type { TracedWork } from '../../../kernel/work-trace.ts';
import { type KeptContent, previewOf } from '../../../runtime/turn-trace.ts';
import type { EndedRecord } from './api.ts';

const noTokens = { in: 0, out: 0, cached: 0, cacheWritten: 0 };

/** Returns the work with what of the sentence of its error is kept. */
export function withKeptText(work: TracedWork, content: KeptContent, redact: (text: string) => string): TracedWork {
  if (work.error?.text === undefined) return work;
  const { text, ...error } = work.error;
  return { ...work, error: content === 'off' ? error : { ...error, text: previewOf(text, redact) } };
}

/** Completes a record of work outside of a turn. */
export function toWorkRecord(work: TracedWork, clock: Pick<Clock, 'now'>): EndedRecord {
  const endedAtMs = work.endedAtMs ?? clock.now();
  return {
    id: newId('tr'),
    traceId: newTraceId(),
    principalId: 'system',
    startedAtMs: endedAtMs,
    endReason: null,
    error: null,
    model: null,
    modelCalls: 0,
    toolCalls: 0,
    toolErrors: 0,
    tokens: noTokens,
    costNano: 0,
    synthetic: false,
    refs: {},
    facts: {},
    steps: [],
    droppedSteps: 0,
    ...work,
    endedAtMs,
  };
}
