import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const workspaceMigrations: readonly Migration[] = [
  {
    id: '065-file-taint',
    up: [
      // A file without a row is the owner's, or was written by a turn that had read nothing from outside.
      `CREATE TABLE file_taint (
        agent_id TEXT NOT NULL,
        path TEXT NOT NULL,
        name TEXT NOT NULL,
        tree INTEGER NOT NULL,
        tainted INTEGER NOT NULL,
        digest TEXT,
        PRIMARY KEY (agent_id, path)
      ) WITHOUT ROWID`,
      `CREATE INDEX file_taint_by_digest ON file_taint (agent_id, digest) WHERE tainted = 1`,
      `CREATE TABLE file_taint_window (
        id TEXT PRIMARY KEY,
        agent_id TEXT NOT NULL,
        since_ms REAL NOT NULL
      ) WITHOUT ROWID`,
    ],
  },
  {
    id: '124-file-taint-content',
    up: [
      // Outlives the files, so that what was moved or copied from elsewhere is known again.
      `CREATE TABLE file_taint_content (
        agent_id TEXT NOT NULL,
        digest TEXT NOT NULL,
        seen_ms INTEGER NOT NULL,
        PRIMARY KEY (agent_id, digest)
      ) WITHOUT ROWID`,
      `CREATE INDEX file_taint_content_by_time ON file_taint_content (agent_id, seen_ms)`,
      `INSERT INTO file_taint_content SELECT DISTINCT agent_id, digest, 0 FROM file_taint WHERE tainted = 1 AND digest IS NOT NULL`,
      `DROP INDEX file_taint_by_digest`,
    ],
  },
  { id: '144-taint-window-boots', up: [`ALTER TABLE file_taint_window ADD COLUMN boot_id TEXT NOT NULL DEFAULT ''`] },
];
