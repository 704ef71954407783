import type { WorkState } from './api.ts';

/** Rows of `work_item`. */
interface WorkItemTable {
  readonly id: string;
  readonly kind: string;
  readonly workKey: string;
  readonly digest: string;
  readonly agentId: string | null;
  readonly payloadJson: string;
  readonly state: WorkState;
  readonly owner: string;
  readonly fence: number;
  readonly leaseUntilMs: number;
  readonly attempts: number;
  readonly resumes: number;
  readonly notBeforeMs: number;
  readonly resultJson: string | null;
  readonly errorKind: string | null;
  readonly createdAtMs: number;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
  readonly waitingJson: string | null;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly workItem: WorkItemTable;
  }
}
