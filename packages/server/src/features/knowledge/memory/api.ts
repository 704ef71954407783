import type { AgentConfig, FinishReason, TurnOrigin } from '@gatehouse/contract';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Agent } from '../../agents/agents/api.ts';

export type MemoryType = 'working' | 'episodic' | 'semantic' | 'procedural';
export type TrustLevel = 'system' | 'learned' | 'external';
export type TaintLevel = 'clean' | 'wrapped' | 'raw';

/** Where an entry came from; `who` is an agent id, `operator` or `system`. */
export interface MemorySource {
  readonly who: string;
  readonly channel?: string;
  readonly sessionKey?: string;
  readonly conversationRef?: string;
}

/** One memory as callers see it; times are milliseconds since the epoch. */
export interface MemoryEntry {
  /** UUID. */
  readonly id: string;
  readonly agentId: string;
  /** The owner, or `*`: for every caller of the agent, stored by an operator or by the daemon itself. */
  readonly principalId: string;
  readonly content: string;
  readonly memoryType: MemoryType;
  readonly trustLevel: TrustLevel;
  readonly taintLevel: TaintLevel;
  readonly source: MemorySource;
  readonly tags: readonly string[];
  readonly createdAtMs: number;
  readonly updatedAtMs?: number;
  readonly expiresAtMs?: number;
  /** 0: raw, as it was stored; 1 and more: derived from that many sources. */
  readonly proofCount: number;
  /** Ids of the memories that a derived one was made from; some may be gone. */
  readonly sourceIds?: readonly string[];
  /** 0 to 1. */
  readonly confidence?: number;
  /** When a raw entry was folded into a derived one. */
  readonly consolidatedAtMs?: number;
  readonly pinned: boolean;
}

/** What a derived memory cites: a memory, a conversation, or a memory of a conversation. */
export type MemoryCitation = { readonly sourceId: string; readonly conversationRef?: string } | { readonly conversationRef: string };

export interface NewMemory {
  readonly agentId: string;
  /** `*` for everybody. */
  readonly principalId: string;
  readonly content: string;
  /** `semantic` when absent. */
  readonly memoryType?: MemoryType;
  /** `system` is taken from the daemon itself only. */
  readonly trustLevel: TrustLevel;
  readonly taintLevel?: TaintLevel;
  readonly source: MemorySource;
  readonly tags?: readonly string[];
  readonly expiresAtMs?: number;
  /** Makes it a derived memory: its proof is the number of citations. */
  readonly cites?: readonly MemoryCitation[];
  readonly confidence?: number;
  readonly pinned?: boolean;
}

export interface StoredMemory {
  readonly id: string;
  /** `external` when the scan found something, whatever was asked for. */
  readonly trustLevel: TrustLevel;
  readonly tainted: boolean;
}

/** Ranks count from 1; a lane that did not find the entry is absent. */
export interface MemoryExplanation {
  readonly textRank?: number;
  readonly vectorRank?: number;
  /** Cosine of the entry and the query, -1 to 1. */
  readonly vectorSimilarity?: number;
}

export interface ScoredMemory {
  readonly entry: MemoryEntry;
  /** 0 to 1: reciprocal ranks of the lanes that took part, fused; it orders the results of one search and says little by itself. */
  readonly score: number;
  readonly explain: MemoryExplanation;
}

export interface MemoryQuery {
  readonly text: string;
  readonly agentId: string;
  /** Entries of this owner and those for everybody; null: all of the agent. */
  readonly principalId: string | null;
  /** At most 100. */
  readonly limit: number;
  readonly minScore?: number;
  readonly types?: readonly MemoryType[];
  readonly trust?: readonly TrustLevel[];
  /** An entry must have all of them. */
  readonly tags?: readonly string[];
  /** False leaves out raw entries that a derived one has taken up; true when absent. */
  readonly includeDerivedSources?: boolean;
  /** Whom the embedding of the text is booked on, when all of the agent is searched. */
  readonly bookedOn?: string;
  /** The conversation that it is booked on. */
  readonly bookedConversation?: string;
  /** False keeps the vector of the text out of the database (users' messages); true when absent. */
  readonly keepVector?: boolean;
  /** Longest wait for the vector of the text, then words alone are searched; 1500 when absent. */
  readonly vectorWaitMs?: number;
  readonly signal: AbortSignal;
}

export interface MemoryApi {
  /**
   * Scans, then stores in one write: what is found by text afterwards includes it; its vector follows in the background.
   * @throws AppError `invalid_params` for what is too large, `denied` for content that the scan refuses.
   */
  store(entry: NewMemory, by: CallContext | 'system'): Promise<StoredMemory>;
  /** By words and by meaning, best first; by words alone when nothing embeds the query in time. */
  search(query: MemoryQuery): Promise<readonly ScoredMemory[]>;
}

export interface RecallQuestion {
  readonly agentId: string;
  readonly principalId: string;
  readonly conversationRef: string;
  readonly question: string;
  /** Tokens that the messages of the call may have; memories take a quarter of them at most. */
  readonly room: number;
  readonly signal: AbortSignal;
}

export interface Recalled {
  /** One fenced block for the model, inside the budget of the agent; goes in front of the message that is sent and is never stored. */
  readonly text: string;
  /** Of the memories in it, best first. */
  readonly ids: readonly string[];
}

/** What a turn uses of the memory. */
export interface RecallApi {
  /**
   * What is remembered about a message. Undefined at once, without a promise, when the agent's configuration recalls
   * nothing for turns of this origin or it has no memory; the promise never rejects and takes 300 ms at most, then
   * without a result.
   */
  recall(about: RecallQuestion, config: Pick<AgentConfig, 'memory'>, origin: TurnOrigin): Promise<Recalled | undefined> | undefined;
  /** How a turn ended that memories were recalled into: an end that they may be to blame for is booked on them. Returns at once. */
  attribute(
    recalled: { readonly agentId: string; readonly ids: readonly string[] },
    end: { readonly finishReason: FinishReason; readonly failure?: { readonly kind: string } },
  ): void;
}

/** What a review of conversations found, and what became of it. */
export interface ReviewReport {
  readonly agentId: string;
  readonly conversationsReviewed: number;
  /** Conversations whose review failed; they are tried again. */
  readonly conversationsFailed: number;
  /** Conversations that wait for the next run. */
  readonly more: boolean;
  readonly extracted: number;
  readonly duplicates: number;
  /** Of a wrong shape, too long, or refused by the write scan. */
  readonly rejected: number;
  readonly admitted: number;
  /** Derived memories that were made, and entries that were folded into new or existing ones. */
  readonly derived: number;
  readonly consolidated: number;
  readonly durationMs: number;
}

/** What a sweep of the lifecycle did, or would do. */
export interface LifecycleReport {
  readonly agentId: string;
  readonly dryRun: boolean;
  readonly examined: number;
  readonly promoted: number;
  readonly demoted: number;
  readonly evicted: number;
  /** Whether there is more to do than one sweep does. */
  readonly more: boolean;
  /** The first hundred of what was planned. */
  readonly actions: readonly {
    readonly id: string;
    readonly kind: 'promote' | 'demote' | 'evict';
    readonly reason: 'used' | 'faded' | 'failures' | 'expired' | 'too_old' | 'too_many';
  }[];
  readonly durationMs: number;
}

/**
 * What a schedule calls, one run of each per agent at a time: a second one fails with `conflict`. An abort ends a run
 * between two steps; what was stored until then stays.
 */
export interface MemoryLifeApi {
  /** Reviews the conversations of an agent that changed, then folds entries that say the same into derived ones. */
  review(agent: Agent, signal: AbortSignal): Promise<ReviewReport>;
  lifecycle(agent: Agent, options: { readonly dryRun: boolean; readonly signal: AbortSignal }): Promise<LifecycleReport>;
}
