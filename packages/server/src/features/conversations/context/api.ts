import type { ModelMessage } from '../../../llm/model.ts';
import type { Agent } from '../../agents/agents/api.ts';
import type { PastAttachments } from '../sessions/api.ts';

export interface PreparedContext {
  /** Notes on what came before, fenced, and the newest messages, oldest first: what the model sees before the new message. */
  readonly messages: readonly ModelMessage[];
  readonly attached: readonly PastAttachments[];
  /** Whether the first of `messages` are the notes. */
  readonly hasNotes: boolean;
  /** A fenced block of what was found about the question in the part of this conversation that is in `messages` as notes only. */
  readonly recalled?: string;
  /** Of `messages`. */
  readonly tokens: number;
  /** Some messages that the model no longer sees have no summary yet. */
  readonly behind: boolean;
  /** Turns had read text from outside that `messages` need not show. */
  readonly tainted: boolean;
}

/** Whose context it is. */
export interface ContextOf {
  readonly ref: string;
  readonly agent: Agent;
  readonly principalId: string;
}

export interface Compaction {
  /** Messages of the conversation, none of which is lost. */
  readonly messageCount: number;
  /** What the model was sent of it, and what it will be sent, in tokens. */
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  /** Nodes that were made. */
  readonly summaries: number;
  /** `truncated`: no model gave a summary, so heads and tails of the messages stand in its place. `none`: there was nothing to compact. */
  readonly method: 'summary' | 'truncated' | 'none';
}

export interface ContextApi {
  /** What the model sees of the conversation. `room`: tokens that history may have in one call; no more of it is read than could fill that. */
  prepare(about: ContextOf & { readonly room: number; readonly question: string }): Promise<PreparedContext>;
  /** After a turn was committed: may begin summarising in the background. `tokens`: of the history with that turn. Returns at once and never throws. */
  afterTurn(about: ContextOf & { readonly room: number; readonly tokens: number; readonly behind: boolean }): void;
  /** Summarises everything but the newest exchanges now; the caller holds the conversation's lane. */
  compact(about: ContextOf & { readonly instructions: string | undefined; readonly signal: AbortSignal }): Promise<Compaction>;
}
