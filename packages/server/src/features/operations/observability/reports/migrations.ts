import type {} from './tables.ts';
import type { Migration } from '../../../../kernel/db/operation.ts';

export const reportMigrations: readonly Migration[] = [
  {
    id: '185-obs-resets',
    // Views begin after their last reset; what they sum up belongs to others too, and stays.
    up: [`CREATE TABLE obs_reset (name TEXT PRIMARY KEY, at_ms INTEGER NOT NULL, up_to INTEGER NOT NULL)`],
  },
];
