import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const contextMigrations: readonly Migration[] = [
  {
    id: '019-context',
    up: [
      `CREATE TABLE summary (
        id TEXT PRIMARY KEY,
        conversation_id INTEGER NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
        kind TEXT NOT NULL,
        depth INTEGER NOT NULL,
        from_seq INTEGER NOT NULL,
        to_seq INTEGER NOT NULL,
        token_count INTEGER NOT NULL,
        content TEXT NOT NULL,
        taint TEXT NOT NULL,
        model TEXT NOT NULL,
        stopgap INTEGER NOT NULL,
        parent_id TEXT,
        created_at_ms INTEGER NOT NULL
      )`,
      `CREATE INDEX summary_by_conversation ON summary (conversation_id, parent_id, from_seq)`,
      `CREATE TABLE context_state (
        conversation_id INTEGER PRIMARY KEY REFERENCES conversation (id) ON DELETE CASCADE,
        cut_seq INTEGER NOT NULL,
        prefix TEXT NOT NULL,
        prefix_tokens INTEGER NOT NULL,
        behind INTEGER NOT NULL,
        updated_at_ms INTEGER NOT NULL
      )`,
    ],
  },
];
