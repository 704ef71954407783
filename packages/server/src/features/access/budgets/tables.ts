import type {} from '../../../kernel/db/tables.ts';

/** Rows of `usage_slot`. */
interface UsageSlotTable {
  readonly principalId: string;
  readonly slotMs: number;
  readonly agentId: string;
  readonly provider: string;
  readonly model: string;
  readonly operation: string;
  readonly calls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly costNano: number;
  readonly savedNano: number;
  readonly unpriced: number;
}

/** Rows of `usage_day`. */
interface UsageDayTable {
  readonly principalId: string;
  readonly slotMs: number;
  readonly agentId: string;
  readonly provider: string;
  readonly model: string;
  readonly operation: string;
  readonly calls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly costNano: number;
  readonly savedNano: number;
  readonly unpriced: number;
}

/** Rows of `usage_past`. */
interface UsagePastTable {
  readonly conversationRef: string;
  readonly principalId: string;
  readonly slotMs: number;
  readonly agentId: string;
  readonly provider: string;
  readonly model: string;
  readonly operation: string;
  readonly calls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly costNano: number;
  readonly savedNano: number;
  readonly unpriced: number;
}

/** Rows of `work_part`. */
interface WorkPartTable {
  readonly workId: string;
  readonly rootRunId: string | null;
  readonly runId: string | null;
  readonly graphId: string | null;
  readonly nodeId: string | null;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly usageSlot: UsageSlotTable;
    readonly usageDay: UsageDayTable;
    readonly usagePast: UsagePastTable;
    readonly workPart: WorkPartTable;
  }
}
