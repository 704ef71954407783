import type { Migration } from '../../kernel/db/operation.ts';

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
];
