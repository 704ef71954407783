import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const traceMigrations: readonly Migration[] = [
  {
    id: '180-trace-records',
    database: 'telemetry',
    // Steps are one column: a row per step would cost more than the turn. No number is given twice: the marks of `obs.reset` compare them.
    up: [
      `CREATE TABLE trace_record (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL,
        kind TEXT NOT NULL,
        trace_id TEXT NOT NULL,
        root_run_id TEXT,
        parent_id TEXT,
        conversation_ref TEXT,
        session_key TEXT,
        agent_id TEXT,
        principal_id TEXT NOT NULL,
        origin TEXT,
        message_id TEXT,
        channel_type TEXT,
        channel_id TEXT,
        started_at_ms INTEGER NOT NULL,
        ended_at_ms INTEGER NOT NULL,
        outcome TEXT NOT NULL,
        end_reason TEXT,
        error_kind TEXT,
        model TEXT,
        model_calls INTEGER NOT NULL,
        tool_calls INTEGER NOT NULL,
        tool_errors INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cache_read_tokens INTEGER NOT NULL,
        cache_write_tokens INTEGER NOT NULL,
        cost_nano INTEGER,
        synthetic INTEGER NOT NULL,
        detail_json TEXT NOT NULL
      )`,
      `CREATE UNIQUE INDEX trace_record_by_id ON trace_record (id)`,
      `CREATE INDEX trace_record_by_trace ON trace_record (trace_id)`,
      // Holds all that statistics of deliveries need: the rows have kilobytes of steps.
      `CREATE INDEX trace_record_by_time ON trace_record
        (started_at_ms, seq, kind, origin, outcome, end_reason, error_kind, ended_at_ms, synthetic, agent_id)`,
      `CREATE INDEX trace_record_by_conversation ON trace_record (conversation_ref, started_at_ms) WHERE conversation_ref IS NOT NULL`,
      `CREATE INDEX trace_record_by_root ON trace_record (root_run_id) WHERE root_run_id IS NOT NULL`,
      `CREATE INDEX trace_record_by_session ON trace_record (session_key, started_at_ms) WHERE session_key IS NOT NULL`,
      `CREATE INDEX trace_record_by_message ON trace_record (message_id) WHERE message_id IS NOT NULL`,
      `CREATE INDEX trace_record_by_channel ON trace_record (channel_id, started_at_ms) WHERE channel_id IS NOT NULL`,
    ],
  },
  {
    id: '181-trace-batches',
    database: 'telemetry',
    // What turns hand over, before it becomes rows: a row with its indexes costs a fifth of a turn, a line of a batch next to nothing.
    up: [`CREATE TABLE trace_batch (seq INTEGER PRIMARY KEY, records TEXT NOT NULL)`],
  },
  {
    id: '282-trace-parents',
    database: 'telemetry',
    // Few records have a parent: deliveries of an answer, and what ended a root run.
    up: [`CREATE INDEX trace_record_by_parent ON trace_record (parent_id, started_at_ms) WHERE parent_id IS NOT NULL`],
  },
  {
    id: '430-traces-by-message',
    database: 'telemetry',
    // The id of a message is that of its turn with a prefix, so that the index by id finds it.
    up: [`DROP INDEX trace_record_by_message`],
  },
];
