import type { AgentConfig, AnswerEffort, MessageAttachment, OperationType, TokensUsed, ToolPolicy, TurnOrigin } from '@gatehouse/contract';
import type * as z from 'zod';
import type { WorkClaim, WorkEnd, WorkWait } from '../../unattended/durable/api.ts';
import type { ConversationAddress, ConversationTarget } from '../sessions/api.ts';
import type { CallContext, CallingTurn, ChatAuthor, ChatEndpoint, ToolBounds } from '../../../kernel/call-context.ts';
import type { OperationCall, OperationResult } from '../../../kernel/db/operation.ts';
import type { ModelMessage, ModelOptions, ModelPart, ThinkingBlock, ToolCall, ToolSpec } from '../../../llm/model.ts';
import type { TaskAnnouncement } from '../../../runtime/background.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { TurnAnswer, TurnResult, TurnSink, TurnSteering } from '../../../runtime/turn.ts';

export type { ModelCallRow, TurnRow } from './store.ts';

/** A message to an agent in a conversation. */
export interface TurnRequest {
  readonly message: string;
  readonly address: ConversationAddress;
  /** `rpc` when absent. */
  readonly origin?: 'rpc' | 'api' | 'mcp';
  /** Model of the turn, instead of the agent's. */
  readonly model?: string | undefined;
  /** How long its model reasons before the answer. */
  readonly effort?: AnswerEffort | undefined;
  /** Canonical BCP-47 tag of the author, passed to the agent. */
  readonly locale?: string | undefined;
  /** Ids of stored media that belong to the message. */
  readonly attachments?: readonly string[] | undefined;
  readonly alongside?: Alongside;
}

/** Operations of a turn's caller that commit with the turn, all or none. */
export interface Alongside {
  /** Called with the row that opens a turn before its first tool of class `once`. */
  readonly opened?: (about: { readonly conversationRef: string }) => readonly OperationCall[];
  /** Called with the end of the turn; `messages`: those of the turn; `brought`: those of the request, fenced, without `history` and system texts. */
  readonly ended?: (outcome: TurnOutcome, messages: readonly ModelMessage[], brought: readonly ModelMessage[]) => readonly OperationCall[];
}

/** A message of a completion, in the caller's order; `assistant` texts, `system` texts and results of client tools are fenced here. */
export type CompletionMessage = (
  | { readonly role: 'system' | 'developer'; readonly content: string }
  | { readonly role: 'user'; readonly content: string; readonly parts?: readonly ModelPart[] | undefined }
  | {
      readonly role: 'assistant';
      readonly content: string;
      readonly toolCalls?: readonly ToolCall[] | undefined;
      readonly reasoning?: string | undefined;
      readonly thinking?: readonly ThinkingBlock[] | undefined;
    }
  /** Images and files in `parts` are sent to the model after the results; unsupported ones are replaced by a note. */
  | {
      readonly role: 'tool';
      readonly content: string;
      readonly toolCallId: string;
      readonly parts?: readonly ModelPart[] | undefined;
      readonly isError?: boolean | undefined;
    }
) & { readonly cacheMark?: true | undefined };

export interface CompletionRequest {
  /** `chatcmpl-<uuid>`, `resp_<uuid>` or `msg_<uuid>`; the peer of the ephemeral conversation (http-gateway.md §2.5). */
  readonly completionId: string;
  /** Channel of the ephemeral conversation; `compat` when absent. */
  readonly channelId?: 'compat' | 'responses' | 'messages';
  /** The model as sent: provider/model, bare model id, or agent id. */
  readonly model: string;
  readonly messages: readonly CompletionMessage[];
  /** Stored messages of earlier responses, already fenced; sent unchanged before `messages`. */
  readonly history?: readonly ModelMessage[] | undefined;
  /** Drops the oldest messages when they do not fit; otherwise all are sent, or the completion ends as `context_exhausted`. */
  readonly mayShorten?: boolean | undefined;
  readonly temperature?: number | undefined;
  readonly maxTokens?: number | undefined;
  /** Whether `maxTokens` is an upper bound that may exceed the model's limit. */
  readonly maxTokensIsBound?: boolean | undefined;
  readonly clientTools?: readonly ToolSpec[] | undefined;
  readonly options?: ModelOptions | undefined;
  readonly alongside?: Alongside;
}

export interface TurnOutcome extends TurnAnswer {
  readonly tokensUsed: z.output<typeof TokensUsed>;
  /** Part of `tokensUsed.input` that the provider read from its cache. */
  readonly cachedInput: number;
  /** Part of `tokensUsed.input` that the provider wrote to its cache. */
  readonly cacheWrittenInput?: number;
  /** US dollars of all model calls; null when one of their prices is unknown. */
  readonly costUsd: number | null;
  /** The `provider/model` that answered last. */
  readonly model: string;
  readonly conversationRef: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly turnId: string;
  readonly traceId: string;
}

/** Re-entry of a background result into its conversation. */
export interface Reentry {
  readonly target: ConversationTarget;
  /** Origin of the turn that started the task, and authority of this turn. */
  readonly begunBy: TurnOrigin;
  /** Length of the chain of background turns, each started by a task of the previous one. */
  readonly chain: number;
  /** Root run of the turn that started the task, so that stops and limits of the request include this turn. */
  readonly rootRunId: string;
  /** Called when the conversation is free. */
  readonly take: () => TaskAnnouncement | undefined;
}

/**
 * Delivers a background result to its conversation as a turn of origin `background`, once the conversation is free.
 * Returns undefined when nothing is left to report by then; rejects like `execute`, and then nothing was reported.
 */
export type Reenter = (request: Reentry, call: CallContext) => Promise<TurnOutcome | undefined>;

/** A turn that belongs to a durable work item and survives its process. */
export interface DurableTurn {
  /** The work item; every write of the turn is rejected once its claim is lost. */
  readonly workId: WorkClaim['id'];
  readonly owner: WorkClaim['owner'];
  readonly fence: WorkClaim['fence'];
  readonly origin: Extract<TurnOrigin, 'rpc' | 'channel' | 'webhook' | 'cron' | 'heartbeat' | 'subagent' | 'graph' | 'background'>;
  /** Overrides the authority of its origin, for work started by a turn of an untrusted origin. */
  readonly authority?: TurnOrigin;
  /** Derived by the feature from its own record, never from input. */
  readonly target: ConversationTarget;
  /** The same at each resume. */
  readonly message: string;
  /** Untrusted text that belongs to the message; fenced here. */
  readonly fenced?: { readonly text: string; readonly source: string; readonly clean?: boolean };
  /** Media that `TurnsApi.attach` accepted. The same at each resume. */
  readonly attachments?: readonly MessageAttachment[];
  /** Model name as in a configuration; defaults to that of `operation`, then the agent's. */
  readonly model?: string;
  /** Overrides the agent's `turnTimeoutMs`. */
  readonly timeoutMs?: number;
  /** Overrides the agent's `maxSteps`. */
  readonly maxSteps?: number;
  /** Root run of the request that started it; a new root when absent. */
  readonly rootRunId?: string;
  /** Present for the turn of a sub-agent. */
  readonly run?: CallingTurn['run'];
  /** Tools that both this policy and the agent's allow. */
  readonly toolPolicy?: ToolPolicy;
  /** Limits work requested by an agent to the tools of its requester. */
  readonly toolBounds?: ToolBounds;
  /** The chat that its request came from, or that gets its result. */
  readonly endpoint?: ChatEndpoint | undefined;
  /** Author of the message in a chat, or of the job. */
  readonly author?: ChatAuthor;
  /** Additional tools of this turn, unless the agent's policy denies them. */
  readonly extraTools?: readonly Tool[];
  readonly cacheRetention?: AgentConfig['cacheRetention'];
  /** Number of last exchanges to send, without notes on earlier ones; all when absent. */
  readonly historyTurns?: number;
  /** Skips memories and skills, and sends only the prompt files of the origin. */
  readonly lightContext?: boolean;
  /** Whether question and answer are stored in the conversation; a function decides by the answer. */
  readonly kept: boolean | ((outcome: TurnOutcome) => boolean);
  /** Operation type under which the calls are booked. */
  readonly operation: OperationType;
  /** An operator's test: left out of reports (see `TurnInput`). From the work's own record, never from a request. */
  readonly synthetic?: true | undefined;
  /** Ids of what the turn is made for, for its trace. */
  readonly refs?: Readonly<Record<string, string>>;
  /** Reader of the text while it is written; it may get less after a resume. */
  readonly sink?: TurnSink | undefined;
  /** Messages that steer the turn while it runs. */
  readonly steering?: TurnSteering;
  /** Returns the settlement of the work, committed atomically with the turn. */
  readonly settle: (outcome: TurnOutcome, result: TurnResult, calling: CallingTurn) => TurnSettlement | Promise<TurnSettlement>;
}

/** Content of a turn that is only known once its conversation is free. */
export type TurnAnnouncement = Pick<DurableTurn, 'message' | 'fenced'>;

export type TurnSettlement = {
  readonly errorKind?: string;
  /** Operations that commit with the turn, all or none. */
  readonly alongside?: readonly OperationCall[];
} & (
  | { readonly state: WorkEnd; readonly result?: unknown }
  /** Retry as a new turn; becomes `failed` when this one has started a run-once operation. */
  | { readonly retryAfterMs: number; readonly errorKind: string }
  /** The turn stays open while its work waits; the next claim continues after the last finished step. */
  | { readonly wait: WorkWait }
);

export interface DurableOutcome extends TurnOutcome {
  /** False when the claim was lost: nothing was stored, and nothing may be sent. */
  readonly settled: boolean;
  /** State of the work item; `accepted` when it will be retried. */
  readonly state: WorkEnd | 'accepted';
  /** What the operations of `TurnSettlement.alongside` returned; empty when it was not stored. */
  readonly outputs: readonly OperationResult[];
}

/** A question of an evaluation, answered by an isolated turn (`TurnInput`) that is not stored in any conversation. */
export interface TrialTurn {
  readonly agentId: string;
  /** Answers alone, without fallbacks; the agent's own models when absent. */
  readonly model?: string | undefined;
  /** Added to the agent's system prompt; with `bare`, it replaces prompt, tools, memories and skills. */
  readonly system?: string | undefined;
  readonly bare?: true;
  readonly history: readonly ModelMessage[];
  readonly message: string;
}

/** An earlier question, asked again by an isolated turn of a fork. */
export interface ReplayedTurn {
  /** The fork, which ends before the question. */
  readonly target: ConversationTarget;
  readonly model?: string | undefined;
  readonly question: { readonly text: string; readonly attachments: readonly MessageAttachment[] };
  readonly origin: TurnOrigin;
}

/** How an isolated turn ended. */
export interface TrialOutcome extends TurnOutcome {
  /** What the turn added after the question. */
  readonly messages: readonly ModelMessage[];
  /** Duration without the wait for its place. */
  readonly latencyMs: number;
}

/** Media of a message, as far as the models of an agent take them. */
export interface AttachedMessage {
  readonly attachments: readonly MessageAttachment[];
  readonly refused: readonly { readonly mediaId: string; readonly reason: string }[];
}

export interface TurnsApi {
  /** Returns which media of the caller a turn of the agent takes, and why it does not take the others. */
  attach(agentId: string, mediaIds: readonly string[], call: CallContext): Promise<AttachedMessage>;
  /** Answers a question without any effect outside of the turn; only its cost is stored. */
  evaluate(trial: TrialTurn, call: CallContext): Promise<TrialOutcome>;
  /** The same in a fork, which keeps the answer. */
  replay(turn: ReplayedTurn, call: CallContext): Promise<TrialOutcome>;
  /**
   * Runs the turn of a durable work item in its conversation's lane, or resumes it after its last finished step. After a
   * crash inside a tool of class `once` it ends as `unknown`, with a note in its conversation, and after three resumes as `failed`.
   * Rejects with an `AppError` when it could not start (the handler retries), and with `unavailable` when the daemon stops; the
   * next start then resumes it.
   */
  runDurably(turn: DurableTurn, call: CallContext): Promise<DurableOutcome>;
  /**
   * Like `runDurably` for announcements: `take` is called when the conversation is free, and must return the same after a crash.
   * Resolves with undefined when `take` does, because nothing is left to announce.
   */
  announce(
    turn: Omit<DurableTurn, keyof TurnAnnouncement>,
    take: () => Promise<TurnAnnouncement | undefined>,
    call: CallContext,
  ): Promise<DurableOutcome | undefined>;
  /** Passes a message to the turn that runs in the conversation; resolves once the turn has taken it, between two of its steps, and it is stored. */
  steer(request: Pick<TurnRequest, 'message' | 'address'>, call: CallContext): Promise<ConversationTarget>;
  /** Runs one turn in the conversation of `address`. Resolves after the commit is synced. */
  execute(request: TurnRequest, call: CallContext, sink?: TurnSink): Promise<TurnOutcome>;
  /** Runs one `/v1` completion; throws `not_found` with "Model not found: <model>" when the model is unknown. */
  complete(request: CompletionRequest, call: CallContext, sink?: TurnSink): Promise<TurnOutcome>;
  /** Estimates the input tokens of a completion, with the agent's prompt and tools, without a model call. Rejects what `complete` rejects. */
  countInput(request: CompletionRequest, call: CallContext): Promise<number>;
  counts(): { readonly running: number; readonly queued: number };
}
