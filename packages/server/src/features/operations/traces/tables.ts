import type { TraceKind, TraceOutcome, TurnOrigin } from '@gatehouse/contract';
import type { Generated } from 'kysely';

/** Rows of `trace_record`. */
interface TraceRecordTable {
  readonly seq: Generated<number>;
  readonly id: string;
  readonly kind: TraceKind;
  readonly traceId: string;
  readonly rootRunId: string | null;
  readonly parentId: string | null;
  readonly conversationRef: string | null;
  readonly sessionKey: string | null;
  readonly agentId: string | null;
  readonly principalId: string;
  readonly origin: TurnOrigin | null;
  readonly messageId: string | null;
  readonly channelType: string | null;
  readonly channelId: string | null;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  readonly outcome: TraceOutcome;
  readonly endReason: string | null;
  readonly errorKind: string | null;
  readonly model: string | null;
  readonly modelCalls: number;
  readonly toolCalls: number;
  readonly toolErrors: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly costNano: number | null;
  /** 1 or 0. */
  readonly synthetic: number;
  /** JSON of `TraceDetail` (`record-row.ts`). */
  readonly detailJson: string;
}

/** A record as it is stored, without its number. */
export type TraceRow = Omit<TraceRecordTable, 'seq'>;

/** Rows of `trace_batch`. */
interface TraceBatchTable {
  readonly seq: Generated<number>;
  /** Lines of records, as JSON. */
  readonly records: string;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly traceRecord: TraceRecordTable;
    readonly traceBatch: TraceBatchTable;
  }
}
