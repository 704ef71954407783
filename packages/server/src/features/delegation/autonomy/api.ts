import type { AutonomyProfile, Capability, TurnOrigin } from '@gatehouse/contract';
import type { AgentCaller, CallContext, CallingTurn } from '../../../kernel/call-context.ts';
import type { TurnBudget } from '../../../runtime/turn-budget.ts';
import type { Agent } from '../../agents/agents/api.ts';

/** What kind of work belongs to a root run: a sub-agent run, a graph, a script of `orchestrate`. */
export type RootPiece = 'run' | 'graph' | 'script';

/** What `enterRoot` takes: a piece of work that belongs to a root run begins. */
export interface RootEntry {
  readonly rootRunId: string;
  readonly piece: RootPiece;
  /** Of the root: what follows is kept from the first entry. */
  readonly agentId: string;
  readonly principalId: string;
  readonly conversationRef: string | null;
  readonly origin: TurnOrigin;
  readonly profile: AutonomyProfile;
  readonly atMs: number;
}

/** What `leaveRoot` takes: the piece ended, and this is what it cost itself, without pieces of its own. */
export interface RootLeave {
  readonly rootRunId: string;
  readonly piece: RootPiece;
  readonly failed: boolean;
  /** Of a failure, for owners. */
  readonly cause?: string | null;
  readonly tokens: number;
  /** In 1e-9 US dollars; null when the price of a call is not known. */
  readonly costNano: number | null;
  readonly atMs: number;
}

/** What `issueLease` takes. */
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
  /** HMAC of the bearer; null for runs of this process, which show no bearer. */
  readonly bearerDigest: string | null;
}

/** A lease that holds at this moment. */
export interface HeldLease extends Omit<NewLease, 'bearerDigest' | 'issuedAtMs'> {}

/** What a turn may set going at this moment. */
export interface Standing {
  readonly profile: AutonomyProfile;
  readonly caps: ReadonlySet<Capability>;
}

/** How a root run is stopped: `kill` aborts whatever runs, `revoke` lets calls that passed their check complete. */
export type RootStop = 'kill' | 'revoke';

export interface AutonomyApi {
  /** Of a turn, from profile, lease and eviction as they are now; all of its profile for a caller without a run. */
  standing(agent: Agent, caller: AgentCaller | undefined): Standing;
  /**
   * Before an agent delegates: capability, root and lease still valid, spawn guard. Throws `denied` ("Capability denied: <cap>")
   * or `rate_limited`, on the record; free for callers who are no agent.
   */
  admit(capability: Capability, agent: Agent, call: CallContext): void;
  /** The root of what a call sets going: that of its turn, or a new one for a caller who is no agent. */
  rootOf(call: CallContext): string;
  /** When a lease that is issued now expires. */
  leaseUntilMs(): number;
  /** A lease that is issued for a run that begins at once: until it is forgotten the turn of the run need not look it up. Gives how to forget it. */
  issuing(lease: NewLease): () => void;
  /** The lease that a script shows, read anew each time; undefined when there is none that holds. */
  leaseOf(bearerDigest: string): Promise<HeldLease | undefined>;
  /** Counts the cost of one model call against the root's budget; false once it is used up and nothing more may begin. */
  readonly budget: {
    spend(rootRunId: string, tokens: number, costNano: number | null): void;
    covers(rootRunId: string): boolean;
  };
  /** Parts that run work of roots end it here; gives how many pieces were ended. Called after the stop is committed. */
  onStop(stop: (rootRunId: string, how: RootStop) => Promise<number> | number): void;
  /** Called with the leases that `lease.revoke` took back one by one, after that is committed. */
  onRevoked(listener: (leaseIds: readonly string[]) => void): void;
  /** Whether the root of a turn was stopped, or the lease that it holds was taken back. */
  isStopped(turn: CallingTurn): boolean;
}

/** What the turns ask of it: nothing of this is waited for by a turn that nobody delegated. */
export interface TurnAutonomy {
  /** Before a turn of a root that is older than it: what the root spent is known, and the lease of a sub-agent renewed if it holds. */
  begin(turn: CallingTurn): Promise<void> | undefined;
  /** After it. */
  end(turn: CallingTurn): void;
  /** Holds the calls of a turn against the caps of its root beside its own. */
  capped(budget: TurnBudget, turn: CallingTurn): TurnBudget;
}
