export type NodeRole = 'active' | 'standby';

/** `draining`: starts nothing more; `ended`: stopped in order; `claimed`: another daemon has taken over what it left. */
export type NodeState = 'live' | 'draining' | 'ended' | 'claimed';

/** A daemon that uses the database. */
export interface ListedNode {
  readonly self?: true;
  readonly role: NodeRole;
  /** `lapsed`: it did not renew its lease in time. */
  readonly state: 'live' | 'draining' | 'lapsed';
  readonly version: string;
  readonly address: string | null;
  /** Negative when the lease has ended. */
  readonly leaseLeftMs: number;
}

/** A boot of a daemon that was claimed. */
export interface ClaimedBoot {
  readonly bootId: string;
  readonly address: string | null;
  readonly state: Extract<NodeState, 'ended' | 'claimed'>;
}

export interface NodesApi {
  /** Id of this boot, which names what this daemon owns. */
  readonly bootId: string;
  /**
   * Registers what recovers the work that dead boots left. Called after a boot was claimed while this daemon runs; what was left
   * before is recovered by the features as they start. Recoveries run in the order of registration, and again after a failure.
   */
  onClaimed(recover: () => Promise<void>): void;
  /** Stores the address at which this daemon is reached. */
  listening(address: string): Promise<void>;
  /** Returns the daemons that share the database; undefined when this one has it alone. */
  list(): Promise<ListedNode[] | undefined>;
  /** Announces that this daemon starts nothing more. */
  drain(): Promise<void>;
  /** Returns why this daemon may not start anything: another one has taken over. */
  fault(): string | undefined;
}
