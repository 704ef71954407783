import type { Generated } from 'kysely';
import type { BeatRow, HeartbeatStateRow } from './store.ts';

/** Rows of `heartbeat_state`. */
interface HeartbeatStateTable {
  readonly agentId: string;
  readonly lastSlotMs: number;
  readonly lastRunAtMs: number | null;
  readonly consecutiveErrors: number;
  readonly backoffUntilMs: number | null;
  readonly lastErrorKind: HeartbeatStateRow['lastErrorKind'];
  readonly lastAlertAtMs: number | null;
  readonly stoppedBy: HeartbeatStateRow['stoppedBy'];
  readonly stoppedUnder: string | null;
}

/** Rows of `heartbeat_event`. */
interface HeartbeatEventTable {
  readonly id: Generated<number>;
  readonly opKey: string;
  readonly agentId: string;
  readonly text: string;
  readonly source: string;
  readonly urgentReason: string | null;
  readonly repeats: number;
  readonly workId: string | null;
  readonly createdAtMs: number;
  readonly tainted: 0 | 1;
}

/** Rows of `heartbeat_beat`. */
interface HeartbeatBeatTable {
  readonly workId: string;
  readonly agentId: string;
  readonly correlationId: string;
  readonly lane: BeatRow['lane'];
  readonly reason: BeatRow['reason'];
  readonly eventCount: number;
  readonly startedAtMs: number;
  readonly bootId: Generated<string>;
}

/** Rows of `heartbeat_told`. */
interface HeartbeatToldTable {
  readonly agentId: string;
  readonly digest: string;
  readonly atMs: number;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly heartbeatState: HeartbeatStateTable;
    readonly heartbeatEvent: HeartbeatEventTable;
    readonly heartbeatBeat: HeartbeatBeatTable;
    readonly heartbeatTold: HeartbeatToldTable;
  }
}
