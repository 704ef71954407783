import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const outgoingMigrations: readonly Migration[] = [
  {
    id: '230-message-operations',
    up: [
      `CREATE TABLE message_operation (
        id TEXT PRIMARY KEY,
        method TEXT NOT NULL,
        digest TEXT NOT NULL,
        root_run_id TEXT,
        agent_id TEXT NOT NULL,
        state TEXT NOT NULL,
        boot_id TEXT NOT NULL,
        created_at_ms INTEGER NOT NULL,
        ended_at_ms INTEGER
      )`,
      `CREATE INDEX message_operation_by_time ON message_operation (created_at_ms)`,
      // The conversations that exist, and what was said in one.
      `CREATE INDEX channel_message_by_place ON channel_message (instance, conversation_id, id)`,
      `CREATE INDEX outbound_message_by_place ON outbound_message (instance, conversation_id, id)`,
      `CREATE INDEX channel_pairing_by_place ON channel_pairing (instance, conversation_id)`,
    ],
  },
];
