import type { AgentConfig, FinishReason, OperationType, SessionKeyObject, TokensUsed, ToolPolicy, TurnOrigin } from '@gatehouse/contract';
import type * as z from 'zod';
import type { TaskMarks } from '../../environment/background/api.ts';
import type { WorkClaim, WorkEnd, WorkWait } from '../../unattended/durable/api.ts';
import type { InboxMessage } from '../../unattended/inbox/api.ts';
import type { ReceiptRow } from '../receipts/api.ts';
import type { ResponseRow } from '../responses/api.ts';
import type { SendProgress } from '../../delegation/session-send/api.ts';
import type { ConversationTarget } from '../sessions/api.ts';
import type { EndedRun, NewsTold, RunEnding } from '../../delegation/subagents/api.ts';
import type { CallContext, CallingTurn, ToolBounds } from '../../../kernel/call-context.ts';
import type { ModelMessage, ModelOptions, ModelPart, ThinkingBlock, ToolCall, ToolSpec } from '../../../llm/model.ts';
import type { TaskNews } from '../../../runtime/background.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { TurnFailure } from '../../../runtime/turn-failure.ts';
import type { AnswerEnding, TurnResult, TurnSink, TurnSteering } from '../../../runtime/turn.ts';

/** How a caller names a conversation; without any field it is the one of its own token. */
export interface ConversationAddress {
  readonly conversationRef?: string | undefined;
  readonly sessionKey?: z.output<typeof SessionKeyObject> | string | undefined;
  readonly agentId?: string | undefined;
}

/** What is sent to an agent in a conversation. */
export interface TurnRequest {
  readonly message: string;
  readonly address: ConversationAddress;
  /** `rpc` when absent. */
  readonly origin?: 'rpc' | 'api' | 'mcp';
  /** Canonical BCP-47 tag of the person who writes; the agent is told of it. */
  readonly locale?: string | undefined;
  /** Ids of stored media that belong to the message. */
  readonly attachments?: readonly string[] | undefined;
  readonly alongside?: Alongside;
}

/** Rows that must be kept or lost together with a turn; written by the operation that each names in `commit-turn.ts`. */
export interface Alongside {
  /** Beside the row that opens a turn before its first tool of class `once`. */
  readonly opened?: (about: { readonly conversationRef: string }) => AlongsideRows;
  /** Beside the end of the turn; `messages` are what the turn added, `brought` what the request did: fenced, without `history` and system texts. */
  readonly ended?: (outcome: TurnOutcome, messages: readonly ModelMessage[], brought: readonly ModelMessage[]) => AlongsideRows;
}

export interface AlongsideRows {
  readonly response?: ResponseRow;
  readonly receipt?: ReceiptRow;
  /** Tasks of the background whose results the turn was told. */
  readonly tasks?: TaskMarks;
  /** The end of the sub-agent run whose turn it is. */
  readonly runEnd?: RunEnding;
  /** Runs whose ends the turn tells its conversation. */
  readonly news?: NewsTold;
  /** The answer to a message of another conversation that the turn is. */
  readonly send?: SendProgress;
  /** Announced by the caller after the commit. */
  readonly inbox?: readonly InboxMessage[];
}

/** A message of a completion, in the caller's order; `assistant` and `system` texts are fenced here, results of client tools too. */
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
  /** Of `parts` images and files go to the model behind the results; what it cannot see is replaced by a note. */
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
  /** Of the ephemeral conversation; `compat` when absent. */
  readonly channelId?: 'compat' | 'responses' | 'messages';
  /** As sent: provider/model, bare model id, or agent id. */
  readonly model: string;
  readonly messages: readonly CompletionMessage[];
  /** Messages of earlier responses, as they were kept: sent before `messages` as they are, fenced already. */
  readonly history?: readonly ModelMessage[] | undefined;
  /** Leaves the oldest messages out when they do not fit; otherwise all are sent, or the completion ends as `context_exhausted`. */
  readonly mayShorten?: boolean | undefined;
  readonly temperature?: number | undefined;
  readonly maxTokens?: number | undefined;
  /** `maxTokens` is an upper bound that may be more than the model can make. */
  readonly maxTokensIsBound?: boolean | undefined;
  readonly clientTools?: readonly ToolSpec[] | undefined;
  readonly options?: ModelOptions | undefined;
  readonly alongside?: Alongside;
}

export interface TurnOutcome {
  readonly finishReason: FinishReason;
  readonly text: string;
  readonly tokensUsed: z.output<typeof TokensUsed>;
  /** Part of `tokensUsed.input` that the provider read from its cache. */
  readonly cachedInput: number;
  /** Part of `tokensUsed.input` that the provider wrote to its cache. */
  readonly cacheWrittenInput?: number;
  /** Of all model calls, US dollars; null when the price of one of them is not known. */
  readonly costUsd: number | null;
  /** Calls of the caller's own tools; the turn ended so that it can run them. */
  readonly clientCalls?: readonly ToolCall[];
  /** Messages that the model was not sent, or not whole. */
  readonly leftOut?: number;
  /** Signed reasoning, in order; only where the caller permitted it. */
  readonly thinking?: readonly ThinkingBlock[];
  /** Why the last answer ended, where it was not the model's own decision. */
  readonly ending?: AnswerEnding;
  /** The model had read text from outside: for others, `text` is such text. */
  readonly tainted: boolean;
  /** `provider/model` that answered last. */
  readonly model: string;
  /** Calls that needed an approval and were not run; absent: none. */
  readonly effectsRefused?: number;
  /** Present when the turn did not do its work. */
  readonly failure?: TurnFailure;
  readonly conversationRef: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly turnId: string;
  readonly traceId: string;
}

/** How a result of the background comes back. */
export interface Reentry {
  readonly target: ConversationTarget;
  /** Origin of the turn that began the task; the turn has its authority. */
  readonly begunBy: TurnOrigin;
  /** How many background turns, one begun by the task of the other, this one makes. */
  readonly chain: number;
  /** Of the turn that began the task: whoever stops or bounds what one request set going means this turn too. */
  readonly rootRunId: string;
  /** Asked when the conversation is free. */
  readonly take: () => TaskNews | undefined;
}

/**
 * A result of the background comes back into its conversation as a turn of origin `background`, once the conversation
 * is free. Undefined when there was nothing left to tell by then; rejects like `execute`, and then nothing was told.
 */
export type Reenter = (request: Reentry, call: CallContext) => Promise<TurnOutcome | undefined>;

/** A turn that belongs to a piece of durable work, and survives the process that runs it. */
export interface DurableTurn {
  /** Of the work item: every write of the turn is refused once the claim is another's. */
  readonly workId: WorkClaim['id'];
  readonly owner: WorkClaim['owner'];
  readonly fence: WorkClaim['fence'];
  readonly origin: Extract<TurnOrigin, 'rpc' | 'webhook' | 'cron' | 'heartbeat' | 'subagent' | 'graph' | 'background'>;
  /** By whose rights it acts when not by those of its origin: of work that a turn of an untrusted origin set going. */
  readonly authority?: TurnOrigin;
  /** Made by the feature from its own record, never from what came in. */
  readonly target: ConversationTarget;
  /** The same whenever the work is resumed. */
  readonly message: string;
  /** Text from outside that belongs to the message; it is fenced here. */
  readonly fenced?: { readonly text: string; readonly source: string; readonly clean?: boolean };
  /** As a configuration names one; else that of `operation`, else the agent's. */
  readonly model?: string;
  /** Lowers the agent's `turnTimeoutMs`, or raises it. */
  readonly timeoutMs?: number;
  /** In place of the agent's `maxSteps`. */
  readonly maxSteps?: number;
  /** Of what one request set going; a root of its own when absent. */
  readonly rootRunId?: string;
  /** Of the turn of a sub-agent. */
  readonly run?: CallingTurn['run'];
  /** Tools that both this policy and the agent's allow. */
  readonly toolPolicy?: ToolPolicy;
  /** Of work that an agent asked for: it gets no tool that whoever asked has not. */
  readonly toolBounds?: ToolBounds;
  /** Tools of this turn beside those of its agent, unless the agent's policy denies them. */
  readonly extraTools?: readonly Tool[];
  readonly cacheRetention?: AgentConfig['cacheRetention'];
  /** Only the last exchanges of the conversation are sent, without notes of earlier ones; all when absent. */
  readonly historyTurns?: number;
  /** Neither memories nor skills are looked for, and of the prompt files only those of the origin are sent. */
  readonly lightContext?: boolean;
  /** Whether question and answer are kept in the conversation; a function decides by the answer. */
  readonly kept: boolean | ((outcome: TurnOutcome) => boolean);
  /** What the calls are booked as. */
  readonly operation: OperationType;
  /** Messages for the turn while it runs, of those who may steer it. */
  readonly steering?: TurnSteering;
  /** What becomes of the work: committed with the turn, all or none. */
  readonly settle: (outcome: TurnOutcome, result: TurnResult) => TurnSettlement | Promise<TurnSettlement>;
}

/** What a turn tells that is only known once its conversation is free. */
export type TurnNews = Pick<DurableTurn, 'message' | 'fenced'>;

export type TurnSettlement = {
  readonly errorKind?: string;
  /** Rows that must be kept or lost together with the turn. */
  readonly alongside?: AlongsideRows;
} & (
  | { readonly state: WorkEnd; readonly result?: unknown }
  /** To be tried again as a new turn; becomes `failed` when this one began to do what must not be repeated. */
  | { readonly retryAfterMs: number; readonly errorKind: string }
  /** The turn stays open and its work waits: the next claim continues it after its last finished step. */
  | { readonly wait: WorkWait }
);

export interface DurableOutcome extends TurnOutcome {
  /** False: the claim is another's by now, nothing was kept, and nothing may be sent. */
  readonly settled: boolean;
  /** What the work item became: `accepted` when it is to be tried again. */
  readonly state: WorkEnd | 'accepted';
  /** The run that ended with it (`AlongsideRows.runEnd`). */
  readonly endedRun?: EndedRun;
}

export interface TurnsApi {
  /**
   * Runs the turn of a piece of durable work in its conversation's lane, or goes on with it after its last finished step. After a
   * crash inside a tool of class `once` it ends as `unknown`, which its conversation is told, and after three resumes as `failed`.
   * Rejects with an `AppError` when it could not begin (the handler tries again), and with `unavailable` when the daemon stops: then
   * the next start goes on with it.
   */
  durable(turn: DurableTurn, call: CallContext): Promise<DurableOutcome>;
  /**
   * The same for work that tells something: `take` is asked when the conversation is free, gives the same after a crash, and
   * undefined when nothing is left to tell, which is then the answer.
   */
  tell(turn: Omit<DurableTurn, keyof TurnNews>, take: () => Promise<TurnNews | undefined>, call: CallContext): Promise<DurableOutcome | undefined>;
  /** One turn in the conversation of `address`. Resolves after the commit is synced. */
  execute(request: TurnRequest, call: CallContext, sink?: TurnSink): Promise<TurnOutcome>;
  /** One `/v1` completion; `not_found` with "Model not found: <model>" when the model is unknown. */
  complete(request: CompletionRequest, call: CallContext, sink?: TurnSink): Promise<TurnOutcome>;
  /** Estimates the input tokens of a completion, with the agent's prompt and tools; no model is called. Refuses what `complete` refuses before its call. */
  countInput(request: CompletionRequest, call: CallContext): Promise<number>;
  counts(): { readonly running: number; readonly queued: number };
}
