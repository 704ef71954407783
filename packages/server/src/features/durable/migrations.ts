import type { Migration } from '../../kernel/db/operation.ts';

export const durableMigrations: readonly Migration[] = [
  {
    id: '030-work',
    up: [
      `CREATE TABLE work_item (
        id TEXT PRIMARY KEY,
        kind TEXT NOT NULL,
        work_key TEXT NOT NULL,
        digest TEXT NOT NULL,
        agent_id TEXT,
        payload_json TEXT NOT NULL,
        state TEXT NOT NULL,
        owner TEXT NOT NULL,
        fence INTEGER NOT NULL,
        lease_until_ms INTEGER NOT NULL,
        attempts INTEGER NOT NULL,
        resumes INTEGER NOT NULL,
        not_before_ms INTEGER NOT NULL,
        result_json TEXT,
        error_kind TEXT,
        created_at_ms INTEGER NOT NULL,
        started_at_ms INTEGER,
        ended_at_ms INTEGER
      ) WITHOUT ROWID`,
      `CREATE UNIQUE INDEX work_item_by_key ON work_item (kind, work_key)`,
      `CREATE INDEX work_item_waiting ON work_item (kind, not_before_ms) WHERE state = 'accepted'`,
      `CREATE INDEX work_item_running ON work_item (kind, lease_until_ms) WHERE state = 'running'`,
      `CREATE INDEX work_item_by_end ON work_item (ended_at_ms) WHERE ended_at_ms IS NOT NULL`,
    ],
  },
];
