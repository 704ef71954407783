import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const cronMigrations: readonly Migration[] = [
  {
    id: '032-cron',
    up: [
      `CREATE TABLE cron_store (
        agent_id TEXT PRIMARY KEY,
        seed TEXT NOT NULL,
        format_version INTEGER NOT NULL,
        created_at_ms INTEGER NOT NULL
      ) WITHOUT ROWID`,
      `CREATE TABLE cron_job (
        id TEXT PRIMARY KEY,
        agent_id TEXT NOT NULL,
        name TEXT NOT NULL,
        source TEXT NOT NULL,
        principal_id TEXT NOT NULL,
        token_id TEXT NOT NULL,
        schedule_json TEXT NOT NULL,
        payload_json TEXT NOT NULL,
        policies_json TEXT NOT NULL,
        state TEXT NOT NULL,
        pause_reason TEXT,
        next_run_at_ms INTEGER,
        due_at_ms INTEGER,
        high_water_ms INTEGER NOT NULL,
        errors INTEGER NOT NULL,
        active_execution_id TEXT,
        claimed_for_ms INTEGER,
        claimed_at_ms INTEGER,
        ended_at_ms INTEGER,
        revision INTEGER NOT NULL,
        created_at_ms INTEGER NOT NULL
      ) WITHOUT ROWID`,
      `CREATE UNIQUE INDEX cron_job_by_name ON cron_job (name, agent_id, principal_id)`,
      `CREATE INDEX cron_job_by_agent ON cron_job (agent_id, name)`,
      `CREATE INDEX cron_job_due ON cron_job (due_at_ms, agent_id) WHERE state = 'scheduled' AND active_execution_id IS NULL AND due_at_ms IS NOT NULL`,
      `CREATE INDEX cron_job_ended ON cron_job (ended_at_ms) WHERE ended_at_ms IS NOT NULL`,
      // An occurrence of the clock has the empty class, one made by hand its own: so each time of a job is claimed once.
      `CREATE TABLE cron_occurrence (
        seq INTEGER PRIMARY KEY,
        execution_id TEXT NOT NULL UNIQUE,
        job_id TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        principal_id TEXT NOT NULL,
        scheduled_for_ms INTEGER NOT NULL,
        trigger_class TEXT NOT NULL,
        trigger_kind TEXT NOT NULL,
        work_kind TEXT NOT NULL,
        boot_id TEXT NOT NULL,
        status TEXT NOT NULL,
        delivery_status TEXT NOT NULL,
        started_at_ms INTEGER NOT NULL,
        terminal_at_ms INTEGER,
        error_kind TEXT,
        reason TEXT,
        counters_json TEXT,
        gate_json TEXT,
        UNIQUE (job_id, scheduled_for_ms, trigger_class)
      )`,
      `CREATE INDEX cron_occurrence_by_agent ON cron_occurrence (agent_id, seq)`,
      `CREATE INDEX cron_occurrence_by_job ON cron_occurrence (job_id, seq)`,
      `CREATE INDEX cron_occurrence_open ON cron_occurrence (job_id) WHERE terminal_at_ms IS NULL`,
      `CREATE TABLE cron_intent (
        agent_id TEXT PRIMARY KEY,
        operation_id TEXT NOT NULL,
        target TEXT NOT NULL,
        phase TEXT NOT NULL,
        before_json TEXT NOT NULL,
        after_json TEXT,
        created_at_ms INTEGER NOT NULL
      ) WITHOUT ROWID`,
      `CREATE TABLE cron_archive (
        operation_id TEXT NOT NULL,
        part TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        digest TEXT NOT NULL,
        bytes INTEGER NOT NULL,
        content TEXT NOT NULL,
        archived_at_ms INTEGER NOT NULL,
        PRIMARY KEY (operation_id, part)
      ) WITHOUT ROWID`,
    ],
  },
  { id: '045-cron-by-agent', up: [`ALTER TABLE cron_job ADD COLUMN by_agent INTEGER NOT NULL DEFAULT 0`] },
  { id: '051-cron-cause', up: [`ALTER TABLE cron_occurrence ADD COLUMN cause TEXT`] },
  { id: '127-cron-refused-effects', up: [`ALTER TABLE cron_occurrence ADD COLUMN effects_refused INTEGER NOT NULL DEFAULT 0`] },
  { id: '146-reset-boots', up: [`ALTER TABLE cron_intent ADD COLUMN boot_id TEXT NOT NULL DEFAULT ''`] },
  {
    id: '410-cron-backfill',
    up: [
      `CREATE TABLE cron_backfill (
        job_id TEXT NOT NULL,
        scheduled_for_ms INTEGER NOT NULL,
        agent_id TEXT NOT NULL,
        requested_at_ms INTEGER NOT NULL,
        execution_id TEXT,
        PRIMARY KEY (job_id, scheduled_for_ms)
      ) WITHOUT ROWID`,
      `CREATE INDEX cron_backfill_by_execution ON cron_backfill (execution_id)`,
    ],
  },
  { id: '411-occurrence-times', up: [`CREATE INDEX cron_occurrence_by_start ON cron_occurrence (started_at_ms, execution_id)`] },
  { id: '450-cron-author', up: [`ALTER TABLE cron_job ADD COLUMN author_json TEXT`] },
];
