import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const autonomyMigrations: readonly Migration[] = [
  {
    id: '040-autonomy',
    up: [
      // `open_*` and the counts are pieces of work by their kind; `ended_*` is what they cost, `spent_*` all that the root spent
      // as it was last told by the process.
      `CREATE TABLE root_run (
        id TEXT PRIMARY KEY,
        agent_id TEXT NOT NULL,
        principal_id TEXT NOT NULL,
        conversation_ref TEXT,
        origin TEXT NOT NULL,
        profile TEXT NOT NULL,
        evicted INTEGER NOT NULL,
        state TEXT NOT NULL,
        open_runs INTEGER NOT NULL,
        open_graphs INTEGER NOT NULL,
        open_scripts INTEGER NOT NULL,
        completed_runs INTEGER NOT NULL,
        failed_runs INTEGER NOT NULL,
        graphs INTEGER NOT NULL,
        completions INTEGER NOT NULL,
        ended_tokens INTEGER NOT NULL,
        ended_nano INTEGER NOT NULL,
        spent_tokens INTEGER NOT NULL,
        spent_nano INTEGER NOT NULL,
        unpriced INTEGER NOT NULL,
        started_at_ms INTEGER NOT NULL,
        heartbeat_at_ms INTEGER NOT NULL,
        ended_at_ms INTEGER
      ) WITHOUT ROWID`,
      `CREATE INDEX root_run_by_start ON root_run (started_at_ms)`,
      `CREATE INDEX root_run_by_principal ON root_run (principal_id, started_at_ms)`,
      `CREATE INDEX root_run_active ON root_run (state) WHERE state = 'active'`,
      `CREATE INDEX root_run_by_end ON root_run (ended_at_ms) WHERE ended_at_ms IS NOT NULL`,
      `CREATE TABLE lease (
        id TEXT PRIMARY KEY,
        root_run_id TEXT NOT NULL,
        parent_lease_id TEXT,
        run_id TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        principal_id TEXT NOT NULL,
        caps TEXT NOT NULL,
        bearer_digest TEXT UNIQUE,
        issued_at_ms INTEGER NOT NULL,
        expires_at_ms INTEGER NOT NULL,
        ended_at_ms INTEGER,
        revoked INTEGER NOT NULL
      ) WITHOUT ROWID`,
      `CREATE INDEX lease_by_root ON lease (root_run_id)`,
      `CREATE INDEX lease_by_parent ON lease (parent_lease_id) WHERE parent_lease_id IS NOT NULL`,
      `CREATE INDEX lease_by_end ON lease (ended_at_ms) WHERE ended_at_ms IS NOT NULL`,
    ],
  },
  { id: '117-root-run-cause', up: [`ALTER TABLE root_run ADD COLUMN cause TEXT`] },
  { id: '119-root-active', up: [`ALTER TABLE root_run ADD COLUMN active_ms INTEGER NOT NULL DEFAULT 0`] },
  { id: '142-lease-boots', up: [`ALTER TABLE lease ADD COLUMN boot_id TEXT NOT NULL DEFAULT ''`] },
  // SQLite kept fractions; PostgreSQL refuses them, also in an import.
  { id: '165-whole-active', up: [`UPDATE root_run SET active_ms = round(active_ms) WHERE active_ms <> round(active_ms)`] },
];
