import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const deliveryMigrations: readonly Migration[] = [
  {
    id: '211-outbound-messages',
    up: [
      `CREATE TABLE outbound_message (
        id TEXT PRIMARY KEY,
        op_key TEXT NOT NULL,
        part INTEGER NOT NULL,
        parts INTEGER NOT NULL,
        digest TEXT NOT NULL,
        instance TEXT NOT NULL,
        channel_type TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        thread_id TEXT,
        conversation_kind TEXT NOT NULL,
        text TEXT NOT NULL,
        state TEXT NOT NULL,
        attempts INTEGER NOT NULL,
        not_before_ms INTEGER NOT NULL,
        expires_at_ms INTEGER NOT NULL,
        boot_id TEXT,
        platform_id TEXT,
        error_kind TEXT,
        error TEXT,
        agent_id TEXT NOT NULL,
        principal_id TEXT NOT NULL,
        conversation_ref TEXT,
        turn_id TEXT,
        created_at_ms INTEGER NOT NULL,
        ended_at_ms INTEGER,
        UNIQUE (op_key, part)
      )`,
      // What waits is little; a lane is a conversation of an instance.
      `CREATE INDEX outbound_message_open ON outbound_message (instance, id) WHERE state IN ('pending', 'sending')`,
      `CREATE INDEX outbound_message_by_conversation ON outbound_message (conversation_ref) WHERE conversation_ref IS NOT NULL`,
    ],
  },
  {
    id: '213-outbound-content',
    up: [
      'ALTER TABLE outbound_message ADD COLUMN subject TEXT',
      'ALTER TABLE outbound_message ADD COLUMN reply_to TEXT',
      'ALTER TABLE outbound_message ADD COLUMN edits_id TEXT',
      'ALTER TABLE outbound_message ADD COLUMN buttons_json TEXT',
      'ALTER TABLE outbound_message ADD COLUMN file_json TEXT',
      'ALTER TABLE outbound_message ADD COLUMN ambiguous_since_ms INTEGER',
      'ALTER TABLE outbound_message ADD COLUMN begun_at_ms INTEGER',
    ],
  },
  {
    id: '232-outbound-lanes',
    up: [
      'DROP INDEX outbound_message_open',
      `CREATE INDEX outbound_message_open ON outbound_message (instance, conversation_id, thread_id, id) WHERE state IN ('pending', 'sending')`,
    ],
  },
  {
    id: '241-removed-people',
    up: [
      `CREATE TABLE channel_removed (
        instance TEXT NOT NULL,
        channel_type TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        at_ms INTEGER NOT NULL,
        PRIMARY KEY (instance, channel_type, conversation_id)
      )`,
    ],
  },
  { id: '250-outbound-repeats', up: ['ALTER TABLE outbound_message ADD COLUMN repeats INTEGER NOT NULL DEFAULT 0'] },
  {
    id: '300-quiet-hours',
    up: [
      'ALTER TABLE outbound_message ADD COLUMN unsolicited TEXT',
      `CREATE INDEX outbound_message_held ON outbound_message (instance, id) WHERE state = 'held'`,
      // Held notifications were released by their own rows.
      `UPDATE outbound_message SET error_kind = 'quiet_hours', unsolicited = 'notification'
        WHERE state = 'held' AND op_key IN (SELECT op_key FROM channel_notification WHERE state = 'held')`,
      `UPDATE channel_notification SET state = 'open' WHERE state = 'held'`,
    ],
  },
];
