import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const notificationMigrations: readonly Migration[] = [
  {
    id: '231-channel-notifications',
    up: [
      `CREATE TABLE channel_notification (
        id TEXT PRIMARY KEY,
        agent_id TEXT NOT NULL,
        principal_id TEXT NOT NULL,
        instance TEXT NOT NULL,
        channel_type TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        digest TEXT NOT NULL,
        priority TEXT NOT NULL,
        op_key TEXT NOT NULL,
        entry_id TEXT NOT NULL,
        state TEXT NOT NULL,
        created_at_ms INTEGER NOT NULL,
        ended_at_ms INTEGER
      )`,
      `CREATE INDEX channel_notification_by_agent ON channel_notification (agent_id, created_at_ms)`,
      `CREATE INDEX channel_notification_open ON channel_notification (id) WHERE ended_at_ms IS NULL`,
      `CREATE INDEX channel_message_by_agent ON channel_message (agent_id, id)`,
    ],
  },
];
