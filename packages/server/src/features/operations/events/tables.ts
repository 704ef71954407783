import type { Generated } from 'kysely';

/** Rows of `event_batch`. */
interface EventBatchTable {
  readonly lastId: Generated<number>;
  readonly firstId: number;
  readonly atMs: number;
  readonly count: number;
  readonly chars: number;
  readonly totalCount: number;
  readonly totalChars: number;
  readonly ended: number;
  readonly heads: string;
  readonly bodies: string;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly eventBatch: EventBatchTable;
  }
}
