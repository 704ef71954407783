import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const budgetMigrations: readonly Migration[] = [
  {
    id: '024-usage-slots',
    up: [
      // Calls of an hour together, for each principal and, under the principal '', for all of them.
      `CREATE TABLE usage_slot (
        principal_id TEXT NOT NULL,
        slot_ms INTEGER NOT NULL,
        agent_id TEXT NOT NULL,
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        operation TEXT NOT NULL,
        calls INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cache_read_tokens INTEGER NOT NULL,
        cache_write_tokens INTEGER NOT NULL,
        cost_nano INTEGER NOT NULL,
        saved_nano INTEGER NOT NULL,
        unpriced INTEGER NOT NULL,
        PRIMARY KEY (principal_id, slot_ms, agent_id, provider, model, operation)
      ) WITHOUT ROWID`,
      // Calls up to this id are in the slots; the later ones are read as they are.
      `CREATE TABLE usage_cursor (id INTEGER PRIMARY KEY CHECK (id = 1), call_id INTEGER NOT NULL)`,
      `INSERT INTO usage_cursor (id, call_id) VALUES (1, 0)`,
    ],
  },
  {
    id: '149-usage-marks',
    up: [
      `ALTER TABLE model_call ADD COLUMN rolled_up INTEGER NOT NULL DEFAULT 0`,
      `UPDATE model_call SET rolled_up = 1 WHERE id <= (SELECT call_id FROM usage_cursor)`,
      `DROP TABLE usage_cursor`,
      // One index for times and for what is not in the slots: a second one would be paid for by every turn.
      `DROP INDEX model_call_by_time`,
      `CREATE INDEX model_call_by_time ON model_call (rolled_up, at_ms)`,
    ],
  },
  {
    id: '200-usage-past',
    up: [
      // What deleted calls came to: of each quarter of an hour, as days of some time zones begin at one, and of each conversation ('': none).
      `CREATE TABLE usage_past (
        slot_ms INTEGER NOT NULL,
        conversation_ref TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        principal_id TEXT NOT NULL,
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        operation TEXT NOT NULL,
        calls INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cache_read_tokens INTEGER NOT NULL,
        cache_write_tokens INTEGER NOT NULL,
        cost_nano INTEGER NOT NULL,
        saved_nano INTEGER NOT NULL,
        unpriced INTEGER NOT NULL,
        PRIMARY KEY (slot_ms, conversation_ref, agent_id, principal_id, provider, model, operation)
      ) WITHOUT ROWID`,
    ],
  },
  {
    id: '202-usage-days',
    up: [
      // The slots of a day of UTC together: a report of a year reads few rows.
      `CREATE TABLE usage_day (
        principal_id TEXT NOT NULL,
        slot_ms INTEGER NOT NULL,
        agent_id TEXT NOT NULL,
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        operation TEXT NOT NULL,
        calls INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cache_read_tokens INTEGER NOT NULL,
        cache_write_tokens INTEGER NOT NULL,
        cost_nano INTEGER NOT NULL,
        saved_nano INTEGER NOT NULL,
        unpriced INTEGER NOT NULL,
        PRIMARY KEY (principal_id, slot_ms, agent_id, provider, model, operation)
      ) WITHOUT ROWID`,
      `INSERT INTO usage_day (principal_id, slot_ms, agent_id, provider, model, operation, calls, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_nano, saved_nano, unpriced)
        SELECT principal_id, slot_ms / 86400000 * 86400000, agent_id, provider, model, operation, sum(calls), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(cost_nano), sum(saved_nano), sum(unpriced)
        FROM usage_slot GROUP BY 1, 2, 3, 4, 5, 6`,
    ],
  },
  {
    id: '468-work-parts',
    up: [
      `CREATE TABLE work_part (
        work_id TEXT PRIMARY KEY,
        root_run_id TEXT,
        run_id TEXT,
        graph_id TEXT,
        node_id TEXT
      ) WITHOUT ROWID`,
    ],
  },
];
