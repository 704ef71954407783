import type { Generated } from 'kysely';

/** Rows of `memory_review`. */
interface MemoryReviewTable {
  readonly agentId: string;
  readonly conversationRef: string;
  readonly reviewedToSeq: number;
  readonly triedToSeq: number;
  readonly failures: number;
  readonly atMs: number;
}

/** Rows of `memory_consolidation`. */
interface MemoryConsolidationTable {
  readonly agentId: string;
  readonly examinedToSeq: number;
  readonly atMs: number;
}

/** Rows of `memory_demotion`. */
interface MemoryDemotionTable {
  readonly seq: Generated<number>;
  readonly atMs: number;
}

declare module '../../../../kernel/db/tables.ts' {
  interface Tables {
    readonly memoryReview: MemoryReviewTable;
    readonly memoryConsolidation: MemoryConsolidationTable;
    readonly memoryDemotion: MemoryDemotionTable;
  }
}
