import type { OperationState } from './api.ts';

/** Rows of `message_operation`: the ledger of `message.*`. */
interface MessageOperationTable {
  readonly id: string;
  readonly method: string;
  readonly digest: string;
  readonly rootRunId: string | null;
  readonly agentId: string;
  readonly state: OperationState;
  readonly bootId: string;
  readonly createdAtMs: number;
  readonly endedAtMs: number | null;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly messageOperation: MessageOperationTable;
  }
}
