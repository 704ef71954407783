import type { MemoryEntry as WireEntry } from '@gatehouse/contract';
import type { MemoryEntry } from '../api.ts';

/** Returns an entry as lists show it. */
export function briefOf({ id, content, memoryType, trustLevel, tags, agentId, proofCount, createdAtMs }: MemoryEntry) {
  return { id, content, memoryType, trustLevel, tags: [...tags], agentId, proofCount, createdAt: createdAtMs };
}

/** Returns a whole entry. */
export function wholeOf(entry: MemoryEntry): WireEntry {
  const { principalId, taintLevel, source, updatedAtMs, expiresAtMs, sourceIds, confidence, consolidatedAtMs, pinned } = entry;
  return {
    ...briefOf(entry),
    principalId,
    taintLevel,
    source,
    pinned,
    ...(updatedAtMs !== undefined && { updatedAt: updatedAtMs }),
    ...(expiresAtMs !== undefined && { expiresAt: expiresAtMs }),
    ...(sourceIds !== undefined && { sourceIds: [...sourceIds] }),
    ...(confidence !== undefined && { confidence }),
    ...(consolidatedAtMs !== undefined && { consolidatedAt: consolidatedAtMs }),
  };
}
