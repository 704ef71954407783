import type { Generated } from 'kysely';

/** Rows of `age_clock`. */
interface AgeClockTable {
  readonly id: Generated<number>;
  readonly atMs: number;
  readonly doubtedMs: number;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly ageClock: AgeClockTable;
  }
}
