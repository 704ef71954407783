import type { TraceOutcome, TraceRecord } from '@gatehouse/contract';
import type { PartOfRoot } from './call-context.ts';

/**
 * Work outside of a turn that has ended: what is absent is empty, zero or, for times, now; without `principalId` only administrators see it.
 * Its facts are counts, codes and ids, never content; the sentence of its error is kept as that of a turn is.
 */
export type TracedWork = Partial<TraceRecord> & Pick<TraceRecord, 'kind'> & { readonly outcome: TraceOutcome };

/** Stores the trace of work that has ended: returns at once, and never fails. */
export type TraceWork = (work: TracedWork) => void;

/** Returns what the record of work says about the root run that it is a part of. */
export function tracedPart(part: PartOfRoot | undefined): Pick<TracedWork, 'traceId' | 'rootRunId' | 'parentId' | 'refs' | 'synthetic'> {
  if (part === undefined) return {};
  const { rootRunId, turnId, traceId, node, synthetic = false } = part;
  return {
    rootRunId,
    synthetic,
    ...(traceId !== undefined && { traceId }),
    ...(turnId !== undefined && { parentId: turnId }),
    ...(node !== undefined && { refs: { ...node } }),
  };
}
