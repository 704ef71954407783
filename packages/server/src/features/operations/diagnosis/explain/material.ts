import type { StoredRecord } from '../records.ts';

export interface Reference {
  readonly sessionKey: string | null;
  readonly traceId: string | null;
  readonly rootRunId: string | null;
}

/** Rows of other features that belong to the execution. */
export interface DurableRows {
  /** The turn that the report is about, or the newest of the session when no record of it exists. */
  readonly turn:
    | { readonly id: string; readonly state: string; readonly finishReason: string | null; readonly failureKind: string | null }
    | undefined;
  readonly approvals: readonly { readonly id: string; readonly tool: string; readonly state: string; readonly traceId: string }[];
  readonly root: { readonly id: string; readonly state: string; readonly costNano: number } | undefined;
  readonly runs: readonly RunFacts[];
  readonly leases: readonly LeaseFacts[];
  readonly failedNodes: readonly { readonly graphId: string; readonly nodeId: string; readonly error: string | null }[];
  /** Skills of the agent whose latest turns failed, with how many in a row. */
  readonly failingSkills: readonly { readonly name: string; readonly failures: number }[];
  readonly hasMemories: boolean;
  /** Parts of the answer that go to a chat. */
  readonly deliveries: readonly { readonly id: string; readonly instance: string; readonly state: string }[];
}

export interface RunFacts {
  readonly id: string;
  readonly leaseId: string;
  readonly state: string;
  readonly endReason: string | null;
  readonly errorKind: string | null;
}

export interface LeaseFacts {
  readonly id: string;
  readonly parentLeaseId: string | null;
  readonly runId: string;
  readonly agentId: string;
  readonly caps: string;
  readonly revoked: number;
}

/** All kept records of a session, as sums. */
export interface SessionTotals {
  readonly turns: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  /** Null when no price is known. */
  readonly costNano: number | null;
}

/** Everything that a report is derived from. */
export interface Material {
  readonly conversationRef: string | null;
  readonly sessionKey: string | null;
  readonly agentId: string | null;
  /** Newest records of the session, oldest first. */
  readonly session: readonly StoredRecord[];
  /** Records of the execution that the report explains, with those of its sub-agents and graphs, oldest first. */
  readonly execution: readonly StoredRecord[];
  /** The last part of the turn of the execution. */
  readonly focus: StoredRecord | undefined;
  readonly totals: SessionTotals;
  readonly rows: DurableRows;
  /** Set where records were left out. */
  readonly cut: { readonly session: boolean; readonly execution: boolean };
}
