import type { Operation } from '../../../../kernel/db/operation.ts';
import type { NewWork, WorkClaim, WorkState } from '../../durable/api.ts';
import type { InboxMessage } from '../../inbox/api.ts';
import type { BeatRow, HeartbeatStateRow } from '../store.ts';

/** A beat and its work, which take over the queued events. */
export interface BeatBeginning {
  readonly beat: BeatRow;
  /** Whether it uses the due time in `state`, and begins only when no other beat has. */
  readonly isPlanned: boolean;
  readonly state: HeartbeatStateRow;
  /** The last event in its message; later ones stay queued for the next beat. */
  readonly lastEventId: number;
  readonly work: NewWork;
}

export interface BeatEnding {
  readonly workId: string;
  readonly agentId: string;
  /** Whether its events are handled; otherwise the next beat gets them. */
  readonly handled: boolean;
  /** Absent when the agent was deleted. */
  readonly state?: HeartbeatStateRow | undefined;
  readonly messages: readonly InboxMessage[];
  /** Suppresses texts already delivered within the last 24 hours, except alerts. */
  readonly once: boolean;
  /** Present when the turn has not settled its work itself. */
  readonly settle?: { readonly claim: WorkClaim; readonly errorKind: string } | undefined;
  readonly atMs: number;
  readonly ageNowMs: number;
}

export interface BeatEnd {
  /** False when the beat was already closed or the claim was lost. */
  readonly closed: boolean;
  /** Ids of the delivered messages. */
  readonly delivered: readonly string[];
}

export interface LostBeat {
  readonly beat: BeatRow;
  /** Undefined when it was pruned. */
  readonly work: { readonly state: WorkState; readonly result: unknown; readonly errorKind: string | null } | undefined;
}

/** Operations that commit together with other features; see `heartbeat-work.ts`. */
export interface HeartbeatOperations {
  /** Returns false, and begins nothing, when another process has begun the beat of this due time or taken its events. */
  readonly begin: Operation<BeatBeginning, boolean>;
  readonly end: Operation<BeatEnding, BeatEnd>;
  readonly recover: Operation<object, LostBeat[]>;
}
