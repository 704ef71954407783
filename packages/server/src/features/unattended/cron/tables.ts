import type { Generated } from 'kysely';
import type { JobRow } from './store.ts';
import type { OccurrenceRow } from './occurrences/occurrence-store.ts';

/** Rows of `cron_store`. */
interface CronStoreTable {
  readonly agentId: string;
  readonly seed: string;
  readonly formatVersion: number;
  readonly createdAtMs: number;
}

/** Rows of `cron_job`. */
interface CronJobTable {
  readonly id: string;
  readonly agentId: string;
  readonly name: string;
  readonly source: JobRow['source'];
  readonly principalId: string;
  readonly tokenId: string;
  readonly scheduleJson: string;
  readonly payloadJson: string;
  readonly policiesJson: string;
  readonly state: JobRow['state'];
  readonly pauseReason: JobRow['pauseReason'];
  readonly nextRunAtMs: number | null;
  readonly dueAtMs: number | null;
  readonly highWaterMs: number;
  readonly errors: number;
  readonly activeExecutionId: string | null;
  readonly claimedForMs: number | null;
  readonly claimedAtMs: number | null;
  readonly endedAtMs: number | null;
  readonly revision: number;
  readonly createdAtMs: number;
  readonly byAgent: Generated<number>;
  readonly authorJson: string | null;
}

/** Rows of `cron_occurrence`. */
interface CronOccurrenceTable {
  readonly seq: Generated<number>;
  readonly executionId: string;
  readonly jobId: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly scheduledForMs: number;
  readonly triggerClass: string;
  readonly triggerKind: OccurrenceRow['trigger'];
  readonly workKind: OccurrenceRow['workKind'];
  readonly bootId: string;
  readonly status: OccurrenceRow['status'];
  readonly deliveryStatus: OccurrenceRow['deliveryStatus'];
  readonly startedAtMs: number;
  readonly terminalAtMs: number | null;
  readonly errorKind: string | null;
  readonly reason: string | null;
  readonly countersJson: string | null;
  readonly gateJson: string | null;
  readonly cause: string | null;
  readonly effectsRefused: Generated<number>;
}

/** Rows of `cron_backfill`: times to run on request, each until its run has ended. */
interface CronBackfillTable {
  readonly jobId: string;
  readonly scheduledForMs: number;
  readonly agentId: string;
  readonly requestedAtMs: number;
  /** Null until it was claimed. */
  readonly executionId: string | null;
}

/** Rows of `cron_intent`. */
interface CronIntentTable {
  readonly agentId: string;
  readonly operationId: string;
  readonly target: string;
  readonly phase: string;
  readonly beforeJson: string;
  readonly afterJson: string | null;
  readonly createdAtMs: number;
  readonly bootId: Generated<string>;
}

/** Rows of `cron_archive`. */
interface CronArchiveTable {
  readonly operationId: string;
  readonly part: string;
  readonly agentId: string;
  readonly digest: string;
  readonly bytes: number;
  readonly content: string;
  readonly archivedAtMs: number;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly cronStore: CronStoreTable;
    readonly cronJob: CronJobTable;
    readonly cronOccurrence: CronOccurrenceTable;
    readonly cronBackfill: CronBackfillTable;
    readonly cronIntent: CronIntentTable;
    readonly cronArchive: CronArchiveTable;
  }
}
