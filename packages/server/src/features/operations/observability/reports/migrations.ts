import type {} from './tables.ts';
import type { Migration } from '../../../../kernel/db/operation.ts';

export const reportMigrations: readonly Migration[] = [
  {
    id: '185-obs-resets',
    // Views begin after their last reset; what they sum up belongs to others too, and stays.
    up: [`CREATE TABLE obs_reset (name TEXT PRIMARY KEY, at_ms INTEGER NOT NULL, up_to INTEGER NOT NULL)`],
  },
  {
    id: '186-channel-activity',
    database: 'telemetry',
    up: [
      `CREATE TABLE channel_activity (
        channel_type TEXT NOT NULL,
        channel_id TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        last_active_at_ms INTEGER NOT NULL,
        messages_sent INTEGER NOT NULL,
        messages_received INTEGER NOT NULL,
        PRIMARY KEY (channel_type, channel_id, agent_id)
      ) WITHOUT ROWID`,
    ],
  },
];
