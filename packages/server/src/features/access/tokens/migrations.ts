import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const tokenMigrations: readonly Migration[] = [
  {
    id: '013-tokens',
    up: [
      `CREATE TABLE token (
        id TEXT PRIMARY KEY,
        digest TEXT NOT NULL UNIQUE,
        scopes_json TEXT NOT NULL,
        agents_json TEXT,
        created_at_ms INTEGER NOT NULL,
        expires_at_ms INTEGER
      ) WITHOUT ROWID`,
      // Apart from the tokens themselves, because those of config.yaml have no row there.
      `CREATE TABLE token_use (
        token_id TEXT PRIMARY KEY,
        last_used_at_ms INTEGER NOT NULL
      ) WITHOUT ROWID`,
    ],
  },
  {
    id: '070-token-compat',
    up: ['ALTER TABLE token ADD COLUMN compat_json TEXT'],
  },
];
