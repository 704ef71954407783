import type { ApiChatHistory, MessageAttachment, MessageFeedback, SessionKeyObject } from '@gatehouse/contract';
import type * as z from 'zod';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { AuditRow } from '../../../kernel/db/audit.ts';
import type { Agent } from '../../agents/agents/api.ts';

/** How a caller names a conversation; without any field it is the default one of its token. */
export interface ConversationAddress {
  readonly conversationRef?: string | undefined;
  readonly sessionKey?: z.output<typeof SessionKeyObject> | string | undefined;
  readonly agentId?: string | undefined;
}

/** A conversation as seen by a turn; it may not be stored yet. */
export interface ConversationTarget {
  readonly ref: string;
  readonly sessionKey: string;
  readonly agentId: string;
  /** Owner of the rows: the caller, or the owner of an existing conversation that an admin continues by its reference. */
  readonly principalId: string;
}

export interface SessionsApi {
  /** Returns the conversation of a turn: an existing one by its reference, or one in the caller's partition by key. */
  target(address: ConversationAddress, call: CallContext): Promise<ConversationTarget>;
  /** Returns a stored conversation within reach; throws `not_found` otherwise. */
  existing(address: ConversationAddress, call: CallContext): Promise<ConversationTarget>;
  /** Returns whether a turn of the conversation is running or queued; it may have no row yet. */
  isPending(ref: string): boolean;
  /** Returns the default conversation of a token with an agent. */
  own(agentId: string, call: CallContext): Omit<ConversationTarget, 'principalId'>;
  /** Returns a turn with up to `texts` texts before it; throws `not_found` when the conversation does not hold it. */
  pastTurn(turn: { readonly conversationRef: string; readonly turnId: string; readonly texts: number }, call: CallContext): Promise<PastTurn>;
  /** Copies the conversation up to the question of a turn, for a replay by the agent or another one. */
  forkBefore(
    turn: { readonly conversationRef: string; readonly turnId: string; readonly agentId?: string | undefined },
    call: CallContext,
  ): Promise<{
    readonly target: ConversationTarget;
    readonly question: PastTurn['question'];
  }>;
  /** Returns answers within reach that people marked, newest first. */
  rated(
    filter: { readonly rating?: FeedbackRow['rating'] | undefined; readonly agentId?: string | undefined; readonly limit: number },
    call: CallContext,
  ): Promise<readonly { readonly conversationRef: string; readonly turnId: string }[]>;
  /** Returns a page of user and assistant messages, oldest first; defaults to the caller's own conversation, which may be empty. */
  said(page: ConversationAddress & { readonly offset: number; readonly limit: number }, call: CallContext): Promise<ApiChatHistory>;
}

/** What a person thinks of an answer. */
export interface FeedbackRow {
  readonly turnId: string;
  /** Position of the answer. */
  readonly seq: number;
  readonly rating: 'good' | 'bad';
  readonly note: string | null;
  readonly principalId: string;
  readonly atMs: number;
}

/** A turn of a stored conversation, as somebody sees it afterwards. */
export interface PastTurn {
  readonly turnId: string;
  readonly conversationRef: string;
  readonly agentId: string;
  readonly question: { readonly text: string; readonly attachments: readonly MessageAttachment[] };
  /** Texts before the question, oldest first, without tools. */
  readonly before: readonly { readonly role: 'user' | 'assistant'; readonly content: string }[];
  readonly answer: string;
  /** Tools that it called, in order. */
  readonly tools: readonly string[];
  readonly feedback?: MessageFeedback;
}

/** Input of `resetSession`. */
export interface SessionReset {
  readonly ref: string;
  /** Absent when the agent's policy triggers the reset. */
  readonly audit?: AuditRow;
}

/** Input of `resetConversation`. */
export interface Erasure {
  readonly ref: string;
  /** Handling of memories: `purge` also removes what was derived from them. */
  readonly memories: 'keep' | 'delete' | 'purge';
  readonly audit: AuditRow;
}

export interface Erased {
  readonly messages: number;
  readonly summaries: number;
  /** Absent when memories are kept. */
  readonly forgotten?: { readonly memoriesDeleted: number; readonly derivedDeleted: number; readonly derivedUnlinked: number };
}

/** Attachments of one message of a conversation. */
export interface PastAttachments {
  /** Index of the message in its list. */
  readonly index: number;
  readonly attachments: readonly MessageAttachment[];
}

export interface MessageRow {
  readonly seq: number;
  readonly turnId: string;
  readonly role: 'user' | 'assistant' | 'tool';
  readonly content: string;
  /** JSON of `toolCalls`, or of `toolCallId`, `toolName` and `isError`. */
  readonly toolJson: string | null;
  /** JSON of `MessageAttachment[]`; null when there are none. */
  readonly attachmentsJson: string | null;
  /** JSON of the reasoning before an answer; null without, and absent where it is not read. */
  readonly reasoningJson?: string | null;
  readonly createdAtMs: number;
}

/** Messages added by one turn to its conversation. */
export interface NewMessages {
  readonly ref: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly sessionKey: string;
  readonly turnId: string;
  readonly steps: number;
  readonly toolCalls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costNano: number;
  /** Whether the model had read untrusted text; fences in the messages are counted separately. */
  readonly tainted?: boolean;
  readonly messages: readonly {
    readonly role: MessageRow['role'];
    readonly content: string;
    readonly toolJson: string | null;
    readonly attachmentsJson: string | null;
    readonly reasoningJson?: string | null;
    readonly createdAtMs: number;
  }[];
  readonly atMs: number;
}

export interface Compaction {
  /** Number of messages of the conversation, all of which remain stored. */
  readonly messageCount: number;
  /** Tokens sent to the model before and after the compaction. */
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  /** Number of created summaries. */
  readonly summaries: number;
  /** `truncated`: no model produced a summary, so the heads and tails of messages are used. `none`: there was nothing to compact. */
  readonly method: 'summary' | 'truncated' | 'none';
}

/** Summarises everything except the newest exchanges now; the caller must hold the conversation's lane. */
export type Compact = (about: {
  readonly ref: string;
  readonly agent: Agent;
  readonly principalId: string;
  readonly instructions: string | undefined;
  readonly signal: AbortSignal;
}) => Promise<Compaction>;
