import type { MemoryEntry } from '../api.ts';
import { type CitingRow, decodeTags } from './store.ts';

/** Neither from outside nor made of what was: whoever is shown it is not tainted by it. */
export const isClean = ({ taintLevel, trustLevel }: Pick<MemoryEntry, 'taintLevel' | 'trustLevel'>): boolean =>
  taintLevel === 'clean' && trustLevel !== 'external';

/** The entry of a row, as other parts see it. */
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
