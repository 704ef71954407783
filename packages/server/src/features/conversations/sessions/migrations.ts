import type {} from './tables.ts';
import { fullTextFunctions } from '../../../kernel/db/full-text.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const sessionMigrations: readonly Migration[] = [
  {
    id: '010-conversations',
    up: [
      `CREATE TABLE conversation (
        id INTEGER PRIMARY KEY,
        ref TEXT NOT NULL UNIQUE,
        tenant_id TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        principal_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        session_key TEXT NOT NULL,
        last_seq INTEGER NOT NULL,
        message_count INTEGER NOT NULL,
        turn_count INTEGER NOT NULL,
        step_count INTEGER NOT NULL,
        tool_call_count INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cost_nano INTEGER NOT NULL,
        created_at_ms INTEGER NOT NULL,
        updated_at_ms INTEGER NOT NULL
      )`,
      `CREATE INDEX conversation_by_agent ON conversation (tenant_id, agent_id, updated_at_ms)`,
      `CREATE INDEX conversation_by_key ON conversation (tenant_id, agent_id, session_key)`,
      `CREATE TABLE message (
        id INTEGER PRIMARY KEY,
        conversation_id INTEGER NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        turn_id TEXT NOT NULL,
        role TEXT NOT NULL,
        content TEXT NOT NULL,
        tool_json TEXT,
        created_at_ms INTEGER NOT NULL,
        UNIQUE (conversation_id, seq)
      )`,
      `CREATE TABLE session_archive (
        id TEXT PRIMARY KEY,
        ref TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        principal_id TEXT NOT NULL,
        session_key TEXT NOT NULL,
        metadata_json TEXT NOT NULL,
        messages_json TEXT NOT NULL,
        archived_at_ms INTEGER NOT NULL
      )`,
    ],
  },
  { id: '014-message-attachments', up: [`ALTER TABLE message ADD COLUMN attachments_json TEXT`] },
  {
    id: '018-conversation-search',
    up: [
      `ALTER TABLE conversation ADD COLUMN title TEXT`,
      `ALTER TABLE conversation ADD COLUMN forked_from TEXT`,
      `ALTER TABLE conversation ADD COLUMN reset_count INTEGER NOT NULL DEFAULT 0`,
      `ALTER TABLE conversation ADD COLUMN compaction_count INTEGER NOT NULL DEFAULT 0`,
      `ALTER TABLE conversation ADD COLUMN model_seq_floor INTEGER NOT NULL DEFAULT 0`,
      `UPDATE conversation SET kind = CASE WHEN session_key LIKE '%:%:%' THEN 'group' ELSE kind END,
        title = (SELECT nullif(substr(trim(replace(replace(content, char(13), ' '), char(10), ' ')), 1, 80), '')
          FROM message WHERE message.conversation_id = conversation.id AND message.seq = 1 AND message.role = 'user')`,
      // Both lists are counted and walked in these alone: newest first, the id of a row at their end.
      `DROP INDEX conversation_by_agent`,
      `CREATE INDEX conversation_by_time ON conversation (updated_at_ms, agent_id, kind)`,
      `CREATE INDEX conversation_by_principal ON conversation (principal_id, updated_at_ms, agent_id, kind)`,
      `CREATE VIRTUAL TABLE message_fts USING fts5(body, part, content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2')`,
      `CREATE TABLE message_index (id INTEGER PRIMARY KEY CHECK (id = 1), indexed_to INTEGER NOT NULL)`,
      `INSERT INTO message_index (id, indexed_to) VALUES (1, 0)`,
    ],
    // A new database holds no conversations to be changed.
    postgres: [
      ...fullTextFunctions,
      `ALTER TABLE conversation ADD COLUMN title TEXT, ADD COLUMN forked_from TEXT, ADD COLUMN reset_count BIGINT NOT NULL DEFAULT 0,
        ADD COLUMN compaction_count BIGINT NOT NULL DEFAULT 0, ADD COLUMN model_seq_floor BIGINT NOT NULL DEFAULT 0`,
      `DROP INDEX conversation_by_agent`,
      `CREATE INDEX conversation_by_time ON conversation (updated_at_ms, agent_id, kind)`,
      `CREATE INDEX conversation_by_principal ON conversation (principal_id, updated_at_ms, agent_id, kind)`,
      `CREATE TABLE message_fts (rowid BIGINT PRIMARY KEY, body TSVECTOR NOT NULL)`,
      `CREATE INDEX message_fts_by_word ON message_fts USING gin (body)`,
      `CREATE TABLE message_index (id BIGINT PRIMARY KEY CHECK (id = 1), indexed_to BIGINT NOT NULL)`,
      `INSERT INTO message_index (id, indexed_to) VALUES (1, 0)`,
    ],
  },
  {
    id: '061-conversation-taint',
    up: [
      `ALTER TABLE conversation ADD COLUMN taint INTEGER NOT NULL DEFAULT 0`,
      // What was read before provenance was known counts as text from outside.
      `UPDATE conversation SET taint = 2 WHERE EXISTS (SELECT 1 FROM message WHERE message.conversation_id = conversation.id
        AND (message.attachments_json IS NOT NULL OR instr(message.content, '<<<UNTRUSTED-TEXT ') > 0))`,
    ],
    postgres: [`ALTER TABLE conversation ADD COLUMN taint BIGINT NOT NULL DEFAULT 0`],
  },
  {
    id: '150-index-marks',
    up: [
      // The messages of a conversation up to this number are in the index of texts.
      `ALTER TABLE conversation ADD COLUMN indexed_seq INTEGER NOT NULL DEFAULT 0`,
      `UPDATE conversation SET indexed_seq = last_seq`,
      `UPDATE conversation SET indexed_seq = (SELECT min(seq) - 1 FROM message
          WHERE conversation_id = conversation.id AND id > (SELECT indexed_to FROM message_index))
        WHERE id IN (SELECT conversation_id FROM message WHERE id > (SELECT indexed_to FROM message_index))`,
      `DROP TABLE message_index`,
      `CREATE INDEX conversation_unindexed ON conversation (id) WHERE indexed_seq < last_seq`,
    ],
  },
  { id: '195-synthetic-conversations', up: [`ALTER TABLE conversation ADD COLUMN synthetic INTEGER NOT NULL DEFAULT 0`] },
  {
    id: '196-message-feedback',
    up: [
      // One for each answer; it is deleted with its conversation.
      `CREATE TABLE message_feedback (
        conversation_id INTEGER NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
        turn_id TEXT NOT NULL,
        seq INTEGER NOT NULL,
        rating TEXT NOT NULL,
        note TEXT,
        principal_id TEXT NOT NULL,
        at_ms INTEGER NOT NULL,
        PRIMARY KEY (conversation_id, turn_id)
      )`,
      `CREATE INDEX message_feedback_by_time ON message_feedback (rating, at_ms)`,
    ],
  },
  // Retention alone reads it.
  { id: '201-conversations-of-runs', up: [`CREATE INDEX conversation_of_runs ON conversation (updated_at_ms) WHERE kind = 'sub-agent'`] },
  {
    id: '360-conversation-labels',
    up: [
      // Given by a person or a model; the title is the beginning of the first message.
      `ALTER TABLE conversation ADD COLUMN name TEXT`,
      `ALTER TABLE conversation ADD COLUMN shelf TEXT NOT NULL DEFAULT 'list'`,
      `ALTER TABLE conversation ADD COLUMN source TEXT NOT NULL DEFAULT 'chat'`,
      `UPDATE conversation SET source = CASE WHEN session_key LIKE 'subagent:%' THEN 'sub-agent' WHEN session_key LIKE 'cron:%' THEN 'job'
        WHEN session_key LIKE 'heartbeat:%' THEN 'heartbeat' WHEN session_key LIKE 'gatehouse:evaluation:%' THEN 'evaluation' ELSE 'webhook' END
        WHERE session_key LIKE 'subagent:%' OR session_key LIKE 'cron:%' OR session_key LIKE 'heartbeat:%'
          OR session_key LIKE 'gatehouse:evaluation:%' OR (session_key LIKE '%:webhook:%' AND session_key NOT LIKE '%:%:webhook:%')`,
      // Lists are still counted and walked in these alone.
      `DROP INDEX conversation_by_time`,
      `DROP INDEX conversation_by_principal`,
      `CREATE INDEX conversation_by_time ON conversation (updated_at_ms, agent_id, kind, source, shelf)`,
      `CREATE INDEX conversation_by_principal ON conversation (principal_id, updated_at_ms, agent_id, kind, source, shelf)`,
    ],
  },
  {
    id: '390-conversation-tags',
    up: [
      `ALTER TABLE conversation ADD COLUMN tags TEXT NOT NULL DEFAULT ''`,
      `CREATE INDEX conversation_tagged ON conversation (principal_id, updated_at_ms) WHERE tags <> ''`,
    ],
  },
  // Reasoning that was streamed before an answer, for people who read it.
  { id: '391-message-reasoning', up: [`ALTER TABLE message ADD COLUMN reasoning_json TEXT`] },
  // Retention alone reads it.
  { id: '393-reasoning-times', up: [`CREATE INDEX message_reasoned ON message (created_at_ms) WHERE reasoning_json IS NOT NULL`] },
  // For administrators, who may read the tags of everybody.
  { id: '416-tagged-conversations', up: [`CREATE INDEX conversation_tagged_by_time ON conversation (updated_at_ms) WHERE tags <> ''`] },
  { id: '203-attached-media', up: [`CREATE INDEX message_attached ON message (id) WHERE attachments_json IS NOT NULL`] },
];
