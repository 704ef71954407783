import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const eventMigrations: readonly Migration[] = [
  {
    id: '017-events',
    database: 'telemetry',
    // One row holds what happened within a second or so: an insert per event would cost more than the event.
    up: [
      `CREATE TABLE event_batch (
        last_id INTEGER PRIMARY KEY,
        first_id INTEGER NOT NULL,
        at_ms INTEGER NOT NULL,
        count INTEGER NOT NULL,
        chars INTEGER NOT NULL,
        total_count INTEGER NOT NULL,
        total_chars INTEGER NOT NULL,
        ended INTEGER NOT NULL,
        heads TEXT NOT NULL,
        bodies TEXT NOT NULL
      )`,
    ],
  },
];
