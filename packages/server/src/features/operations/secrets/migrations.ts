import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const secretMigrations: readonly Migration[] = [
  {
    id: '163-secrets',
    compatibleFrom: 160,
    up: [
      `CREATE TABLE secret (
        name TEXT PRIMARY KEY,
        sealed TEXT NOT NULL,
        provider TEXT,
        description TEXT,
        created_at_ms INTEGER NOT NULL,
        updated_at_ms INTEGER NOT NULL,
        last_used_at_ms INTEGER,
        usage_count INTEGER NOT NULL,
        expires_at_ms INTEGER
      ) WITHOUT ROWID`,
      // The writes of the last minute: the limit holds for the installation, also after a restart or a take-over.
      `CREATE TABLE secret_write (
        id TEXT PRIMARY KEY,
        at_ms INTEGER NOT NULL
      ) WITHOUT ROWID`,
    ],
  },
];
