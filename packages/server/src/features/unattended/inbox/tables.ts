import type { InboxMessage } from './api.ts';

/** Rows of `inbox_message`. */
interface InboxMessageTable {
  readonly id: string;
  readonly opKey: string;
  readonly digest: string;
  readonly source: InboxMessage['source'];
  readonly agentId: string;
  readonly conversationRef: string | null;
  readonly principalId: string;
  readonly level: InboxMessage['level'];
  readonly text: string;
  readonly createdAtMs: number;
  readonly readAtMs: number | null;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly inboxMessage: InboxMessageTable;
  }
}
