import type { AgentConfig, FinishReason, TurnOrigin } from '@gatehouse/contract';
import type { CallContext, PartOfRoot } from '../../../kernel/call-context.ts';
import type { Agent } from '../../agents/agents/api.ts';

export type MemoryType = 'working' | 'episodic' | 'semantic' | 'procedural';
export type TrustLevel = 'system' | 'learned' | 'external';
export type TaintLevel = 'clean' | 'wrapped' | 'raw';

/** Source of an entry; `who` is an agent id, `operator` or `system`. */
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
  /** Ids of the memories from which a derived one was made; some may be gone. */
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
  /** `system` is accepted only from the daemon itself. */
  readonly trustLevel: TrustLevel;
  readonly taintLevel?: TaintLevel;
  readonly source: MemorySource;
  readonly tags?: readonly string[];
  readonly expiresAtMs?: number;
  /** Creates a derived memory: its proof is the number of citations. */
  readonly cites?: readonly MemoryCitation[];
  readonly confidence?: number;
  readonly pinned?: boolean;
}

export interface StoredMemory {
  readonly id: string;
  /** `external` when the scan found something, whatever was requested. */
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
  /** 0 to 1: fused reciprocal ranks of the participating lanes; orders the results of one search and means little on its own. */
  readonly score: number;
  readonly explain: MemoryExplanation;
}

export interface MemoryQuery {
  readonly text: string;
  readonly agentId: string;
  /** Entries of this owner and those for everybody; null: all of the agent. */
  readonly principalId: string | null;
  /** 100 or less. */
  readonly limit: number;
  readonly minScore?: number;
  readonly types?: readonly MemoryType[];
  readonly trust?: readonly TrustLevel[];
  /** An entry must have all of them. */
  readonly tags?: readonly string[];
  /** False excludes raw entries that a derived one has absorbed; true when absent. */
  readonly includeDerivedSources?: boolean;
  /** Principal who pays for embedding the text, when all of the agent is searched. */
  readonly bookedOn?: string;
  /** Conversation on which it is booked. */
  readonly bookedConversation?: string;
  /** The turn or root run of which the search is a part. */
  readonly part?: PartOfRoot | undefined;
  /** False keeps the vector of the text out of the database (users' messages); true when absent. */
  readonly keepVector?: boolean;
  /** Longest wait for the vector of the text, after which only terms are searched; 1500 when absent. */
  readonly vectorWaitMs?: number;
  readonly signal: AbortSignal;
}

export interface MemoryApi {
  /**
   * Scans, then stores in one write: later text searches find it at once; its vector is computed in the background.
   * @throws AppError `invalid_params` when it is too large, `denied` for content that the scan refuses.
   */
  store(entry: NewMemory, by: CallContext | 'system'): Promise<StoredMemory>;
  /** Searches by terms and by meaning, best first; by terms alone when the query is not embedded in time. */
  search(query: MemoryQuery): Promise<readonly ScoredMemory[]>;
}

export interface RecallQuestion {
  readonly agentId: string;
  readonly principalId: string;
  readonly conversationRef: string;
  readonly question: string;
  /** Token budget for the messages of the call, of which memories use at most a quarter. */
  readonly room: number;
  /** The root run of the turn, where it is older than the turn. */
  readonly part?: PartOfRoot | undefined;
  readonly signal: AbortSignal;
  /** Does not count as a use of the memories that are found. */
  readonly uncounted?: true | undefined;
}

export interface Recalled {
  /** One fenced block for the model, inside the budget of the agent; precedes the message that is sent and is never stored. */
  readonly text: string;
  /** Ids of its memories, best first. */
  readonly ids: readonly string[];
}

/** Memory as turns use it. */
export interface RecallApi {
  /**
   * Recalls memories about a message. Returns undefined synchronously when the agent's configuration disables recall
   * for turns of this origin or it has no memory; the promise never rejects and takes 300 ms at most, then
   * without a result.
   */
  recall(about: RecallQuestion, config: Pick<AgentConfig, 'memory'>, origin: TurnOrigin): Promise<Recalled | undefined> | undefined;
  /** Reports how a turn with recalled memories ended: failures that they may have caused are booked on them. Returns at once. */
  attribute(
    recalled: { readonly agentId: string; readonly ids: readonly string[] },
    end: { readonly finishReason: FinishReason; readonly failure?: { readonly kind: string } },
  ): void;
}

/** Results of a review of conversations. */
export interface ReviewReport {
  readonly agentId: string;
  readonly conversationsReviewed: number;
  /** Conversations whose review failed; they are retried. */
  readonly conversationsFailed: number;
  /** Conversations left for the next run. */
  readonly more: boolean;
  readonly extracted: number;
  readonly duplicates: number;
  /** Candidates with an invalid shape, too long, or refused by the write scan. */
  readonly rejected: number;
  readonly admitted: number;
  /** Derived memories that were created, and entries that were folded into new or existing ones. */
  readonly derived: number;
  readonly consolidated: number;
  readonly durationMs: number;
}

/** Actions of a lifecycle sweep, done or planned. */
export interface LifecycleReport {
  readonly agentId: string;
  readonly dryRun: boolean;
  readonly examined: number;
  readonly promoted: number;
  readonly demoted: number;
  readonly evicted: number;
  /** Whether there is more to do than one sweep does. */
  readonly more: boolean;
  /** The first hundred planned actions. */
  readonly actions: readonly {
    readonly id: string;
    readonly kind: 'promote' | 'demote' | 'evict';
    readonly reason: 'used' | 'faded' | 'failures' | 'expired' | 'too_old' | 'too_many';
  }[];
  readonly durationMs: number;
}

/**
 * Tasks for schedules, one run of each per agent at a time: a second one fails with `conflict`. An abort ends a run
 * between two steps; what is stored by then stays.
 */
export interface MemoryLifeApi {
  /** Reviews the conversations of an agent that changed, then folds equivalent entries into derived ones. */
  review(agent: Agent, signal: AbortSignal): Promise<ReviewReport>;
  lifecycle(agent: Agent, options: { readonly dryRun: boolean; readonly signal: AbortSignal }): Promise<LifecycleReport>;
}
