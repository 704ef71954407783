import type {} from '../../../../kernel/db/tables.ts';

/** Kinds of observability data that can be reset. */
export type ResetName = 'token_usage' | 'delivery' | 'diagnostics' | 'channels' | 'traces';

/** Rows of `obs_reset`. */
interface ObsResetTable {
  readonly name: ResetName;
  readonly atMs: number;
  /** Number of the newest trace record at the time. */
  readonly upTo: number;
}

declare module '../../../../kernel/db/tables.ts' {
  interface Tables {
    readonly obsReset: ObsResetTable;
  }
}
