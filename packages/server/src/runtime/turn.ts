import type { AgentConfig, FinishReason, OperationType, TurnOrigin } from '@gatehouse/contract';
import type { CallContext } from '../kernel/call-context.ts';
import type { ModelInfo, ModelMessage, ModelOptions, ModelSink, ModelUsage, ThinkingBlock, ToolCall, ToolSpec } from '../llm/model.ts';
import type { BackgroundRights } from './background.ts';
import type { Tool } from './tool.ts';
import type { TurnBudget } from './turn-budget.ts';
import type { TurnFailure } from './turn-failure.ts';

/** Everything that one run of the loop needs; nothing in here is looked up again while it runs. */
export interface TurnInput {
  readonly turnId: string;
  readonly traceId: string;
  readonly agentId: string;
  readonly agent: AgentConfig;
  readonly origin: TurnOrigin;
  /** Tried in order; the first is the primary. Never empty. */
  readonly models: readonly ModelInfo[];
  readonly system: readonly string[];
  /** The conversation so far, ending with the message to answer. Never cut by the caller: the loop keeps it inside the window. */
  readonly messages: readonly ModelMessage[];
  /** The first of `messages` as a caller sent them that keeps the conversation itself: all of it goes to the model, or nothing does. Without what was put in front. */
  readonly whole?: readonly ModelMessage[];
  /** What was said before was made of text from outside, also where the messages do not show it any more. */
  readonly taintedBefore?: boolean;
  /** Already filtered by policy. */
  readonly tools: readonly Tool[];
  /** Tools that the caller runs itself: a call of one ends the turn with `clientCalls`. They stand before a tool of the agent with the same name. */
  readonly clientTools?: readonly ToolSpec[];
  readonly options?: ModelOptions;
  readonly workspaceDir: string;
  readonly conversationRef: string;
  readonly sessionKey: string;
  /** Owner of the conversation. */
  readonly principalId: string;
  /** For tools that call features: the identity of the turn's caller, with `agentCaller` set. */
  readonly call: CallContext;
  /** Absent when no call of the turn may go on in the background, and nothing that ended there comes into it. */
  readonly background?: BackgroundRights;
  readonly temperature?: number;
  readonly maxTokens?: number;
  /** Writes the turn's open row before a tool of class `once` runs, with the tasks whose results the turn was told until then; called before each. */
  readonly beforeOnce?: (told: readonly string[]) => Promise<void>;
  /** Keeps what the turn does step by step, so that another process can go on with it. */
  readonly ledger?: TurnLedger;
  /** What the calls are booked as; `interactive` when absent. */
  readonly operation?: OperationType;
  /** Caps over agent and time; without it only `agent.budgets.perTurnTokens` holds. */
  readonly budget?: TurnBudget;
  /** By whose rights it acts when not by those of its origin. */
  readonly authority?: TurnOrigin;
  readonly steering?: TurnSteering;
  readonly signal: AbortSignal;
  /** Ends the turn from within: a guard found that it must not go on. */
  readonly abort?: (reason: Error) => void;
}

/** Messages that come into a turn between two of its steps. */
export interface TurnSteering {
  /** What came since the last time; whoever takes it puts it into the turn. `text` is fenced. */
  take(): { readonly ids: readonly string[]; readonly text: string } | undefined;
}

/** A call that waits for a person's decision, longer than its turn stays in memory. */
export interface ApprovalWait {
  readonly approvalId: string;
  readonly untilMs: number;
}

/** What a turn has done before this run of it. */
export interface TurnPast {
  /** Of the steps that are finished. */
  readonly messages: readonly ModelMessage[];
  readonly steps: number;
  readonly usedTokens: number;
  /** Calls that were not run for want of an approval. */
  readonly refused: number;
  /** A step whose answer is known, and some of the results: its calls are not asked for again. */
  readonly begun?: { readonly text: string; readonly calls: readonly ToolCall[]; readonly results: readonly ModelMessage[] };
}

/** A step whose calls are about to run, or have run; `records` are all model calls of this run so far. */
export interface LedgerStep {
  readonly number: number;
  readonly text: string;
  readonly calls: readonly ToolCall[];
  readonly records: readonly CallRecord[];
  /** Calls of the turn so far that were not run for want of an approval. */
  readonly refused: number;
  /** Messages of the steering that came before the step. */
  readonly steers?: readonly string[];
}

/** Every function rejects when the turn is another process's by now: then nothing more is done. */
export interface TurnLedger {
  readonly past?: TurnPast;
  /** The work item that the turn belongs to. */
  readonly workId: string;
  readonly startedAtMs: number;
  /** Before a call of class `once` runs: from here on it counts as done, or as unknown after a crash. */
  begin(step: LedgerStep, call: ToolCall): Promise<void>;
  /** After it ran. */
  end(call: ToolCall, result: ModelMessage): Promise<void>;
  /** A call of the step waits for a person: keeps the step with the results that exist, so that the next run continues with that call. */
  pause(step: LedgerStep, results: readonly ModelMessage[]): Promise<void>;
  /** After all calls of a step; `messages` are the answer and the results. */
  finish(step: LedgerStep, messages: readonly ModelMessage[]): Promise<void>;
}

/** Where a turn's stream goes; see ModelSink for `text`, `flush` and `drained`. Absent when nobody reads along. */
export interface TurnSink {
  readonly thinking?: NonNullable<ModelSink['thinking']>;
  text(jsonFragment: string): void;
  flush(): boolean;
  drained(): Promise<void>;
  readonly onlyWatched?: boolean;
}

/** One model call, to be booked exactly once. */
export interface CallRecord {
  readonly provider: string;
  readonly modelId: string;
  readonly operation: OperationType | 'embedding';
  readonly usage: ModelUsage;
  /** In 1e-9 US dollars, so that sums are exact; null when the price is not known. */
  readonly cost: { readonly input: number; readonly output: number; readonly cacheRead: number; readonly cacheWrite: number } | null;
  /** What the cached input would have cost more at the full price, 1e-9 US dollar. */
  readonly savedNano: number | null;
  readonly latencyMs: number;
  readonly startedAtMs: number;
  readonly outcome: 'ok' | 'error';
  readonly responseId?: string;
}

export type AnswerEnding = { readonly by: 'stop_sequence'; readonly sequence: string } | { readonly by: 'content_filter' };

export interface TurnResult {
  readonly finishReason: FinishReason;
  /** What was streamed: the texts of all steps, joined by an empty line; with what had come when the turn ended early. */
  readonly text: string;
  /** What the turn adds to the conversation after the user's message: assistant and tool messages, in order. */
  readonly messages: readonly ModelMessage[];
  readonly calls: readonly CallRecord[];
  /** How many messages the model was not sent, or not whole, because they do not fit. */
  readonly leftOut?: number;
  /** Calls that wait for the caller: the turn ended so that it can run them. They also stand in the last assistant message, which results of the agent's own calls may follow. */
  readonly clientCalls?: readonly ToolCall[];
  /** Signed reasoning of the turn's model calls, in order. */
  readonly thinking?: readonly ThinkingBlock[];
  /** Why the last answer ended, where it was not the model's own decision. */
  readonly ending?: AnswerEnding;
  readonly steps: number;
  readonly model: ModelInfo;
  /** The turn has not ended: it continues once this call is decided. */
  readonly waiting?: ApprovalWait;
  /** Calls that needed an approval and were not run: refused, denied, or decided by nobody in time; absent: none. */
  readonly effectsRefused?: number;
  /** Tasks whose results are among `messages`. */
  readonly told?: readonly string[];
  /** The model had read text from outside, so that what it said counts as such text for others. */
  readonly tainted: boolean;
  /** Of a failed turn. */
  readonly failure?: TurnFailure;
}

/** The loop: a function of its input; events go to `sink`, the result is whole. Never rejects. */
export type RunTurn = (input: TurnInput, sink?: TurnSink) => Promise<TurnResult>;
