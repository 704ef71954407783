import type { Operation } from '../../../kernel/db/operation.ts';
import type { TurnFailure } from '../../../runtime/turn-failure.ts';
import type { InboxMessage } from '../inbox/api.ts';

/** The fields of a failure that decide whether its work waits. */
export type ProviderFailure = Pick<TurnFailure, 'transient' | 'message' | 'retryAfterMs' | 'cause'>;

export type WorkState = 'accepted' | 'running' | 'done' | 'failed' | 'aborted' | 'unknown';

/** Terminal state of work. */
export type WorkEnd = Extract<WorkState, 'done' | 'failed' | 'aborted' | 'unknown'>;

/** Input of `acceptWork`. */
export interface NewWork {
  /** `wi_<uuid>` */
  readonly id: string;
  /** Selects the handler. */
  readonly kind: string;
  /** Unique within the kind: the same key means the same work. */
  readonly key: string;
  /** Digest of the request, to distinguish a repeat from reuse of the key. */
  readonly digest: string;
  readonly agentId: string | null;
  /** Any JSON value; the handler parses it. */
  readonly payload: unknown;
  /** Set when the item follows from accepted work and must not be rejected by a full queue. */
  readonly owed?: true;
  /** Runs immediately when absent. */
  readonly notBeforeMs?: number;
  /** Claim of the process that starts the item on acceptance (`DurableWork.begin`); it does not use queue capacity. */
  readonly claim?: { readonly owner: string; readonly leaseUntilMs: number };
  /** Whether the queue is known to have capacity (`DurableWork.begin`, `DurableWork.fits`); otherwise the acceptance looks. */
  readonly fits?: boolean;
  readonly atMs: number;
}

export type Acceptance = { readonly accepted: true } | { readonly accepted: false; readonly id: string; readonly sameDigest: boolean };

/** Authority to write for a work item; all three fields must match. */
export interface WorkClaim {
  readonly id: string;
  readonly owner: string;
  readonly fence: number;
}

/** A wait that uses no attempt, lease or slot. */
export interface WorkWait {
  readonly kind: 'provider' | 'approval' | 'agent' | 'conversation';
  /** End of the wait. */
  readonly untilMs: number;
  /** Time of the next check; the end of the wait when absent. */
  readonly lookAtMs?: number;
  /** What the item waits for, as matched by `resumeWaiting`: `provider/model`, an approval id, an agent id or a conversation. */
  readonly subject?: string;
  /** The provider's error message, shown to owners only. */
  readonly cause?: string;
  /** Root run of the waiting turn; kept across waits. */
  readonly rootRunId?: string;
  /** Set when that turn is of a sub-agent. */
  readonly runId?: string;
}

/** Reason for giving up waiting work. */
export type EndOfWait = 'deleted' | 'killed';

/** A stored wait. */
export interface Waiting extends WorkWait {
  readonly lookAtMs: number;
  /** Start of the wait, kept across repeated waits of the same kind. */
  readonly sinceMs: number;
  /** Time of the last update. */
  readonly atMs: number;
  /** Time waited before `atMs`. */
  readonly waitedMs: number;
  readonly waits: number;
  /** Set once the item has waited for an approval, which means that its turn has started. */
  readonly hasAsked?: true;
  /** Set when the token of its principal was revoked: it does not wait for its agent any more, as its handler ends it. */
  readonly isRevoked?: true;
  /** Set when the item is to be given up at its next claim. */
  readonly endedBy?: EndOfWait;
}

/** Work as passed to its handler. */
export interface WorkItem extends WorkClaim {
  readonly kind: string;
  readonly key: string;
  readonly agentId: string | null;
  readonly payload: unknown;
  /** Number of this attempt, from 1; a resume does not count. */
  readonly attempts: number;
  /** How often a process died while it held the work. */
  readonly resumes: number;
  /** True when an earlier owner started the work and did not finish it. */
  readonly resumed: boolean;
  readonly createdAtMs: number;
  /** The latest wait. */
  readonly waiting?: Waiting;
}

export type WorkOutcome =
  /** The handler called `settleWork` in its own transaction. */
  | 'settled'
  /** Likewise, and no follow-up work can be due, so that no sweep is needed. */
  | 'ended'
  /** The handler stopped without an end, such as when the daemon stops: the item is continued, which does not count as an attempt. */
  | 'released'
  | { readonly retryAfterMs: number; readonly errorKind: string }
  /** The item waits; this does not count as an attempt. */
  | { readonly wait: WorkWait }
  | { readonly state: WorkEnd; readonly result?: unknown; readonly errorKind?: string };

/**
 * Executes a work item; may be called again with the same item after a crash. The signal aborts when the claim is lost or the
 * daemon stops; then any result except `settled` and `ended` is ignored. A thrown error is a failed attempt.
 */
export type WorkHandler = (item: WorkItem, signal: AbortSignal) => Promise<WorkOutcome>;

export interface WorkLimits {
  /** Maximum concurrent items of the kind. */
  readonly concurrency: number;
  readonly maxAttempts: number;
  /** Set when the handler deals with suspended agents itself; otherwise the item waits until the agent is resumed. */
  readonly handlesSuspension?: true;
  /**
   * Called when work is given up without its handler, so that the feature can record the outcome; it may settle the
   * item in the same transaction. `errorKind` is that of the last attempt, `too_many_resumes`, or `deleted`; `cause` is a
   * sentence for owners.
   */
  readonly gaveUp?: (item: WorkItem, errorKind: string, cause: string) => Promise<void>;
}

/** `endWorkWithMessage`: ends work and stores a message about it in one commit; returns false when the claim was lost or the message exists. */
export type EndWithMessage = Operation<
  WorkClaim & { readonly state: WorkEnd; readonly errorKind?: string | null; readonly inbox: InboxMessage; readonly atMs: number },
  boolean
>;

export interface DurableWork {
  /** Registers the handler of a kind, once and before `start`. */
  handle(kind: string, handler: WorkHandler, limits: WorkLimits): void;
  /**
   * Accepts a work item through `accept`, which passes it to `acceptWork`, and starts it immediately when a slot is free: its handler
   * runs before the acceptance is committed. The handler's writes follow that one in the same commit and have no effect
   * without it, provided each of them checks the claim.
   */
  begin<T>(work: NewWork, accept: (work: NewWork) => Promise<T>): Promise<T>;
  /** Returns whether the queue of the kind is known to have capacity for one more item, which is then `NewWork.fits`, and counts that item. */
  fits(kind: string): boolean;
  /** Call after a commit with `acceptWork` of the kind. Only a hint: a sweep finds missed items. */
  wake(kind: string): void;
  /**
   * Returns the wait for a turn that failed because of its model provider; undefined when the provider is not at fault, or
   * when the item has already waited `durable.maxWaitMs` and must fail.
   */
  waitFor(item: WorkItem, ended: { readonly failure?: ProviderFailure; readonly model: string }): { readonly wait: WorkWait } | undefined;
  /** Returns the wait for a suspended agent, for handlers that deal with suspension themselves. */
  untilResumed(agentId: string): { readonly wait: WorkWait };
  /** Makes the items due that are waiting for this. Never rejects: failed writes are retried. */
  resumeWaiting(what: { readonly kind: WorkWait['kind']; readonly subject: string }): Promise<void>;
  /** Gives up a waiting item, whatever it waits for by now; `gaveUp` of its kind decides how it ends. */
  endWaiting(what: { readonly id: string; readonly endedBy: EndOfWait }): Promise<void>;
  /** Kills the waiting turns of a root, without those of its sub-agents; returns how many were not given up before. */
  killWaiting(rootRunId: string): Promise<number>;
  /** Makes the agent's items due that are waiting for a provider, because its models changed or it was deleted. */
  resumeAgent(agentId: string): Promise<void>;
  /** Makes the waiting items of a principal due whose token was revoked, so that they end with it; those waiting for approvals are ended elsewhere. */
  resumePrincipal(principalId: string): Promise<void>;
  /** Takes over the work of dead owners, then starts claiming. Call after all handlers are registered. */
  start(): Promise<void>;
  /** Returns the number of running items of this process. */
  counts(): { readonly running: number };
}
