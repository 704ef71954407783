import type { Embeddings } from '../../../llm/embeddings.ts';
import type { ModelMessage, ModelResult } from '../../../llm/model.ts';
import type { CallRecord } from '../../../runtime/turn.ts';

export type { TurnBudget } from '../../../runtime/turn-budget.ts';

/** For whom a model works in the background; the agent pays. */
export interface WorkFor {
  readonly agentId: string;
  readonly principalId: string;
  /** Its totals grow by what the work used, in the transaction that books it. */
  readonly conversationRef?: string;
  readonly signal: AbortSignal;
}

export interface GenerateWork extends WorkFor {
  /** Chooses model and deadline from `operationModels`; the agent's own model where nothing is set. */
  readonly operation: 'compaction' | 'condensation' | 'memoryReview';
  readonly system: readonly string[];
  readonly messages: readonly ModelMessage[];
  /** Longest answer, in tokens; a budget may make it shorter, which `finish` then tells as `length`. */
  readonly maxTokens: number;
  readonly temperature?: number;
}

export interface EmbedWork extends WorkFor {
  /** Length of the vectors; the model's own when absent. */
  readonly dimensions?: number | undefined;
  readonly texts: readonly string[];
}

/**
 * Model calls outside of turns: within the budgets of the agent, with the model of `operationModels`, booked before they
 * answer. Fail with ModelError, with `rate_limited` of AppError when a budget has no room, with `unavailable` when too
 * much work waits already; what an attempt used is booked even then.
 */
export interface ModelWork {
  generate(work: GenerateWork): Promise<{ readonly text: string; readonly model: string; readonly finish: ModelResult['finish'] }>;
  /** Fails with `precondition_failed` when no embedder is configured. */
  embed(work: EmbedWork): Promise<Embeddings>;
}

/** Where a turn, or a piece of work, writes what it may have cost if the process dies now. */
export interface ReserveStore {
  /** What was used so far and what is held, in 1e-9 dollar; `model` is that of the call. */
  reserve(reservedNano: number, model: string): Promise<void>;
}

/** Row of work that runs under a cap in money. */
export interface WorkOpening {
  /** `wk_…` */
  readonly id: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly conversationRef: string | null;
  readonly operation: CallRecord['operation'];
  readonly model: string;
  readonly reservedNano: number;
  readonly traceId: string;
  readonly startedAtMs: number;
}

/** What work has used. */
export interface WorkBooking extends Pick<WorkOpening, 'id' | 'agentId' | 'principalId' | 'conversationRef'> {
  /** Whether it has a row, which goes with the booking. */
  readonly opened: boolean;
  readonly calls: readonly CallRecord[];
}
