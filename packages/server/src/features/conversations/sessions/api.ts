import type { ApiChatHistory, MessageAttachment } from '@gatehouse/contract';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { AuditRow } from '../../../kernel/db/audit.ts';
import type { ConversationAddress } from '../turns/api.ts';

/** A conversation as a turn sees it; it may not have been stored yet. */
export interface ConversationTarget {
  readonly ref: string;
  readonly sessionKey: string;
  readonly agentId: string;
  /** Owner of the rows: the caller, or the owner of an existing conversation that an admin continues by its reference. */
  readonly principalId: string;
}

export interface SessionsApi {
  /** Where a turn goes: an existing conversation by its reference, or the caller's own partition by key. */
  target(address: ConversationAddress, call: CallContext): Promise<ConversationTarget>;
  /** A stored conversation within reach; `not_found` else. */
  existing(address: ConversationAddress, call: CallContext): Promise<ConversationTarget>;
  /** Whether a turn of the conversation runs or waits; it may have no row yet. */
  isPending(ref: string): boolean;
  /** The conversation that a token has with an agent when it names none. */
  own(agentId: string, call: CallContext): Omit<ConversationTarget, 'principalId'>;
  /** A page of what user and assistant said, oldest first; of the caller's own conversation, which may be empty, when none is named. */
  said(page: ConversationAddress & { readonly offset: number; readonly limit: number }, call: CallContext): Promise<ApiChatHistory>;
}

/** What `resetSession` takes. */
export interface SessionReset {
  readonly ref: string;
  /** Absent when the policy of the agent asks for it. */
  readonly audit?: AuditRow;
}

/** What `resetConversation` takes. */
export interface Erasure {
  readonly ref: string;
  /** What becomes of the memories: `purge` also removes what was derived from them. */
  readonly memories: 'keep' | 'delete' | 'purge';
  readonly audit: AuditRow;
}

export interface Erased {
  readonly messages: number;
  readonly summaries: number;
  /** Absent when memories were kept. */
  readonly forgotten?: { readonly memoriesDeleted: number; readonly derivedDeleted: number; readonly derivedUnlinked: number };
}

/** What was attached to one message of a conversation. */
export interface PastAttachments {
  /** Of the message in its list. */
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
  /** JSON of `MessageAttachment[]`; null when nothing is attached. */
  readonly attachmentsJson: string | null;
  readonly createdAtMs: number;
}

/** What one turn adds to its conversation. */
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
  /** Said by a model that had read text from outside; fences in the messages count on their own. */
  readonly tainted?: boolean;
  readonly messages: readonly {
    readonly role: MessageRow['role'];
    readonly content: string;
    readonly toolJson: string | null;
    readonly attachmentsJson: string | null;
    readonly createdAtMs: number;
  }[];
  readonly atMs: number;
}
