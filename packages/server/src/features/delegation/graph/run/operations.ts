import type { AuditRow } from '../../../../kernel/db/audit.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import type { RootEntry } from '../../autonomy/api.ts';
import type { EndWithMessage, NewWork, WorkClaim } from '../../../unattended/durable/api.ts';
import type { InboxMessage } from '../../../unattended/inbox/api.ts';
import type { GraphRow, StopReason } from '../rows.ts';
import type { FoundGraph, GraphEnd, NodeChange } from '../store.ts';

/** The kinds of durable work of graphs. */
export const graphWork = 'graph';
export const graphTellWork = 'graph_told';

/** Graphs that may run at once, in all. */
export const maxOpenGraphs = 100;
/** Of one principal: the others find room beside it. */
export const maxOpenOfOne = 80;

export interface GraphIntake {
  readonly row: GraphRow;
  readonly nodeIds: readonly string[];
  /** It was loaded under its id before. */
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
  /** When it has changed. */
  readonly waitedMs?: number;
}

/** How the end of a graph is told: a person by a message, a conversation by work of its own. */
export interface GraphTelling {
  readonly inbox?: InboxMessage | undefined;
  readonly work?: NewWork | undefined;
}

export interface GraphClosing extends GraphTelling {
  /** Absent when it is ended from outside of its handler. */
  readonly claim?: WorkClaim | undefined;
  readonly end: GraphEnd;
  readonly errorKind: string | null;
}

/** `stoppedBy`: it was stopped meanwhile, so that it ends as that and in no other way; nothing was written. */
export type GraphClosed =
  | { readonly stoppedBy?: never; readonly delivered: boolean; readonly found: FoundGraph }
  | { readonly stoppedBy: StopReason };

/** What is composed of several features, in one transaction each. */
export interface GraphOperations {
  /** An id: of the graph that the same work stands for already. `full`: as many run as may; `gone`: the graph that was loaded has been started, or is not kept any more. */
  readonly accept: Operation<GraphIntake, GraphAccepted>;
  /** Undefined: the graph has ended, or the claim is another's. Else the ids of the messages that are new. */
  readonly move: Operation<NodeMoves, readonly string[] | undefined>;
  /** Undefined: it had ended, or the claim is another's; nothing was written. */
  readonly close: Operation<GraphClosing, GraphClosed | undefined>;
  /** Ends the work that tells of a graph with a message; false when it told already, or the claim is another's. */
  readonly endWithMessage: EndWithMessage;
  /** Graphs of a root run that run. */
  readonly ofRoot: Operation<{ readonly rootRunId: string }, readonly FoundGraph[]>;
}
