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

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly node: NodeTable;
  }
}
