import type { SubAgentEndReason, SubAgentState } from '@gatehouse/contract';

/** Target of the announcement of a run. `run`: wherever the requesting run is announced, once that run has ended. */
export type AnnounceTo = 'conversation' | 'inbox' | 'run' | 'none';
/** State of the announcement. */
export type AnnounceState = 'pending' | 'turn' | 'inbox' | 'none' | 'seen';

/** A stored run. */
export interface RunRow {
  readonly id: string;
  readonly rootRunId: string;
  readonly leaseId: string;
  /** The run whose turn requested it. */
  readonly parentRunId: string | null;
  readonly depth: number;
  readonly agentId: string;
  readonly principalId: string;
  readonly tokenId: string;
  /** The conversation or token whose limits it counts against. */
  readonly requesterKey: string;
  /** The requesting conversation; null for a token and for runs of graphs. */
  readonly requesterRef: string | null;
  readonly requesterAgentId: string | null;
  /** 1 when the limits of children and queue apply. */
  readonly counted: number;
  readonly conversationRef: string;
  readonly sessionKey: string;
  readonly task: string;
  readonly optionsJson: string;
  readonly graphId: string | null;
  readonly nodeId: string | null;
  readonly workId: string;
  readonly state: SubAgentState;
  readonly queuedAtMs: number;
  readonly startedAtMs: number | null;
  /** When the current or latest process began with it. */
  readonly activeAtMs: number | null;
  readonly endedAtMs: number | null;
  readonly endReason: SubAgentEndReason | null;
  readonly errorKind: string | null;
  /** Why it failed, for owners: the provider's own sentence, or ours. */
  readonly cause: string | null;
  readonly summary: string | null;
  readonly resultText: string | null;
  readonly resultRefJson: string | null;
  readonly telemetryJson: string | null;
  /** 1 when it had read text from outside, so that others must treat its text as untrusted. */
  readonly tainted: number;
  readonly announceTo: AnnounceTo;
  readonly announceRef: string | null;
  /** JSON of a `ConversationTarget`, with `announceRef`. */
  readonly announceTargetJson: string | null;
  readonly announceRunId: string | null;
  /** The work item that announces it. */
  readonly announceWorkId: string | null;
  readonly announced: AnnounceState;
  /** The turn of the requester that was shown the completion. */
  readonly seenTurnId: string | null;
  readonly steeredAtMs: number | null;
}

/** Columns named as in `RunRow`. */
export const runColumns = [
  'id',
  'rootRunId',
  'leaseId',
  'parentRunId',
  'depth',
  'agentId',
  'principalId',
  'tokenId',
  'requesterKey',
  'requesterRef',
  'requesterAgentId',
  'counted',
  'conversationRef',
  'sessionKey',
  'task',
  'optionsJson',
  'graphId',
  'nodeId',
  'workId',
  'state',
  'queuedAtMs',
  'startedAtMs',
  'activeAtMs',
  'endedAtMs',
  'endReason',
  'errorKind',
  'cause',
  'summary',
  'resultText',
  'resultRefJson',
  'telemetryJson',
  'tainted',
  'announceTo',
  'announceRef',
  'announceTargetJson',
  'announceRunId',
  'announceWorkId',
  'announced',
  'seenTurnId',
  'steeredAtMs',
] as const;

/** A run that has ended, with what its end settled. */
export interface EndedRun {
  readonly row: RunRow;
  /** Child runs whose completion it was shown; these are not announced elsewhere. */
  readonly seen: readonly RunRow[];
}

/** Columns that are set only after the run is accepted. */
const unbegun = {
  state: 'queued',
  startedAtMs: null,
  activeAtMs: null,
  endedAtMs: null,
  endReason: null,
  errorKind: null,
  cause: null,
  summary: null,
  resultText: null,
  resultRefJson: null,
  telemetryJson: null,
  tainted: 0,
  announceWorkId: null,
  announced: 'pending',
  seenTurnId: null,
} as const;

export type NewRunRow = Omit<RunRow, keyof typeof unbegun>;

/** Returns the row as it is stored. */
export const storedRun = (row: NewRunRow): RunRow => ({ ...row, ...unbegun });

export const isEnded = ({ state }: Pick<RunRow, 'state'>): boolean => state === 'completed' || state === 'failed';
