import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const ageClockMigrations: readonly Migration[] = [
  {
    id: '131-age-clock',
    up: [
      `CREATE TABLE age_clock (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        at_ms INTEGER NOT NULL,
        doubted_ms INTEGER NOT NULL
      )`,
    ],
  },
];
