import type { RunRow } from '../run/row.ts';

/** Marks results of runs as text from outside; clean when no run has read such text. */
export const outsideOf = (rows: readonly Pick<RunRow, 'tainted'>[]) => ({
  source: 'sub-agent',
  clean: rows.every(({ tainted }) => tainted === 0),
});
