import type { AuditRow } from '../../../../kernel/db/audit.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import type { RootEntry } from '../../autonomy/api.ts';
import type { EndWithMessage, NewWork, WorkClaim } from '../../../unattended/durable/api.ts';
import type { InboxMessage } from '../../../unattended/inbox/api.ts';
import type { GraphRow, StopReason } from '../rows.ts';
import type { FoundGraph, GraphEnd, NodeChange } from '../store.ts';

/** The kinds of durable work of graphs. */
export const graphWork = 'graph';
export const graphAnnounceWork = 'graph_told';

/** Maximum number of concurrent graphs. */
export const maxOpenGraphs = 100;
/** Maximum for one principal, so that others have capacity too. */
export const maxOpenOfOne = 80;

export interface GraphIntake {
  readonly row: GraphRow;
  readonly nodeIds: readonly string[];
  /** Nodes with results of an earlier run. */
  readonly kept?: readonly NodeChange[];
  /** Whether it was loaded under its id before. */
  readonly wasLoaded: boolean;
  readonly root: RootEntry;
  readonly work: NewWork;
  readonly audit: AuditRow;
}

export type GraphAccepted = 'accepted' | 'full' | 'full_of_own' | 'gone' | { readonly graphId: string };

export interface NodeMoves {
  readonly claim: WorkClaim;
  readonly graphId: string;
  readonly changes: readonly NodeChange[];
  readonly inbox: readonly InboxMessage[];
  /** Set when it has changed. */
  readonly waitedMs?: number;
}

/** How the end of a graph is announced: to a person by a message, to a conversation by separate work. */
export interface GraphAnnouncement {
  readonly inbox?: InboxMessage | undefined;
  readonly work?: NewWork | undefined;
}

export interface GraphClosing extends GraphAnnouncement {
  /** Absent when the graph is ended from outside its handler. */
  readonly claim?: WorkClaim | undefined;
  readonly end: GraphEnd;
  readonly errorKind: string | null;
}

/** `stoppedBy`: the graph was stopped in the meantime and must end with that reason; nothing was written. */
export type GraphClosed =
  | { readonly stoppedBy?: never; readonly delivered: boolean; readonly found: FoundGraph }
  | { readonly stoppedBy: StopReason };

/** Operations that combine several features, in one transaction each. */
export interface GraphOperations {
  /** Accepts a graph. Returns the id of the graph that the same work already started, `full` at the limit, or `gone` for a started or expired one. */
  readonly accept: Operation<GraphIntake, GraphAccepted>;
  /** Returns the ids of new messages; undefined when the graph has ended, or another process holds the claim. */
  readonly move: Operation<NodeMoves, readonly string[] | undefined>;
  /** Closes a graph; undefined when it had already ended, or another process holds the claim, and nothing was written. */
  readonly close: Operation<GraphClosing, GraphClosed | undefined>;
  /** Ends the announcing work with a message; false when it already ended, or another process holds the claim. */
  readonly endWithMessage: EndWithMessage;
  /** Returns the running graphs of a root run. */
  readonly ofRoot: Operation<{ readonly rootRunId: string }, readonly FoundGraph[]>;
}
