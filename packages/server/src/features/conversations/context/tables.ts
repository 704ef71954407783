import type { Generated } from 'kysely';
import type { SummaryNode } from './store.ts';

/** Rows of `summary`. */
interface SummaryTable {
  readonly id: string;
  readonly conversationId: number;
  readonly kind: SummaryNode['kind'];
  readonly depth: number;
  readonly fromSeq: number;
  readonly toSeq: number;
  readonly tokenCount: number;
  readonly content: string;
  readonly taint: SummaryNode['taint'];
  readonly model: string;
  readonly stopgap: SummaryNode['stopgap'];
  readonly parentId: string | null;
  readonly createdAtMs: number;
}

/** Rows of `context_state`. */
interface ContextStateTable {
  readonly conversationId: Generated<number>;
  readonly cutSeq: number;
  readonly prefix: string;
  readonly prefixTokens: number;
  readonly behind: number;
  readonly updatedAtMs: number;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly summary: SummaryTable;
    readonly contextState: ContextStateTable;
  }
}
