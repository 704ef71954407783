import type { Generated } from 'kysely';

/** Rows of `file_taint`. */
interface FileTaintTable {
  readonly agentId: string;
  readonly path: string;
  readonly name: string;
  readonly tree: 0 | 1;
  readonly tainted: 0 | 1;
  readonly digest: string | null;
}

/** Rows of `file_taint_window`. */
interface FileTaintWindowTable {
  readonly id: string;
  readonly agentId: string;
  readonly sinceMs: number;
  readonly bootId: Generated<string>;
}

/** Rows of `file_taint_content`. */
interface FileTaintContentTable {
  readonly agentId: string;
  readonly digest: string;
  readonly seenMs: number;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly fileTaintContent: FileTaintContentTable;
    readonly fileTaint: FileTaintTable;
    readonly fileTaintWindow: FileTaintWindowTable;
  }
}
