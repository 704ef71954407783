import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const sessionSendMigrations: readonly Migration[] = [
  {
    id: '043-session-send',
    up: [
      `CREATE TABLE session_send (
        id TEXT PRIMARY KEY,
        mode TEXT NOT NULL,
        by_agent INTEGER NOT NULL,
        from_ref TEXT,
        from_session_key TEXT,
        from_agent_id TEXT,
        to_ref TEXT NOT NULL,
        to_session_key TEXT NOT NULL,
        to_agent_id TEXT NOT NULL,
        to_principal_id TEXT NOT NULL,
        principal_id TEXT NOT NULL,
        token_id TEXT NOT NULL,
        authority TEXT NOT NULL,
        root_run_id TEXT,
        bounds_json TEXT,
        text TEXT NOT NULL,
        max_turns INTEGER NOT NULL,
        trace_id TEXT NOT NULL,
        state TEXT NOT NULL,
        leg INTEGER NOT NULL,
        response TEXT,
        error_kind TEXT,
        tokens INTEGER NOT NULL,
        cost_nano INTEGER,
        announced INTEGER NOT NULL,
        created_at_ms INTEGER NOT NULL,
        ended_at_ms INTEGER
      ) WITHOUT ROWID`,
      `CREATE INDEX session_send_by_end ON session_send (ended_at_ms) WHERE ended_at_ms IS NOT NULL`,
      `CREATE INDEX session_send_open ON session_send (root_run_id) WHERE ended_at_ms IS NULL AND root_run_id IS NOT NULL`,
    ],
  },
  // What was sent before provenance was known counts as text from outside.
  { id: '064-session-send-taint', up: [`ALTER TABLE session_send ADD COLUMN tainted INTEGER NOT NULL DEFAULT 1`] },
  { id: '320-session-send-chat', up: [`ALTER TABLE session_send ADD COLUMN chat_json TEXT`] },
];
