import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const receiptMigrations: readonly Migration[] = [
  {
    id: '015-receipts',
    up: [
      `CREATE TABLE receipt (
        principal_id TEXT NOT NULL,
        idempotency_key TEXT NOT NULL,
        digest TEXT NOT NULL,
        conversation_ref TEXT NOT NULL,
        outcome_json TEXT,
        created_at_ms INTEGER NOT NULL,
        expires_at_ms INTEGER NOT NULL,
        PRIMARY KEY (principal_id, idempotency_key)
      ) WITHOUT ROWID`,
      `CREATE INDEX receipt_by_expiry ON receipt (expires_at_ms)`,
      `CREATE INDEX receipt_by_conversation ON receipt (conversation_ref)`,
    ],
  },
  {
    id: '148-receipt-boots',
    up: [`ALTER TABLE receipt ADD COLUMN state TEXT NOT NULL DEFAULT 'ended'`, `ALTER TABLE receipt ADD COLUMN boot_id TEXT NOT NULL DEFAULT ''`],
  },
];
