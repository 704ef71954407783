import type { TraceRecord } from '@gatehouse/contract';

/** A record whose work has ended. */
export type EndedRecord = TraceRecord & { readonly endedAtMs: number; readonly outcome: NonNullable<TraceRecord['outcome']> };

export interface TracesApi {
  /** Stores a record behind the work it is about: returns at once, and never fails. */
  record(ended: EndedRecord): void;
}
