import type { AutonomyProfile, Capability, TurnOrigin } from '@gatehouse/contract';
import type { AgentCaller, CallContext, CallingTurn, PartOfRoot } from '../../../kernel/call-context.ts';
import type { OperationCall } from '../../../kernel/db/operation.ts';
import type { TurnBudget } from '../../../runtime/turn-budget.ts';
import type { Agent } from '../../agents/agents/api.ts';

/** Kinds of work that a root run consists of: a sub-agent run, a graph, a script of `orchestrate`. */
export type RootWorkKind = 'run' | 'graph' | 'script';

/** Input of `enterRoot`: work that belongs to a root run begins. */
export interface RootEntry {
  readonly rootRunId: string;
  readonly kind: RootWorkKind;
  /** The fields below describe the root and are stored with its first entry only. */
  readonly agentId: string;
  readonly principalId: string;
  readonly conversationRef: string | null;
  readonly origin: TurnOrigin;
  readonly profile: AutonomyProfile;
  readonly atMs: number;
}

/** Input of `leaveRoot`: the work ended, and this is its own cost without that of its child work. */
export interface RootLeave {
  readonly rootRunId: string;
  readonly kind: RootWorkKind;
  readonly failed: boolean;
  /** Reason of a failure, shown to owners. */
  readonly cause?: string | null;
  readonly tokens: number;
  /** Cost in 1e-9 US dollars; null when the price of a call is unknown. */
  readonly costNano: number | null;
  readonly atMs: number;
}

/** Input of `issueLease`. */
export interface NewLease {
  /** `ls_<uuid>` */
  readonly id: string;
  readonly rootRunId: string;
  readonly parentLeaseId: string | null;
  /** The sub-agent run or script that holds it. */
  readonly runId: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly caps: readonly Capability[];
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
  /** HMAC of the bearer; null for runs in this process, which present no bearer. */
  readonly bearerDigest: string | null;
  /** The boot that runs the script; '' for runs, whose work any boot continues. */
  readonly bootId: string;
}

/** A lease that is currently valid. */
export interface HeldLease extends Omit<NewLease, 'bearerDigest' | 'issuedAtMs' | 'bootId'> {}

/** What a turn may currently start. */
export interface Standing {
  readonly profile: AutonomyProfile;
  readonly caps: ReadonlySet<Capability>;
}

/** How a root run is stopped: `kill` aborts everything, `revoke` lets calls that passed their check complete. */
export type RootStop = 'kill' | 'revoke';

export interface AutonomyApi {
  /** Returns what a turn may start, from its current profile, lease and eviction; a caller without a run has its whole profile. */
  standing(agent: Agent, caller: AgentCaller | undefined): Standing;
  /**
   * Checks, before an agent delegates, that capability, root and lease are valid and the spawn guard has capacity. Throws `denied`
   * ("Capability denied: <cap>") or `rate_limited` and records the decision. Callers that are not agents always pass.
   */
  admit(capability: Capability, agent: Agent, call: CallContext): void;
  /** Returns the root of work that a call starts: that of its turn, or a new one when the caller is not an agent. */
  rootOf(call: CallContext): string;
  /** Returns when a lease issued now expires. */
  leaseUntilMs(): number;
  /** Announces the lease of a run that begins at once, so that its turn does not have to look it up. Returns a function that forgets it. */
  issuing(lease: NewLease): () => void;
  /** Reads the lease that a script presents, without caching; undefined when no valid one exists. */
  leaseOf(bearerDigest: string): Promise<HeldLease | undefined>;
  /** Counts the cost of one model call against the root's budget; false once it is used up and nothing more may begin. */
  readonly budget: {
    spend(rootRunId: string, tokens: number, costNano: number | null): void;
    covers(rootRunId: string): boolean;
  };
  /** Registers how a feature stops its work of a root; the handler returns how many items it stopped. Called after the stop is committed. */
  onStop(stop: (rootRunId: string, how: RootStop) => Promise<number> | number): void;
  /** Registers a listener for leases that `lease.revoke` revoked individually; called after the commit. */
  onRevoked(listener: (leaseIds: readonly string[]) => void): void;
  /** Returns whether the root of a turn was stopped or the lease that it holds was revoked. */
  isStopped(turn: CallingTurn): boolean;
}

/** What model calls add to a root run; `unpriced`: calls without a known price. */
export interface RootSums {
  readonly tokens: number;
  readonly nano: number;
  readonly unpriced: number;
}

/** The part of autonomy that turns use. A turn that was not delegated never waits for it. */
export interface TurnAutonomy {
  /**
   * Call before a turn. If its root may be older, which includes a turn that resumes, loads what the root spent, and renews the lease of a
   * sub-agent if it is valid.
   */
  begin(turn: CallingTurn, isResumed?: boolean): Promise<void> | undefined;
  /** Call after the turn. */
  end(turn: CallingTurn): void;
  /** Applies the limits of the root to the calls of a turn, in addition to the turn's own. */
  capped(budget: TurnBudget, turn: CallingTurn): TurnBudget;
  /** The same for one call that is a part of the root run: of a tool of its turns, such as that of an image, or of the daemon for it. */
  cappedPart(budget: TurnBudget, part: PartOfRoot): TurnBudget;
  /** Returns what adds the calls of a turn to its root, in the transaction that books them; nothing when the end of its run does. */
  booking(turn: PartOfRoot, sums: RootSums): readonly OperationCall[];
}
