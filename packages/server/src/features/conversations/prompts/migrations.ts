import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const promptMigrations: readonly Migration[] = [
  {
    id: '392-saved-prompts',
    up: [
      `CREATE TABLE saved_prompt (
        principal_id TEXT NOT NULL,
        name TEXT NOT NULL,
        text TEXT NOT NULL,
        updated_at_ms INTEGER NOT NULL,
        PRIMARY KEY (principal_id, name)
      ) WITHOUT ROWID`,
    ],
  },
];
