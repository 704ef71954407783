import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const browserMigrations: readonly Migration[] = [
  {
    id: '310-browser-profiles',
    up: [
      `CREATE TABLE browser_profile (
        agent_id TEXT PRIMARY KEY,
        sealed TEXT NOT NULL,
        saved_at_ms INTEGER NOT NULL
      ) WITHOUT ROWID`,
    ],
  },
];
