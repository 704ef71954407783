import type { NodeRole, NodeState } from './api.ts';

/** Rows of `node`. */
interface NodeTable {
  readonly bootId: string;
  readonly homeId: string;
  readonly address: string | null;
  readonly version: string;
  readonly role: NodeRole;
  readonly state: NodeState;
  readonly leaseUntilMs: number;
  readonly startedAtMs: number;
  readonly renewedAtMs: number;
  readonly claimedBy: string;
}

/** Rows of `active_node`: one. */
interface ActiveNodeTable {
  readonly id: number;
  readonly bootId: string;
  readonly fence: number;
  readonly sinceMs: number;
  readonly schemaVersion: number;
}

/** Rows of `installation`: at most one. */
interface InstallationTable {
  readonly id: number;
  readonly keyFingerprint: string;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly node: NodeTable;
    readonly activeNode: ActiveNodeTable;
    readonly installation: InstallationTable;
  }
}
