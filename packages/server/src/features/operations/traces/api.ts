import type { TraceRecord } from '@gatehouse/contract';
import type { TraceWork } from '../../../kernel/work-trace.ts';
import type { TurnTrace } from '../../../runtime/turn-trace.ts';

/** A record whose work has ended. */
export type EndedRecord = TraceRecord & { readonly endedAtMs: number; readonly outcome: NonNullable<TraceRecord['outcome']> };

export interface TracesApi {
  /** Returns a list for the steps of a turn that begins; undefined when no traces are kept. */
  ofTurn(): TurnTrace | undefined;
  /** Shows a turn as running until it is disposed of; `record` returns the turn as it is when somebody looks. */
  running(record: () => TraceRecord): Disposable;
  /** Stores a record behind the work it is about: returns at once, and never fails. */
  record(ended: EndedRecord): void;
  /** The same for work outside of a turn. */
  readonly work: TraceWork;
}
