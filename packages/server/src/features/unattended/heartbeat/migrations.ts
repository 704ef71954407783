import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const heartbeatMigrations: readonly Migration[] = [
  {
    id: '033-heartbeat',
    up: [
      `CREATE TABLE heartbeat_state (
        agent_id TEXT PRIMARY KEY,
        last_slot_ms INTEGER NOT NULL,
        last_run_at_ms INTEGER,
        consecutive_errors INTEGER NOT NULL,
        backoff_until_ms INTEGER,
        last_error_kind TEXT,
        last_alert_at_ms INTEGER,
        stopped_by TEXT,
        stopped_under TEXT
      ) WITHOUT ROWID`,
      `CREATE TABLE heartbeat_event (
        id INTEGER PRIMARY KEY,
        op_key TEXT NOT NULL UNIQUE,
        agent_id TEXT NOT NULL,
        text TEXT NOT NULL,
        source TEXT NOT NULL,
        urgent_reason TEXT,
        repeats INTEGER NOT NULL,
        work_id TEXT,
        created_at_ms INTEGER NOT NULL
      )`,
      `CREATE INDEX heartbeat_event_by_agent ON heartbeat_event (agent_id, id)`,
      `CREATE INDEX heartbeat_event_by_work ON heartbeat_event (work_id) WHERE work_id IS NOT NULL`,
      `CREATE TABLE heartbeat_beat (
        work_id TEXT PRIMARY KEY,
        agent_id TEXT NOT NULL,
        correlation_id TEXT NOT NULL,
        lane TEXT NOT NULL,
        reason TEXT NOT NULL,
        event_count INTEGER NOT NULL,
        started_at_ms INTEGER NOT NULL
      ) WITHOUT ROWID`,
      `CREATE TABLE heartbeat_told (
        agent_id TEXT NOT NULL,
        digest TEXT NOT NULL,
        at_ms INTEGER NOT NULL,
        PRIMARY KEY (agent_id, digest)
      ) WITHOUT ROWID`,
    ],
  },
  { id: '118-heartbeat-provenance', up: [`ALTER TABLE heartbeat_event ADD COLUMN tainted INTEGER NOT NULL DEFAULT 1`] },
  { id: '145-beat-boots', up: [`ALTER TABLE heartbeat_beat ADD COLUMN boot_id TEXT NOT NULL DEFAULT ''`] },
];
