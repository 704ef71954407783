import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const responseMigrations: readonly Migration[] = [
  {
    id: '016-responses',
    up: [
      `CREATE TABLE response (
        id TEXT PRIMARY KEY,
        previous_id TEXT,
        principal_id TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        body_json TEXT NOT NULL,
        system_json TEXT NOT NULL,
        messages_json TEXT NOT NULL,
        created_at_ms INTEGER NOT NULL,
        expires_at_ms INTEGER NOT NULL
      ) WITHOUT ROWID`,
      `CREATE INDEX response_by_expiry ON response (expires_at_ms)`,
    ],
  },
  { id: '075-response-input', up: [`ALTER TABLE response ADD COLUMN input_json TEXT`] },
];
