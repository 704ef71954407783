import type { Generated } from 'kysely';
import type { RunRow } from './run/row.ts';

/** Rows of `sub_agent_run`. */
interface SubAgentRunTable {
  readonly id: string;
  readonly rootRunId: string;
  readonly leaseId: string;
  readonly parentRunId: string | null;
  readonly depth: number;
  readonly agentId: string;
  readonly principalId: string;
  readonly tokenId: string;
  readonly requesterKey: string;
  readonly requesterRef: string | null;
  readonly requesterAgentId: string | null;
  readonly counted: number;
  readonly conversationRef: string;
  readonly sessionKey: string;
  readonly task: string;
  readonly optionsJson: string;
  readonly graphId: string | null;
  readonly nodeId: string | null;
  readonly workId: string;
  readonly state: RunRow['state'];
  readonly queuedAtMs: number;
  readonly startedAtMs: number | null;
  readonly activeAtMs: number | null;
  readonly endedAtMs: number | null;
  readonly endReason: RunRow['endReason'];
  readonly errorKind: string | null;
  readonly summary: string | null;
  readonly resultText: string | null;
  readonly resultRefJson: string | null;
  readonly telemetryJson: string | null;
  readonly announceTo: RunRow['announceTo'];
  readonly announceRef: string | null;
  readonly announceTargetJson: string | null;
  readonly announceRunId: string | null;
  readonly announceWorkId: string | null;
  readonly announced: RunRow['announced'];
  readonly seenTurnId: string | null;
  readonly steeredAtMs: number | null;
  readonly tainted: Generated<number>;
  readonly cause: string | null;
  readonly partTokens: Generated<number>;
  readonly partNano: Generated<number>;
  readonly partUnpriced: Generated<number>;
}

/** Rows of `sub_agent_key`. */
interface SubAgentKeyTable {
  readonly runKey: string;
  readonly digest: string;
  readonly runId: string;
  readonly rootRunId: string;
  readonly conversationRef: string;
  readonly atMs: number;
}

/** Rows of `sub_agent_steer`. */
interface SubAgentSteerTable {
  readonly id: string;
  readonly runId: string;
  readonly text: string;
  readonly taken: number;
  readonly atMs: number;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly subAgentRun: SubAgentRunTable;
    readonly subAgentKey: SubAgentKeyTable;
    readonly subAgentSteer: SubAgentSteerTable;
  }
}
