import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

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
  // With its rows in the tree of row ids, which only grows at its end, an intake writes a third fewer pages than in one of ids with wide rows.
  {
    id: '047-work-rows',
    up: [
      `CREATE TABLE work_item_new (
        id TEXT NOT NULL PRIMARY KEY,
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
      )`,
      `INSERT INTO work_item_new SELECT id, kind, work_key, digest, agent_id, payload_json, state, owner, fence, lease_until_ms, attempts, resumes,
        not_before_ms, result_json, error_kind, created_at_ms, started_at_ms, ended_at_ms FROM work_item`,
      `DROP TABLE work_item`,
      `ALTER TABLE work_item_new RENAME TO work_item`,
      `CREATE UNIQUE INDEX work_item_by_key ON work_item (kind, work_key)`,
      `CREATE INDEX work_item_waiting ON work_item (kind, not_before_ms) WHERE state = 'accepted'`,
      `CREATE INDEX work_item_running ON work_item (kind, lease_until_ms) WHERE state = 'running'`,
      `CREATE INDEX work_item_by_end ON work_item (ended_at_ms) WHERE ended_at_ms IS NOT NULL`,
    ],
  },
  {
    id: '050-work-waiting',
    up: [
      `ALTER TABLE work_item ADD COLUMN waiting_json TEXT`,
      `CREATE INDEX work_item_waiting_for ON work_item (json_extract(waiting_json, '$.kind'), json_extract(waiting_json, '$.subject'))
        WHERE waiting_json IS NOT NULL`,
    ],
    postgres: [
      `ALTER TABLE work_item ADD COLUMN waiting_json TEXT`,
      `CREATE INDEX work_item_waiting_for ON work_item ((waiting_json::json ->> 'kind'), (waiting_json::json ->> 'subject'))
        WHERE waiting_json IS NOT NULL`,
    ],
  },
];
