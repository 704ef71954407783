import type { MemoryEntry } from '../api.ts';
import { type CitingRow, decodeTags } from './store.ts';

/** Whether an entry is neither from outside nor derived from such text: showing it does not taint the reader. */
export const isClean = ({ taintLevel, trustLevel }: Pick<MemoryEntry, 'taintLevel' | 'trustLevel'>): boolean =>
  taintLevel === 'clean' && trustLevel !== 'external';

/** Converts a row to the public entry. */
export function toEntry(row: CitingRow): MemoryEntry {
  return {
    id: row.id,
    agentId: row.agentId,
    principalId: row.principalId,
    content: row.content,
    memoryType: row.memoryType,
    trustLevel: row.trustLevel,
    taintLevel: row.taintLevel,
    source: {
      who: row.sourceWho,
      ...(row.sourceChannel !== null && { channel: row.sourceChannel }),
      ...(row.sessionKey !== null && { sessionKey: row.sessionKey }),
      ...(row.conversationRef !== null && { conversationRef: row.conversationRef }),
    },
    tags: decodeTags(row.tags),
    createdAtMs: row.createdAtMs,
    ...(row.updatedAtMs !== null && { updatedAtMs: row.updatedAtMs }),
    ...(row.expiresAtMs !== null && { expiresAtMs: row.expiresAtMs }),
    proofCount: row.proofCount,
    ...(row.proofCount > 0 && { sourceIds: row.sourceIds }),
    ...(row.confidence !== null && { confidence: row.confidence }),
    ...(row.consolidatedAtMs !== null && { consolidatedAtMs: row.consolidatedAtMs }),
    pinned: row.pinned === 1,
  };
}
