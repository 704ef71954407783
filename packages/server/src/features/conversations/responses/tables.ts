import type {} from '../../../kernel/db/tables.ts';

/** Rows of `response`. */
interface ResponseTable {
  readonly id: string;
  readonly previousId: string | null;
  readonly principalId: string;
  readonly agentId: string;
  readonly bodyJson: string;
  readonly systemJson: string;
  readonly messagesJson: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  readonly inputJson: string | null;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly response: ResponseTable;
  }
}
