import type { Operation } from '../../../kernel/db/operation.ts';
import type { TurnFailure } from '../../../runtime/turn-failure.ts';
import type { InboxMessage } from '../inbox/api.ts';

/** What of a failure decides whether its work waits. */
export type ProviderFailure = Pick<TurnFailure, 'transient' | 'message' | 'retryAfterMs' | 'cause'>;

export type WorkState = 'accepted' | 'running' | 'done' | 'failed' | 'aborted' | 'unknown';

/** How work ended. */
export type WorkEnd = Extract<WorkState, 'done' | 'failed' | 'aborted' | 'unknown'>;

/** What `acceptWork` takes. */
export interface NewWork {
  /** `wi_<uuid>` */
  readonly id: string;
  /** Which handler it is for. */
  readonly kind: string;
  /** Unique within the kind: the same key is the same work. */
  readonly key: string;
  /** Of what was asked for under the key, to tell a repeat from a misuse. */
  readonly digest: string;
  readonly agentId: string | null;
  /** Whatever JSON holds; the handler parses it. */
  readonly payload: unknown;
  /** It follows from work that was accepted, and is never refused for want of room. */
  readonly owed?: true;
  /** At once when absent. */
  readonly notBeforeMs?: number;
  /** Of the process that begins with it as it is accepted (`DurableWork.begin`): it does not wait, so it needs no room. */
  readonly claim?: { readonly owner: string; readonly leaseUntilMs: number };
  readonly atMs: number;
}

export type Acceptance = { readonly accepted: true } | { readonly accepted: false; readonly id: string; readonly sameDigest: boolean };

/** Who may write for a piece of work: without all three the claim is another's. */
export interface WorkClaim {
  readonly id: string;
  readonly owner: string;
  readonly fence: number;
}

/** What an item waits for without an attempt, a lease or a slot. */
export interface WorkWait {
  readonly kind: 'provider' | 'approval' | 'agent' | 'conversation';
  /** The end of the wait. */
  readonly untilMs: number;
  /** When to look again; at the end when absent. */
  readonly lookAtMs?: number;
  /** What it waits for, for `resumeWaiting`: `provider/model`, the id of an approval, that of an agent, or a conversation. */
  readonly subject?: string;
  /** The provider's own sentence: for owners only. */
  readonly cause?: string;
}

/** Why work that waits is given up. */
export type EndOfWait = 'deleted' | 'killed';

/** A wait as it is stored. */
export interface Waiting extends WorkWait {
  readonly lookAtMs: number;
  /** Kept over repeated waits for the same kind of thing. */
  readonly sinceMs: number;
  /** When it was stored last. */
  readonly atMs: number;
  /** Time waited before `atMs`. */
  readonly waitedMs: number;
  readonly waits: number;
  /** It has waited for an approval, now or before: its turn had begun by then. */
  readonly hasAsked?: true;
  /** Why it is given up with its next claim. */
  readonly endedBy?: EndOfWait;
}

/** Work as its handler gets it. */
export interface WorkItem extends WorkClaim {
  readonly kind: string;
  readonly key: string;
  readonly agentId: string | null;
  readonly payload: unknown;
  /** Which try this is, from 1; a resume is no further try. */
  readonly attempts: number;
  /** How often a process ended while it held the work. */
  readonly resumes: number;
  /** An earlier owner began with it and did not end it. */
  readonly resumed: boolean;
  readonly createdAtMs: number;
  /** What it waited for last. */
  readonly waiting?: Waiting;
}

export type WorkOutcome =
  /** The handler called `settleWork` in a transaction of its own. */
  | 'settled'
  /** Likewise, and not to be tried again later: nothing follows that would have to be looked for. */
  | 'ended'
  | { readonly retryAfterMs: number; readonly errorKind: string }
  /** The item waits, which counts as no attempt. */
  | { readonly wait: WorkWait }
  | { readonly state: WorkEnd; readonly result?: unknown; readonly errorKind?: string };

/**
 * Does a piece of work; it may be called again with the same item after a crash. The signal ends it when the claim is lost
 * or the daemon stops: then whatever it returns, but for `settled` and `ended`, counts for nothing. What it throws is a failed try.
 */
export type WorkHandler = (item: WorkItem, signal: AbortSignal) => Promise<WorkOutcome>;

export interface WorkLimits {
  /** Items of the kind that run at once. */
  readonly concurrency: number;
  readonly maxAttempts: number;
  /** The handler decides what becomes of the work of a suspended agent; otherwise the item waits until the agent is resumed. */
  readonly handlesSuspension?: true;
  /**
   * Called for work that is given up without its handler, so that the feature can write down what became of it; it may
   * settle the item in the same transaction. `errorKind` is that of the last try, `too_many_resumes`, or `deleted`; `cause` says it in a
   * sentence for owners.
   */
  readonly gaveUp?: (item: WorkItem, errorKind: string, cause: string) => Promise<void>;
}

/** `endWorkWithMessage`: ends work with a message about it, in one commit; false when the claim is another's, or it was delivered before. */
export type EndWithMessage = Operation<
  WorkClaim & { readonly state: WorkEnd; readonly errorKind?: string | null; readonly inbox: InboxMessage; readonly atMs: number },
  boolean
>;

export interface DurableWork {
  /** One handler for each kind, given before `start`. */
  handle(kind: string, handler: WorkHandler, limits: WorkLimits): void;
  /**
   * Accepts a piece of work by `accept`, which passes it on to `acceptWork`, and begins with it at once when there is room: its handler
   * runs before the acceptance is committed. Its writes come after that one, share its commit, and have no effect without it, as
   * long as each of them asks for the claim.
   */
  begin<T>(work: NewWork, accept: (work: NewWork) => Promise<T>): Promise<T>;
  /** After a commit with `acceptWork` of the kind. Only a hint: a sweep finds what was missed. */
  wake(kind: string): void;
  /**
   * The wait for a turn that ended because of its model provider; undefined when the provider is not at fault, or when
   * the item has waited `durable.maxWaitMs`: then it ends as failed.
   */
  waitFor(item: WorkItem, ended: { readonly failure?: ProviderFailure; readonly model: string }): { readonly wait: WorkWait } | undefined;
  /** The wait for a suspended agent, for handlers that handle suspension themselves. */
  untilResumed(agentId: string): { readonly wait: WorkWait };
  /** Makes the items due that wait for this. Never rejects: a write that fails is tried again. */
  resumeWaiting(what: { readonly kind: WorkWait['kind']; readonly subject: string }): Promise<void>;
  /** Gives up an item that waits, whatever it waits for by now; it ends as `gaveUp` of its kind says. */
  endWaiting(what: { readonly id: string; readonly endedBy: EndOfWait }): Promise<void>;
  /** Makes the items of an agent due that wait for a provider: it has other models now. */
  resumeAgent(agentId: string): Promise<void>;
  /** After all handlers are there: takes over what dead owners left, then looks for work. */
  start(): Promise<void>;
  /** Items of this process that run. */
  counts(): { readonly running: number };
}
