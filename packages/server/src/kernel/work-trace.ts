import type { TraceOutcome, TraceRecord } from '@gatehouse/contract';

/**
 * Work outside of a turn that has ended: what is absent is empty, zero or, for times, now; without `principalId` only administrators see it.
 * Its facts are counts, codes and ids, never content; the sentence of its error is kept as that of a turn is.
 */
export type TracedWork = Partial<TraceRecord> & Pick<TraceRecord, 'kind'> & { readonly outcome: TraceOutcome };

/** Stores the trace of work that has ended: returns at once, and never fails. */
export type TraceWork = (work: TracedWork) => void;
