import type {} from '../../../kernel/db/tables.ts';

/** Rows of `knowledge_file`: one file or page of a source of an agent. */
interface KnowledgeFileTable {
  readonly id: string;
  readonly agentId: string;
  /** Name of the source. */
  readonly source: string;
  /** The folder or address that the source had. */
  readonly place: string;
  /** Below the folder, or the address of the page. */
  readonly path: string;
  /** Changes whenever the file does. */
  readonly stamp: string;
  readonly digest: string;
  readonly sizeBytes: number;
  readonly passages: number;
  /** Why it has no text. */
  readonly problem: string | null;
  readonly indexedAtMs: number;
}
export type KnowledgeFileRow = KnowledgeFileTable;

/** Rows of `knowledge_passage`: where in the document an entry of the search index is from. */
interface KnowledgePassageTable {
  readonly memoryId: string;
  readonly fileId: string;
  readonly position: number;
  /** Number of the page, sheet or section, from 1. */
  readonly part: number;
  readonly label: string;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly knowledgeFile: KnowledgeFileTable;
    readonly knowledgePassage: KnowledgePassageTable;
  }
}
