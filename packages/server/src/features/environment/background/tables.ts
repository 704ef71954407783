import type { Generated } from 'kysely';
import type { TaskRow } from './store.ts';

/** Rows of `background_task`. */
interface BackgroundTaskTable {
  readonly id: string;
  readonly agentId: string;
  readonly conversationRef: string;
  readonly sessionKey: string;
  readonly principalId: string;
  readonly tokenId: string;
  readonly turnId: string;
  readonly traceId: string;
  readonly toolName: string;
  readonly description: string;
  readonly begunBy: TaskRow['begunBy'];
  readonly chain: number;
  readonly state: TaskRow['state'];
  readonly outcome: TaskRow['outcome'];
  readonly content: string | null;
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
  readonly rootRunId: string | null;
  readonly bootId: Generated<string>;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly backgroundTask: BackgroundTaskTable;
  }
}
