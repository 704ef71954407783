import type { ModelTier, TurnOrigin } from '@gatehouse/contract';
import type { PartOfRoot } from '../../../kernel/call-context.ts';
import type { Embeddings } from '../../../llm/embeddings.ts';
import type { ModelInfo, ModelMessage, ModelResult } from '../../../llm/model.ts';
import type { Attempt } from '../../../llm/models.ts';
import type { CallRecord, MadeCalls } from '../../../runtime/turn.ts';
import type { ModelCallRow } from '../../conversations/turns/api.ts';
import type { BudgetsConfig } from './config.ts';

export type { UsageAnswer, UsageQuery, UsageRange, UsageSums } from './store.ts';
export type { TurnBudget } from '../../../runtime/turn-budget.ts';

export interface NodeOfGraph {
  readonly graphId: string;
  readonly nodeId: string;
}

/** The principal and agent of background model calls; the agent pays. */
export interface WorkFor {
  readonly agentId: string;
  readonly principalId: string;
  /** Row whose totals grow by the work's usage, in the transaction that books it. */
  readonly conversationRef?: string;
  /** The turn, or the root run, of which it is a part: its budget and its stops apply as well. */
  readonly part?: PartOfRoot | undefined;
  /** Receives each call once it is booked, also those of work that fails; one that cannot be booked is left to the next start. */
  readonly onCall?: (call: CallRecord) => void;
  /** The node of a graph whose result the answer summarizes: the answer is stored with it, in the transaction that books the call. */
  readonly summarizes?: NodeOfGraph;
  readonly signal: AbortSignal;
}

export interface GenerateWork extends WorkFor {
  /** Selects model and deadline from `operationModels`; the agent's own model where nothing is set. */
  readonly operation: 'compaction' | 'condensation' | 'memoryReview' | 'vision';
  /** These models instead, in this order. */
  readonly models?: readonly ModelInfo[];
  readonly timeoutMs?: number;
  readonly system: readonly string[];
  readonly messages: readonly ModelMessage[];
  /** Longest answer, in tokens; a budget may shorten it, which `finish` reports as `length`. */
  readonly maxTokens: number;
  readonly temperature?: number;
}

export interface EmbedWork extends WorkFor {
  /** Length of the vectors; the model's own when absent. */
  readonly dimensions?: number | undefined;
  readonly texts: readonly string[];
}

/** Work whose price is not one of tokens alone. */
export type ChargedOperation = 'transcription' | 'speech' | 'imageGeneration' | 'video';
/** Operations of speech, images and video. */
export type MediaOperation = ChargedOperation | 'vision';

/** One request to a provider of speech, images or video. */
export interface ChargedWork extends WorkFor {
  readonly operation: ChargedOperation;
  readonly provider: string;
  readonly modelId: string;
  /** The most that it can cost, in 1e-9 dollar; null when the price is not known. */
  readonly mostNano: number | null;
  /** Key of the configuration that states a price. */
  readonly priceKey: string;
}

export interface ChargedAnswer {
  readonly costNano: number | null;
  readonly tokens?: { readonly input: number; readonly output: number };
}

/** A call of speech, images or video that succeeded. */
export interface MediaCall {
  readonly operation: string;
  readonly agentId: string;
  readonly atMs: number;
}

export interface MeteredCall extends WorkFor {
  readonly model: ModelInfo;
  readonly messages: readonly ModelMessage[];
  /** Longest answer, in tokens; a budget may shorten it. */
  readonly maxTokens: number;
}

/**
 * Model calls outside of turns: within the budgets of the agent, with the model of `operationModels`, booked before they
 * return. Fail with ModelError, with AppError `rate_limited` when a budget is spent, with `unavailable` when the queue
 * is full; the usage of failed attempts is booked too.
 */
export interface ModelWork {
  /** Returns the calls of these operations that succeeded in a time, also those of earlier processes, in order. */
  mediaCalls(wanted: {
    readonly operations: readonly MediaOperation[];
    readonly sinceMs: number;
    readonly untilMs: number;
  }): Promise<readonly MediaCall[]>;
  generate(work: GenerateWork): Promise<{ readonly text: string; readonly model: string; readonly finish: ModelResult['finish'] }>;
  /** Returns the capability of the model that an operation of an agent uses. */
  tierOf(agentId: string, operation: Exclude<GenerateWork['operation'], 'vision'> | 'interactive'): ModelTier;
  /** Meters a call that the caller makes, with a model that need not be in the catalog. */
  meter(work: MeteredCall, call: (maxTokens: number) => Promise<Attempt>): Promise<Attempt>;
  /** Makes one request that costs what its answer says; a failed one costs nothing. */
  charge<Answer extends ChargedAnswer>(work: ChargedWork, call: () => Promise<Answer>): Promise<Answer>;
  /** Fails with `precondition_failed` when no embedder is configured. */
  embed(work: EmbedWork): Promise<Embeddings>;
}

/** Whose model calls are booked: those of a turn, or of a background work item. */
export interface CallsOf {
  /** `tn_…` or `wk_…` */
  readonly id: string;
  readonly agentId: string;
  readonly principalId: string;
  /** Null when its messages are not stored. */
  readonly conversationRef: string | null;
  /** The root run whose sums grow by the calls of a background work item. */
  readonly rootRunId?: string | undefined;
  /** The run of a sub-agent for whose turn the calls are made: its cost grows too. */
  readonly runId?: string | undefined;
  /** The node of a graph that the calls are made for: its cost grows too. */
  readonly node?: NodeOfGraph | undefined;
  /** The node whose result the answer summarizes. */
  readonly summarizes?: NodeOfGraph | undefined;
  /** What the row of a turn needs that has none until its commit. */
  readonly turn?: MadeTurn | undefined;
}

/** A turn as it began, without what its calls are booked with. */
export interface MadeTurn {
  readonly conversationRef: string;
  readonly sessionKey: string;
  readonly origin: TurnOrigin;
  readonly traceId: string;
  readonly startedAtMs: number;
  readonly bootId: string;
  /** The work, run, graph and node that it belongs to. */
  readonly refs?: Readonly<Record<string, string>> | undefined;
  /** Nobody asked for it: see `TurnInput`. */
  readonly synthetic?: boolean | undefined;
  /** Id of the record of this part of the turn; absent when it is that of the turn. */
  readonly recordId?: string | undefined;
  /** Absent for a turn that is a root itself. */
  readonly rootRunId?: string | undefined;
}

/** Takes the calls of one turn or work item as they end, and keeps them noted until they are booked. */
export interface NotedCalls extends MadeCalls {
  /** Notes the answer that is stored with `summarizes`. */
  keep(answer: string): void;
  /** Call when they are booked. */
  close(): void;
}

/** A call as it was noted. */
export type MadeCall = Omit<CallRecord, 'operation'> & { readonly operation: string };

/** Calls of a turn or work item that a killed process left, in the order of their ends; some of them may be booked. */
export interface MadeWork extends CallsOf {
  readonly calls: readonly MadeCall[];
  /** Whether one more had begun under a cap in money; its cost is not known. */
  readonly isInFlight: boolean;
  /** Number of calls of earlier parts of the turn, before it was resumed. */
  readonly earlier?: number | undefined;
  /** The answer that is stored with `summarizes`; empty when it cannot be used. */
  readonly answer?: string | undefined;
}

/** What a start booked of work that an earlier process left. */
export interface KilledWork {
  readonly id: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly conversationRef?: string;
  readonly traceId?: string;
  readonly startedAtMs: number;
  /** Origin of a turn, operation of background work. */
  readonly origin: string;
  readonly part: PartOfWork;
  /** Calls of background work that were not booked. */
  readonly calls: readonly ModelCallRow[];
  /** What else it may have spent, in 1e-9 dollar. */
  readonly lostNano: number;
}

/** Stores what a turn or work item may have cost if the process dies now. */
export interface ReserveStore {
  /** Usage so far and the reserve, in 1e-9 dollar; `model` is that of the call. */
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
  readonly bootId: string;
  /** What it is a part of, for a daemon that ends it without its journal. */
  readonly part?: PartOfWork | undefined;
}

/** What the calls of background work are added to. */
export type PartOfWork = Pick<CallsOf, 'rootRunId' | 'runId' | 'node'>;

/** Usage of work. */
export interface WorkBooking extends Pick<CallsOf, 'id' | 'agentId' | 'principalId' | 'conversationRef' | 'summarizes'>, PartOfWork {
  /** Whether the work has a row, which is deleted with the booking. */
  readonly opened: boolean;
  readonly calls: readonly CallRecord[];
  /** The answer that is stored with `summarizes`; empty when it cannot be used. */
  readonly answer?: string | undefined;
}

/** Caps of a person, or of a token without one. */
export interface OwnerBudgets {
  readonly kind: 'person' | 'token';
  /** Key of the configuration that holds them. */
  readonly name: string;
  readonly budgets: BudgetsConfig;
}

/** Persons, and tokens without one, that have budgets of their calls. */
export interface BudgetOwners {
  budgetsOf(principalId: string): OwnerBudgets | undefined;
  /** Principals for which `budgetsOf` returns something. */
  withBudgets(): readonly string[];
  onChange(run: () => Promise<void>): Disposable;
}
