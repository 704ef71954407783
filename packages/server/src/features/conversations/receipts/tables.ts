import type { Generated } from 'kysely';
import type { ReceiptRow } from './api.ts';

/** Rows of `receipt`. */
interface ReceiptTable {
  readonly principalId: string;
  readonly idempotencyKey: string;
  readonly digest: string;
  readonly conversationRef: string;
  readonly outcomeJson: string | null;
  readonly state: Generated<ReceiptRow['state']>;
  readonly bootId: Generated<string>;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly receipt: ReceiptTable;
  }
}
