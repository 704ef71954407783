import type { AgentRow } from './store.ts';

/** Rows of `agent`. */
interface AgentTable {
  readonly id: string;
  readonly source: AgentRow['source'];
  readonly configJson: string;
  readonly suspended: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly agent: AgentTable;
  }
}
