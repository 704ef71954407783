import type { Migration } from '../../operation.ts';

export const rowsPerStep = 20_000;

/** Steps that take long enough to be killed in the middle. */
export const slowMigrations: readonly Migration[] = Array.from({ length: 12 }, (_, index) => {
  const table = `step_${String(index).padStart(2, '0')}`;
  return {
    id: `${String(index + 1).padStart(3, '0')}-slow`,
    up: [
      `CREATE TABLE ${table} (id INTEGER PRIMARY KEY, text TEXT NOT NULL)`,
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rowsPerStep / 2}) INSERT INTO ${table} SELECT i, 'row ' || i FROM n`,
      `INSERT INTO ${table} SELECT id + ${rowsPerStep / 2}, text FROM ${table}`,
    ],
  };
});
