import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const inboxMigrations: readonly Migration[] = [
  {
    id: '034-inbox',
    up: [
      `CREATE TABLE inbox_message (
        id TEXT PRIMARY KEY,
        op_key TEXT NOT NULL UNIQUE,
        digest TEXT NOT NULL,
        source TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        conversation_ref TEXT,
        principal_id TEXT NOT NULL,
        level TEXT NOT NULL,
        text TEXT NOT NULL,
        created_at_ms INTEGER NOT NULL,
        read_at_ms INTEGER
      ) WITHOUT ROWID`,
      `CREATE INDEX inbox_message_by_principal ON inbox_message (principal_id, id)`,
      `CREATE INDEX inbox_message_unread ON inbox_message (principal_id, id) WHERE read_at_ms IS NULL`,
    ],
  },
];
