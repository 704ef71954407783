import type { ModelMessage } from '../../../llm/model.ts';
import type { Agent } from '../../agents/agents/api.ts';
import type { Compact, PastAttachments } from '../sessions/api.ts';

export interface PreparedContext {
  /** What the model sees before the new message: fenced notes on older messages, then the newest messages, oldest first. */
  readonly messages: readonly ModelMessage[];
  readonly attached: readonly PastAttachments[];
  /** Whether `messages` starts with the notes. */
  readonly hasNotes: boolean;
  /** A fenced block of excerpts about the question from older messages, of which `messages` contains only notes. */
  readonly recalled?: string;
  /** Token count of `messages`. */
  readonly tokens: number;
  /** Whether messages that the model no longer sees lack a summary. */
  readonly behind: boolean;
  /** Whether turns have read untrusted text, which need not be in `messages`. */
  readonly tainted: boolean;
}

/** Identifies a context. */
export interface ContextOf {
  readonly ref: string;
  readonly agent: Agent;
  readonly principalId: string;
}

export interface ContextApi {
  /** Returns what the model sees of the conversation. `capacity`: tokens available to history in one call; bounds what is read. */
  prepare(about: ContextOf & { readonly capacity: number; readonly question: string }): Promise<PreparedContext>;
  /** Call after a turn was committed; may start background summaries. `tokens`: history including that turn. Never waits or throws. */
  afterTurn(about: ContextOf & { readonly capacity: number; readonly tokens: number; readonly behind: boolean }): void;
  readonly compact: Compact;
}
