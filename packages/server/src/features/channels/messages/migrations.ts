import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const channelMessageMigrations: readonly Migration[] = [
  {
    id: '210-channel-messages',
    up: [
      `CREATE TABLE channel_message (
        id TEXT PRIMARY KEY,
        instance TEXT NOT NULL,
        channel_type TEXT NOT NULL,
        event_key TEXT,
        conversation_id TEXT NOT NULL,
        thread_id TEXT,
        conversation_kind TEXT NOT NULL,
        sender_id TEXT NOT NULL,
        sender_name TEXT NOT NULL,
        text TEXT NOT NULL,
        verdict TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        conversation_ref TEXT,
        sent_at_ms INTEGER NOT NULL,
        received_at_ms INTEGER NOT NULL
      )`,
      `CREATE UNIQUE INDEX channel_message_by_event ON channel_message (instance, event_key) WHERE event_key IS NOT NULL`,
      `CREATE INDEX channel_message_by_conversation ON channel_message (conversation_ref) WHERE conversation_ref IS NOT NULL`,
      `CREATE TABLE channel_pairing (
        id TEXT PRIMARY KEY,
        instance TEXT NOT NULL,
        channel_type TEXT NOT NULL,
        sender_id TEXT NOT NULL,
        sender_name TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        code_mac TEXT,
        person TEXT,
        principal_id TEXT,
        requested_at_ms INTEGER NOT NULL,
        expires_at_ms INTEGER,
        UNIQUE (instance, sender_id)
      )`,
    ],
  },
  {
    id: '212-channel-cursors',
    up: [
      'ALTER TABLE channel_message ADD COLUMN platform_id TEXT',
      'ALTER TABLE channel_message ADD COLUMN subject TEXT',
      'ALTER TABLE channel_message ADD COLUMN attachments_json TEXT',
      'ALTER TABLE channel_message ADD COLUMN files_json TEXT',
      'ALTER TABLE channel_message ADD COLUMN preview_id TEXT',
      'ALTER TABLE channel_message ADD COLUMN changed_text TEXT',
      'CREATE INDEX channel_message_changed ON channel_message (conversation_ref) WHERE changed_text IS NOT NULL',
      `CREATE INDEX channel_message_by_platform_id ON channel_message (instance, conversation_id, platform_id) WHERE platform_id IS NOT NULL`,
      'CREATE TABLE channel_cursor (instance TEXT PRIMARY KEY, cursor TEXT NOT NULL, at_ms INTEGER NOT NULL)',
    ],
  },
  { id: '214-forwarded-messages', up: ['ALTER TABLE channel_message ADD COLUMN is_forwarded INTEGER NOT NULL DEFAULT 0'] },
  {
    id: '240-channel-agents',
    up: [
      'ALTER TABLE channel_message ADD COLUMN is_bot INTEGER NOT NULL DEFAULT 0',
      // The newest of a conversation are read.
      'DROP INDEX channel_message_by_conversation',
      `CREATE INDEX channel_message_by_conversation ON channel_message (conversation_ref, id) WHERE conversation_ref IS NOT NULL`,
      `CREATE TABLE channel_agent (
        instance TEXT NOT NULL,
        channel_type TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        thread_id TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        at_ms INTEGER NOT NULL,
        PRIMARY KEY (instance, channel_type, conversation_id, thread_id)
      )`,
    ],
  },
  {
    id: '451-direct-messages',
    up: [`CREATE INDEX channel_message_direct ON channel_message (instance, sender_id, id) WHERE conversation_kind = 'direct' and verdict = 'turn'`],
  },
];
