import type { Operation } from '../../../../kernel/db/operation.ts';
import type { NewWork, WorkClaim, WorkState } from '../../durable/api.ts';
import type { InboxMessage } from '../../inbox/api.ts';
import type { BeatRow, HeartbeatStateRow } from '../store.ts';

/** A beat and the work that carries it out: what waits belongs to it from here on. */
export interface BeatBeginning {
  readonly beat: BeatRow;
  readonly state: HeartbeatStateRow;
  /** The events that its message tells of; what came later waits for the next beat. */
  readonly lastEventId: number;
  readonly work: NewWork;
}

export interface BeatEnding {
  readonly workId: string;
  readonly agentId: string;
  /** Whether its events are done with; otherwise the next beat is told them. */
  readonly told: boolean;
  /** Absent when the agent is gone. */
  readonly state?: HeartbeatStateRow | undefined;
  readonly messages: readonly InboxMessage[];
  /** Whether what was said within the last 24 hours is not said again; alerts always are. */
  readonly once: boolean;
  /** Of a turn that did not settle its work itself. */
  readonly settle?: { readonly claim: WorkClaim; readonly errorKind: string } | undefined;
  readonly atMs: number;
  readonly ageNowMs: number;
}

export interface BeatEnd {
  /** False when it was written down before, or is another's by now. */
  readonly closed: boolean;
  /** Ids of the messages that were delivered. */
  readonly delivered: readonly string[];
}

export interface LostBeat {
  readonly beat: BeatRow;
  /** Undefined when it is long forgotten. */
  readonly work: { readonly state: WorkState; readonly result: unknown; readonly errorKind: string | null } | undefined;
}

/** What must commit together with the parts of other features; see `heartbeat-work.ts`. */
export interface HeartbeatOperations {
  readonly begin: Operation<BeatBeginning, void>;
  readonly end: Operation<BeatEnding, BeatEnd>;
  readonly recover: Operation<object, LostBeat[]>;
}
