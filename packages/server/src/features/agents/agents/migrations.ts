import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const agentMigrations: readonly Migration[] = [
  {
    id: '012-agents',
    up: [
      `CREATE TABLE agent (
        id TEXT PRIMARY KEY,
        source TEXT NOT NULL,
        config_json TEXT NOT NULL,
        suspended INTEGER NOT NULL,
        created_at_ms INTEGER NOT NULL,
        updated_at_ms INTEGER NOT NULL
      ) WITHOUT ROWID`,
    ],
  },
];
