import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const graphMigrations: readonly Migration[] = [
  {
    id: '042-graph',
    up: [
      // A graph that was loaded and not started has the state `pending`.
      `CREATE TABLE graph_run (
        id TEXT PRIMARY KEY,
        principal_id TEXT NOT NULL,
        token_id TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        label TEXT,
        definition_json TEXT NOT NULL,
        variables_json TEXT NOT NULL,
        node_count INTEGER NOT NULL,
        root_run_id TEXT,
        requester_json TEXT,
        by_agent INTEGER NOT NULL,
        announce_json TEXT NOT NULL,
        node_progress INTEGER NOT NULL,
        work_id TEXT,
        state TEXT NOT NULL,
        cancel_reason TEXT,
        created_at_ms INTEGER NOT NULL,
        started_at_ms INTEGER,
        ended_at_ms INTEGER
      ) WITHOUT ROWID`,
      `CREATE INDEX graph_run_by_owner ON graph_run (principal_id, id)`,
      `CREATE INDEX graph_run_by_label ON graph_run (label, id) WHERE label IS NOT NULL`,
      `CREATE INDEX graph_run_open ON graph_run (root_run_id) WHERE state = 'running'`,
      `CREATE INDEX graph_run_by_end ON graph_run (ended_at_ms) WHERE ended_at_ms IS NOT NULL`,
      `CREATE INDEX graph_run_loaded ON graph_run (principal_id, created_at_ms) WHERE state = 'pending'`,
      `CREATE TABLE graph_node (
        graph_id TEXT NOT NULL,
        node_id TEXT NOT NULL,
        place INTEGER NOT NULL,
        state TEXT NOT NULL,
        attempt INTEGER NOT NULL,
        run_id TEXT,
        steps_json TEXT NOT NULL,
        output TEXT,
        error TEXT,
        partial INTEGER NOT NULL,
        answer TEXT,
        answer_text TEXT,
        tokens INTEGER NOT NULL,
        cost_nano INTEGER NOT NULL,
        unpriced INTEGER NOT NULL,
        started_at_ms INTEGER,
        deadline_ms INTEGER,
        ended_at_ms INTEGER,
        PRIMARY KEY (graph_id, node_id)
      ) WITHOUT ROWID`,
      `CREATE TABLE saved_graph (
        id TEXT PRIMARY KEY,
        principal_id TEXT NOT NULL,
        agent_id TEXT,
        label TEXT NOT NULL,
        definition_json TEXT NOT NULL,
        node_count INTEGER NOT NULL,
        created_at_ms INTEGER NOT NULL,
        updated_at_ms INTEGER NOT NULL
      ) WITHOUT ROWID`,
      `CREATE INDEX saved_graph_by_owner ON saved_graph (principal_id, label)`,
    ],
  },
  { id: '052-graph-waited', up: [`ALTER TABLE graph_run ADD COLUMN waited_ms INTEGER NOT NULL DEFAULT 0`] },
  // What ran before provenance was known counts as text from outside.
  { id: '063-graph-node-taint', up: [`ALTER TABLE graph_node ADD COLUMN tainted INTEGER NOT NULL DEFAULT 1`] },
  { id: '116-graph-node-cause', up: [`ALTER TABLE graph_node ADD COLUMN cause TEXT`] },
  { id: '128-graph-refused-effects', up: [`ALTER TABLE graph_node ADD COLUMN effects_refused INTEGER NOT NULL DEFAULT 0`] },
  { id: '412-graph-run-times', up: [`CREATE INDEX graph_run_by_start ON graph_run (created_at_ms, id)`] },
  { id: '470-node-summaries', up: [`ALTER TABLE graph_node ADD COLUMN summary TEXT`] },
];
