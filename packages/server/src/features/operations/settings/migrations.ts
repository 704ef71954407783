import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const configVersionMigrations: readonly Migration[] = [
  {
    id: '162-config-versions',
    compatibleFrom: 160,
    up: [
      // One row per text that config.yaml had. Texts can hold secrets, and are sealed.
      `CREATE TABLE config_version (
        number INTEGER PRIMARY KEY,
        digest TEXT NOT NULL,
        sealed_text TEXT NOT NULL,
        at_ms INTEGER NOT NULL,
        principal_id TEXT NOT NULL,
        origin TEXT NOT NULL,
        summary TEXT NOT NULL,
        section TEXT,
        key TEXT,
        trace_id TEXT
      )`,
      // One row per home folder: the version that its file was written from, and the digest of the file.
      `CREATE TABLE config_file (
        home_id TEXT PRIMARY KEY,
        version INTEGER NOT NULL,
        digest TEXT NOT NULL
      ) WITHOUT ROWID`,
    ],
  },
];
