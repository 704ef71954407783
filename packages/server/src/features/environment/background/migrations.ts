import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const backgroundMigrations: readonly Migration[] = [
  {
    id: '026-background-tasks',
    up: [
      `CREATE TABLE background_task (
        id TEXT PRIMARY KEY,
        agent_id TEXT NOT NULL,
        conversation_ref TEXT NOT NULL,
        session_key TEXT NOT NULL,
        principal_id TEXT NOT NULL,
        token_id TEXT NOT NULL,
        turn_id TEXT NOT NULL,
        trace_id TEXT NOT NULL,
        tool_name TEXT NOT NULL,
        description TEXT NOT NULL,
        begun_by TEXT NOT NULL,
        chain INTEGER NOT NULL,
        state TEXT NOT NULL,
        outcome TEXT,
        content TEXT,
        started_at_ms INTEGER NOT NULL,
        ended_at_ms INTEGER
      ) WITHOUT ROWID`,
      `CREATE INDEX background_task_by_conversation ON background_task (conversation_ref, started_at_ms)`,
      `CREATE INDEX background_task_open ON background_task (state) WHERE state <> 'told'`,
      `CREATE INDEX background_task_by_end ON background_task (ended_at_ms) WHERE state = 'told'`,
    ],
  },
  { id: '044-background-roots', up: [`ALTER TABLE background_task ADD COLUMN root_run_id TEXT`] },
  { id: '143-background-boots', up: [`ALTER TABLE background_task ADD COLUMN boot_id TEXT NOT NULL DEFAULT ''`] },
];
