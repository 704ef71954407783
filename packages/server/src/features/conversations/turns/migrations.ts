import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const turnMigrations: readonly Migration[] = [
  {
    id: '011-turns',
    up: [
      `CREATE TABLE turn (
        id TEXT PRIMARY KEY,
        conversation_ref TEXT NOT NULL,
        session_key TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        principal_id TEXT NOT NULL,
        origin TEXT NOT NULL,
        state TEXT NOT NULL,
        finish_reason TEXT,
        failure_kind TEXT,
        model TEXT,
        steps INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cost_nano INTEGER,
        trace_id TEXT NOT NULL,
        started_at_ms INTEGER NOT NULL,
        ended_at_ms INTEGER
      ) WITHOUT ROWID`,
      `CREATE INDEX turn_open ON turn (state) WHERE state IN ('accepted', 'running')`,
      `CREATE TABLE model_call (
        id INTEGER PRIMARY KEY,
        turn_id TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        principal_id TEXT NOT NULL,
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        operation TEXT NOT NULL,
        outcome TEXT NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cache_read_tokens INTEGER NOT NULL,
        cache_write_tokens INTEGER NOT NULL,
        estimated INTEGER NOT NULL,
        cost_nano INTEGER,
        saved_nano INTEGER,
        latency_ms INTEGER NOT NULL,
        response_id TEXT,
        at_ms INTEGER NOT NULL
      )`,
      `CREATE INDEX model_call_by_time ON model_call (at_ms)`,
    ],
  },
  {
    id: '022-turn-budgets',
    up: [`ALTER TABLE model_call ADD COLUMN conversation_ref TEXT`, `ALTER TABLE turn ADD COLUMN reserved_nano INTEGER`],
  },
  {
    id: '035-turn-ledger',
    up: [
      `CREATE TABLE durable_turn (
        work_id TEXT PRIMARY KEY,
        turn_id TEXT NOT NULL UNIQUE,
        resumes INTEGER NOT NULL,
        first_call_id INTEGER
      ) WITHOUT ROWID`,
      `CREATE TABLE turn_step (
        turn_id TEXT NOT NULL,
        step INTEGER NOT NULL,
        finished INTEGER NOT NULL,
        messages_json TEXT NOT NULL,
        PRIMARY KEY (turn_id, step)
      ) WITHOUT ROWID`,
      `CREATE TABLE turn_intent (
        op_key TEXT PRIMARY KEY,
        turn_id TEXT NOT NULL,
        step INTEGER NOT NULL,
        call_id TEXT NOT NULL,
        tool_name TEXT NOT NULL,
        result_json TEXT
      ) WITHOUT ROWID`,
      `CREATE INDEX turn_intent_by_turn ON turn_intent (turn_id)`,
    ],
  },
  { id: '060-turn-taint', up: [`ALTER TABLE durable_turn ADD COLUMN tainted INTEGER NOT NULL DEFAULT 0`] },
  { id: '125-refused-effects', up: [`ALTER TABLE durable_turn ADD COLUMN refused INTEGER NOT NULL DEFAULT 0`] },
  { id: '132-durable-question', up: [`ALTER TABLE durable_turn ADD COLUMN question TEXT`] },
  // Turns of earlier versions have no boot: they ended with their process.
  { id: '141-turn-boots', up: [`ALTER TABLE turn ADD COLUMN boot_id TEXT NOT NULL DEFAULT ''`] },
  {
    id: '415-turn-messages',
    up: [
      `CREATE TABLE turn_message (
        id TEXT PRIMARY KEY,
        turn_id TEXT NOT NULL,
        boot_id TEXT NOT NULL,
        conversation_ref TEXT NOT NULL,
        session_key TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        principal_id TEXT NOT NULL,
        text TEXT NOT NULL,
        at_ms INTEGER NOT NULL
      ) WITHOUT ROWID`,
    ],
  },
];
