import type { Generated } from 'kysely';
import type { MemoryRow } from './entries/store.ts';

/** Rows of `memory`. */
interface MemoryTable {
  readonly seq: Generated<number>;
  readonly id: string;
  readonly tenantId: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly memoryType: MemoryRow['memoryType'];
  readonly trustLevel: MemoryRow['trustLevel'];
  readonly taintLevel: MemoryRow['taintLevel'];
  readonly sourceWho: string;
  readonly sourceChannel: string | null;
  readonly conversationRef: string | null;
  readonly sessionKey: string | null;
  readonly tags: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number | null;
  readonly expiresAtMs: number | null;
  readonly proofCount: Generated<number>;
  readonly confidence: number | null;
  readonly consolidatedAtMs: number | null;
  readonly pinned: Generated<MemoryRow['pinned']>;
  readonly useCount: Generated<number>;
  readonly lastUsedAtMs: number | null;
  readonly failureCount: Generated<number>;
  readonly embeddedAs: string | null;
  readonly content: string;
}

/** Rows of `memory_source`. */
interface MemorySourceTable {
  readonly id: Generated<number>;
  readonly derivedId: string;
  readonly sourceId: string | null;
  readonly conversationRef: string | null;
}

/** Rows of `memory_vector`. */
interface MemoryVectorTable {
  readonly seq: Generated<number>;
  readonly fingerprint: string;
  readonly vector: Uint8Array;
}

/** Rows of `memory_sign`. */
interface MemorySignTable {
  readonly seq: Generated<number>;
  readonly fingerprint: string;
  readonly signs: Uint8Array;
}

/** Rows of `memory_change`. */
interface MemoryChangeTable {
  readonly version: Generated<number>;
  readonly seq: number;
}

/** Rows of `memory_fts`. */
interface MemoryFtsTable {
  readonly rowid: number;
  readonly body: string;
  readonly part: string;
}

/** Rows of `embedding_cache`. */
interface EmbeddingCacheTable {
  readonly fingerprint: string;
  readonly textHash: Uint8Array;
  readonly vector: Uint8Array;
  readonly usedAtMs: number;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly memory: MemoryTable;
    readonly memorySource: MemorySourceTable;
    readonly memoryVector: MemoryVectorTable;
    readonly memorySign: MemorySignTable;
    readonly memoryChange: MemoryChangeTable;
    readonly memoryFts: MemoryFtsTable;
    readonly embeddingCache: EmbeddingCacheTable;
  }
}
