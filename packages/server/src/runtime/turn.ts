import type { JsonFragment } from '../kernel/json-fragment.ts';
import type { AgentConfig, FinishReason, OperationType, TurnOrigin } from '@gatehouse/contract';
import type { CallContext } from '../kernel/call-context.ts';
import type { ModelInfo, ModelMessage, ModelOptions, ModelSink, ModelUsage, ThinkingBlock, ToolCall, ToolSpec } from '../llm/model.ts';
import type { BackgroundAuthority } from './background.ts';
import type { Tool } from './tool.ts';
import type { TurnBudget } from './turn-budget.ts';
import type { TurnFailure } from './turn-failure.ts';
import type { TurnTrace } from './turn-trace.ts';

/** What the model of a turn receives in addition to messages. */
export interface TurnAsk {
  /** Tried in order; the first is the primary. Never empty. */
  readonly models: readonly ModelInfo[];
  readonly system: readonly string[];
  /** Already filtered by policy. */
  readonly tools: readonly Tool[];
  /** Tools that the caller runs itself: a call of one ends the turn with `clientCalls`. They hide an agent's tool of the same name. */
  readonly clientTools?: readonly ToolSpec[] | undefined;
  readonly options?: ModelOptions | undefined;
  readonly temperature?: number | undefined;
  readonly maxTokens?: number | undefined;
}

/** Everything that one run of the loop needs; nothing in here is looked up again while it runs. */
export interface TurnInput extends TurnAsk {
  readonly turnId: string;
  readonly traceId: string;
  readonly agentId: string;
  readonly agent: AgentConfig;
  readonly origin: TurnOrigin;
  /** The conversation so far, ending with the message to answer. Never cut by the caller: the loop keeps it inside the window. */
  readonly messages: readonly ModelMessage[];
  /** The start of `messages` exactly as sent by a caller that keeps the conversation itself, without added text. Sent whole or not at all. */
  readonly whole?: readonly ModelMessage[] | undefined;
  /** Earlier messages derive from untrusted text, even if that is no longer visible. */
  readonly taintedBefore?: boolean | undefined;
  readonly workspaceDir: string;
  readonly conversationRef: string;
  readonly sessionKey: string;
  /** Owner of the conversation. */
  readonly principalId: string;
  /** Call context for tools that call features: the identity of the turn's caller, with `agentCaller` set. */
  readonly call: CallContext;
  /** Absent when no call of the turn may continue in the background, and no background result is added to it. */
  readonly background?: BackgroundAuthority | undefined;
  /** Writes the turn's open row before a tool of class `once` runs, with the tasks reported to the turn until then; called before each. */
  readonly beforeOnce?: ((reported: readonly string[]) => Promise<void>) | undefined;
  /** Stores the turn's progress step by step, so that another process can continue it. */
  readonly ledger?: TurnLedger | undefined;
  /** Operation that the calls are charged to; `interactive` when absent. */
  readonly operation?: OperationType | undefined;
  /** Takes each model call as it ends. */
  readonly made?: MadeCalls;
  /** Caps over agent and time; without it only `agent.budgets.perTurnTokens` applies. */
  readonly budget?: TurnBudget;
  /** The authority under which it acts, if not that of its origin. */
  readonly authority?: TurnOrigin | undefined;
  readonly steering?: TurnSteering | undefined;
  /** Streamed reasoning is stored with the messages. */
  readonly keepsThoughts?: true | undefined;
  /** Takes the steps of the turn; absent when no traces are kept. */
  readonly trace?: TurnTrace | undefined;
  /** Nobody asked for it: an evaluation, a replay or a test. Its model calls are charged as `evaluation`. */
  readonly synthetic?: true | undefined;
  /** Calls that may change or reach something are refused, and nobody is asked for an approval. */
  readonly isolated?: true | undefined;
  readonly signal: AbortSignal;
  /** Aborts the turn from within: a guard found that it must not continue. */
  readonly abort?: (reason: Error) => void;
}

/** Messages that enter a turn between two of its steps. */
export interface TurnSteering {
  /** Takes the messages since the last call; the caller adds them to the turn. `text` is fenced. */
  take(): { readonly ids: readonly string[]; readonly text: string } | undefined;
}

/** A call waiting for a person's decision, longer than its turn stays in memory. */
export interface ApprovalWait {
  readonly approvalId: string;
  readonly untilMs: number;
}

/** What a turn has done before this run of it. */
export interface TurnPast {
  /** Messages of the finished steps. */
  readonly messages: readonly ModelMessage[];
  readonly steps: number;
  readonly usedTokens: number;
  /** Calls that were not run for lack of an approval. */
  readonly refused: number;
  /** A step with a known answer, and some of the results: its calls are not requested again. */
  readonly begun?: { readonly text: string; readonly calls: readonly ToolCall[]; readonly results: readonly ModelMessage[] };
}

/** A step whose calls are about to run, or have run; `records` are all model calls of this run so far. */
export interface LedgerStep {
  readonly number: number;
  readonly text: string;
  readonly calls: readonly ToolCall[];
  readonly records: readonly CallRecord[];
  /** Calls of the turn so far that were not run for lack of an approval. */
  readonly refused: number;
  /** Steering messages received before the step. */
  readonly steers?: readonly string[];
}

/** Every function rejects when another process owns the turn by now: then nothing more is done. */
export interface TurnLedger {
  readonly past?: TurnPast;
  /** The work item that the turn belongs to. */
  readonly workId: string;
  readonly startedAtMs: number;
  /** Before a call of class `once` runs: from here on it counts as done, or as unknown after a crash. */
  begin(step: LedgerStep, call: ToolCall): Promise<void>;
  /** Called after it ran. */
  end(call: ToolCall, result: ModelMessage): Promise<void>;
  /** A call of the step waits for a person: stores the step with the results that exist, so that the next run continues with that call. */
  pause(step: LedgerStep, results: readonly ModelMessage[]): Promise<void>;
  /** Called after all calls of a step; `messages` are the answer and the results. */
  finish(step: LedgerStep, messages: readonly ModelMessage[]): Promise<void>;
}

/** Destination of a turn's stream; see ModelSink for `text`, `flush` and `drained`. Absent without a reader. */
export interface TurnSink {
  readonly thinking?: NonNullable<ModelSink['thinking']>;
  text(fragment: JsonFragment): void;
  flush(): boolean;
  drained(): Promise<void>;
  readonly onlyWatched?: boolean;
}

/** One model call, to be charged exactly once. */
export interface CallRecord {
  readonly provider: string;
  readonly modelId: string;
  readonly operation: OperationType | 'embedding' | 'evaluation' | 'vision' | 'transcription' | 'speech' | 'imageGeneration' | 'video';
  readonly usage: ModelUsage;
  /** Cost in units of 1e-9 US dollars, so that sums are exact; null when the price is not known. */
  readonly cost: { readonly input: number; readonly output: number; readonly cacheRead: number; readonly cacheWrite: number } | null;
  /** What the cached input would have cost in addition at the full price, 1e-9 US dollar. */
  readonly savedNano: number | null;
  readonly latencyMs: number;
  readonly startedAtMs: number;
  readonly outcome: 'ok' | 'error';
  readonly responseId?: string;
}

/** Notes model calls when they end, so that a kill before they are booked does not lose them. */
export interface MadeCalls {
  /** A call begins whose reserve is stored. */
  begin(): void;
  add(record: CallRecord): void;
  /** The call that began has ended, with or without an answer. */
  settle(): void;
}

export type AnswerEnding = { readonly by: 'stop_sequence'; readonly sequence: string } | { readonly by: 'content_filter' };

/** What the caller of a turn learns about its end. */
export interface TurnAnswer {
  readonly finishReason: FinishReason;
  /** The streamed text: the texts of all steps, joined by an empty line; partial when the turn ended early. */
  readonly text: string;
  /** How many messages were omitted or shortened because they do not fit. */
  readonly leftOut?: number;
  /** Calls for the caller to run: the turn ended for that. They are also in the last assistant message; results of agent calls may follow it. */
  readonly clientCalls?: readonly ToolCall[];
  /** Signed reasoning of the turn's model calls, in order; only if the caller permitted it. */
  readonly thinking?: readonly ThinkingBlock[];
  /** Why the last answer ended, if it was not the model's own decision. */
  readonly ending?: AnswerEnding;
  /** Calls that needed an approval and were not run: refused, denied, or decided by nobody in time; absent: none. */
  readonly effectsRefused?: number;
  /** The model had read untrusted text, so that its output counts as such text for others. */
  readonly tainted: boolean;
  /** Set for a failed turn. */
  readonly failure?: TurnFailure;
}

/** What one run of the loop has produced. */
export interface TurnResult extends TurnAnswer {
  /** What the turn adds to the conversation after the user's message: assistant and tool messages, in order. */
  readonly messages: readonly ModelMessage[];
  readonly calls: readonly CallRecord[];
  readonly steps: number;
  readonly model: ModelInfo;
  /** The turn has not ended: it continues once this call is decided. */
  readonly waiting?: ApprovalWait;
  /** Tasks whose results are among `messages`. */
  readonly reported?: readonly string[];
}

/** The loop: a function of its input; events go to `sink`, the result is complete. Never rejects. */
export type RunTurn = (input: TurnInput, sink?: TurnSink) => Promise<TurnResult>;
