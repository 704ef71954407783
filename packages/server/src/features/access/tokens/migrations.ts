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
  {
    id: '170-revoked-secrets',
    up: [
      // Secrets of files, which may come back with a copy or an earlier version of the file.
      `CREATE TABLE revoked_secret (
        digest TEXT PRIMARY KEY,
        token_id TEXT NOT NULL,
        at_ms INTEGER NOT NULL
      ) WITHOUT ROWID`,
    ],
  },
  {
    id: '171-persons',
    up: [
      'ALTER TABLE token ADD COLUMN person TEXT',
      'ALTER TABLE token ADD COLUMN limits_json TEXT',
      `CREATE TABLE person (
        name TEXT PRIMARY KEY,
        principal_id TEXT NOT NULL UNIQUE,
        created_at_ms INTEGER NOT NULL
      ) WITHOUT ROWID`,
    ],
  },
];
