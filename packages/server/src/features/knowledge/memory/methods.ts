import type { ResultInput } from '@gatehouse/contract';
import { type CallContext, isAdmin } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { MemoryApi } from './api.ts';
import type { MemoryEmbedder } from './embeddings/embedder.ts';
import { countCachedVectors, maxCachedVectors } from './embeddings/embedding-cache-store.ts';
import { countUnembedded } from './embeddings/embedding-store.ts';
import { maxMemoryVectors } from './embeddings/vector-cache.ts';
import { countMemories, inspectMemory, type Reach } from './entries/browse-store.ts';
import { toEntry } from './entries/memory-entry.ts';
import { reachOf } from './entries/reach.ts';
import { createReadMethods } from './entries/read-methods.ts';
import { wholeOf } from './entries/view.ts';
import { createWriteMethods } from './entries/write-methods.ts';

export type MemoryMethods =
  HandlersOf<`memory.${'search' | 'browse' | 'inspect' | 'stats' | 'embeddingCache' | 'store' | 'delete' | 'flush' | 'export'}`>;

interface MethodDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly agents: AgentsApi;
  readonly api: MemoryApi;
  readonly embedder: MemoryEmbedder | undefined;
  /** Fingerprint that an entry's vector needs to be searchable. */
  readonly fingerprint: () => string;
}

/** The handlers of `memory.*` that work on entries (json-rpc.md §4). */
export function createMemoryMethods(deps: MethodDeps): MemoryMethods {
  const { db, clock, agents, embedder } = deps;

  async function stats(reach: Reach): Promise<ResultInput<'memory.stats'>> {
    const [counts, status] = await Promise.all([
      db.search(countMemories, { reach, atMs: clock.now(), fingerprint: deps.fingerprint() }),
      db.status(),
    ]);
    const sum = (keyOf: (group: (typeof counts.groups)[number]) => string) => {
      const sums = new Map<string, number>();
      for (const group of counts.groups) sums.set(keyOf(group), (sums.get(keyOf(group)) ?? 0) + group.entries);
      return Object.fromEntries(sums);
    };
    return {
      totalEntries: counts.groups.reduce((total, { entries }) => total + entries, 0),
      byType: sum((group) => group.memoryType),
      byTrustLevel: sum((group) => group.trustLevel),
      byAgent: sum((group) => group.agentId),
      totalSessions: counts.sessions,
      embeddedEntries: counts.embedded,
      dbSizeBytes: status.bytes + status.walBytes,
      oldestCreatedAt: counts.oldestAtMs,
      ...(embedder !== undefined && { embeddingProvider: embedder.name, embeddingCacheHitRate: embedder.cache.hitRate }),
    };
  }

  async function embeddingCache(call: CallContext): Promise<ResultInput<'memory.embeddingCache'>> {
    if (embedder === undefined) return { enabled: false, vecAvailable: false, circuitBreaker: { state: 'closed' } };
    const { cache, name, breaker } = embedder;
    const [stored, pending] = await Promise.all([
      db.read(countCachedVectors, {}),
      isAdmin(call) ? db.search(countUnembedded, { fingerprint: deps.fingerprint() }) : undefined,
    ]);
    return {
      enabled: true,
      l1: { entries: cache.entries, maxEntries: maxMemoryVectors, hits: cache.hits, misses: cache.misses, hitRate: cache.hitRate },
      l2: { entries: stored, maxEntries: maxCachedVectors },
      provider: name,
      vecAvailable: true,
      circuitBreaker: { state: breaker.state },
      ...(pending !== undefined && { pendingEntries: pending }),
    };
  }

  return {
    ...createReadMethods(deps),
    ...createWriteMethods(deps),

    'memory.inspect': async ({ id }, call) => {
      const reach = reachOf(agents, undefined, call);
      if (id === undefined) return { stats: await stats(reach) };
      const row = await db.read(inspectMemory, { id, reach, atMs: clock.now() });
      return row === undefined ? {} : { entry: wholeOf(toEntry(row)) };
    },

    'memory.stats': async ({ agentId }, call) => stats(reachOf(agents, agentId, call)),

    'memory.embeddingCache': async (_params, call) => embeddingCache(call),
  };
}
