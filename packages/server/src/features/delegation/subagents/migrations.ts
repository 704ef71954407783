import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const subagentMigrations: readonly Migration[] = [
  {
    id: '041-sub-agents',
    up: [
      // `announce_run_id` is the run whose end decides where this one is told: until then that run may look itself.
      `CREATE TABLE sub_agent_run (
        id TEXT PRIMARY KEY,
        root_run_id TEXT NOT NULL,
        lease_id TEXT NOT NULL,
        parent_run_id TEXT,
        depth INTEGER NOT NULL,
        agent_id TEXT NOT NULL,
        principal_id TEXT NOT NULL,
        token_id TEXT NOT NULL,
        requester_key TEXT NOT NULL,
        requester_ref TEXT,
        requester_agent_id TEXT,
        counted INTEGER NOT NULL,
        conversation_ref TEXT NOT NULL,
        session_key TEXT NOT NULL,
        task TEXT NOT NULL,
        options_json TEXT NOT NULL,
        graph_id TEXT,
        node_id TEXT,
        work_id TEXT NOT NULL,
        state TEXT NOT NULL,
        queued_at_ms INTEGER NOT NULL,
        started_at_ms INTEGER,
        active_at_ms INTEGER,
        ended_at_ms INTEGER,
        end_reason TEXT,
        error_kind TEXT,
        summary TEXT,
        result_text TEXT,
        result_ref_json TEXT,
        telemetry_json TEXT,
        announce_to TEXT NOT NULL,
        announce_ref TEXT,
        announce_target_json TEXT,
        announce_run_id TEXT,
        announce_work_id TEXT,
        announced TEXT NOT NULL,
        seen_turn_id TEXT,
        steered_at_ms INTEGER
      ) WITHOUT ROWID`,
      `CREATE INDEX sub_agent_run_open ON sub_agent_run (requester_key) WHERE ended_at_ms IS NULL`,
      `CREATE INDEX sub_agent_run_by_parent ON sub_agent_run (parent_run_id) WHERE parent_run_id IS NOT NULL`,
      `CREATE INDEX sub_agent_run_by_root ON sub_agent_run (root_run_id)`,
      `CREATE INDEX sub_agent_run_by_requester ON sub_agent_run (requester_ref) WHERE requester_ref IS NOT NULL`,
      `CREATE INDEX sub_agent_run_by_conversation ON sub_agent_run (conversation_ref)`,
      `CREATE INDEX sub_agent_run_by_principal ON sub_agent_run (principal_id, id)`,
      `CREATE INDEX sub_agent_run_by_end ON sub_agent_run (ended_at_ms) WHERE ended_at_ms IS NOT NULL`,
      `CREATE INDEX sub_agent_run_untold ON sub_agent_run (announce_ref) WHERE announced = 'pending'`,
      `CREATE INDEX sub_agent_run_waiting ON sub_agent_run (announce_run_id) WHERE announce_run_id IS NOT NULL`,
      `CREATE TABLE sub_agent_key (
        run_key TEXT PRIMARY KEY,
        digest TEXT NOT NULL,
        run_id TEXT NOT NULL,
        root_run_id TEXT NOT NULL,
        conversation_ref TEXT NOT NULL,
        at_ms INTEGER NOT NULL
      ) WITHOUT ROWID`,
      `CREATE INDEX sub_agent_key_by_time ON sub_agent_key (at_ms)`,
      `CREATE TABLE sub_agent_steer (
        id TEXT PRIMARY KEY,
        run_id TEXT NOT NULL,
        text TEXT NOT NULL,
        taken INTEGER NOT NULL,
        at_ms INTEGER NOT NULL
      ) WITHOUT ROWID`,
      `CREATE INDEX sub_agent_steer_by_run ON sub_agent_steer (run_id)`,
    ],
  },
  // What ran before provenance was known counts as text from outside.
  { id: '062-sub-agent-taint', up: [`ALTER TABLE sub_agent_run ADD COLUMN tainted INTEGER NOT NULL DEFAULT 1`] },
  { id: '115-sub-agent-cause', up: [`ALTER TABLE sub_agent_run ADD COLUMN cause TEXT`] },
  {
    id: '469-run-parts',
    up: ['part_tokens', 'part_nano', 'part_unpriced'].map((name) => `ALTER TABLE sub_agent_run ADD COLUMN ${name} INTEGER NOT NULL DEFAULT 0`),
  },
];
