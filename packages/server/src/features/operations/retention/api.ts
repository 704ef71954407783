import type { KeptRecordName } from '@gatehouse/contract';

/** Records that are deleted after some time. */
export interface KeptRecords {
  readonly name: KeptRecordName;
  /** Days that they are kept, as configured now. */
  readonly days: () => number;
  /** Deletes some that are older; returns how many, fewer than `limit` when no more are due. */
  readonly prune: (due: { readonly beforeMs: number; readonly limit: number }, signal: AbortSignal) => Promise<number>;
  /** Returns the time of the oldest that is kept. */
  readonly oldest: () => Promise<number | undefined>;
}

export interface RetentionState {
  /** When deleting began last; absent before the first time. */
  readonly lastAtMs?: number;
  readonly nextAtMs: number;
  readonly kept: {
    readonly name: KeptRecordName;
    readonly days: number;
    /** Absent when none is kept, or the database is away. */
    readonly oldestAtMs?: number;
    /** Since the daemon started. */
    readonly deleted: number;
  }[];
}
