import type { Migration } from '../../../kernel/db/operation.ts';

export const diagnosisMigrations: readonly Migration[] = [
  {
    id: '190-trace-search',
    database: 'telemetry',
    up: [
      `CREATE INDEX trace_record_by_message ON trace_record (message_id) WHERE message_id IS NOT NULL`,
      `CREATE INDEX trace_record_by_channel ON trace_record (channel_id, started_at_ms) WHERE channel_id IS NOT NULL`,
      `CREATE INDEX trace_record_by_session ON trace_record (session_key, started_at_ms) WHERE session_key IS NOT NULL`,
    ],
  },
];
