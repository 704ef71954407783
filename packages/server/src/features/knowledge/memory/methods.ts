import { type MemoryEntry as WireEntry, type MemoryHit, memoryLimits, type ResultInput } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../kernel/audit.ts';
import { type CallContext, isAdmin, ownerOf } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { MemoryApi, MemoryEntry } from './api.ts';
import { browseMemories, countMemories, deleteMemories, flushMemories, inspectMemory, lastMemory, type Reach } from './entries/browse-store.ts';
import { maxMemoryVectors, type MemoryEmbedder } from './embeddings/embedder.ts';
import { clearCachedVectors, countCachedVectors, maxCachedVectors } from './embeddings/embedding-cache-store.ts';
import { countUnembedded } from './embeddings/embedding-store.ts';
import { toEntry } from './entries/memory-entry.ts';
import { everybody } from './entries/store.ts';

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

const tenantId = 'default';
const previewCharacters = 500;
const reachedOwner = (call: CallContext) => (isAdmin(call) ? null : ownerOf(call));

/** Agents that a call may reach; null: all. An agent that calls reaches itself. */
function agentsOf({ identity, agentCaller }: CallContext): readonly string[] | null {
  if (agentCaller === undefined) return identity.agents ?? null;
  return identity.agents?.includes(agentCaller.agentId) === false ? [] : [agentCaller.agentId];
}

/** Agents must not rewrite their memories through a tool that acts for an administrator. */
function refuseAgents(method: string, call: CallContext): void {
  if (call.agentCaller !== undefined) throw new AppError('denied', `${method} is for administrators, not for agents`);
}

/** The handlers of `memory.*` that work on entries (json-rpc.md §4). */
export function createMemoryMethods(deps: MethodDeps): MemoryMethods {
  const { db, clock, agents, embedder } = deps;

  /** Returns an agent that the caller may reach; unknown and foreign ones fail alike. An operator also reaches data of deleted agents. */
  function reachable(agentId: string, call: CallContext, deletedToo: boolean): string {
    const allowed = agentsOf(call)?.includes(agentId) ?? true;
    if (!allowed || (agents.find(agentId) === undefined && !(deletedToo && isAdmin(call))))
      throw new AppError('not_found', `Agent not found: ${agentId}`, { param: 'agentId' });
    return agentId;
  }

  function reachOf(agentId: string | undefined, call: CallContext): Reach {
    return {
      agentIds: agentId === undefined ? agentsOf(call) : [reachable(agentId, call, true)],
      principalId: reachedOwner(call),
    };
  }

  async function stats(reach: Reach): Promise<ResultInput<'memory.stats'>> {
    const [counts, status] = await Promise.all([
      db.search(countMemories, { reach, atMs: clock.now(), fingerprint: deps.fingerprint() }),
      db.status(),
    ]);
    const sum = (keyOf: (group: (typeof counts.groups)[number]) => string) => {
      const sums: Record<string, number> = {};
      for (const group of counts.groups) sums[keyOf(group)] = (sums[keyOf(group)] ?? 0) + group.entries;
      return sums;
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
      ...(embedder !== undefined && { embeddingProvider: embedder.name, embeddingCacheHitRate: hitRate(embedder.cache) }),
    };
  }

  return {
    'memory.search': async ({ query, agentId: named, limit, minScore, types, trust, tags }, call) => {
      const agentId = named ?? call.agentCaller?.agentId ?? agents.defaultId;
      const found = await deps.api.search({
        text: query,
        agentId: reachable(agentId, call, false),
        principalId: reachedOwner(call),
        limit,
        minScore,
        tags,
        ...(types !== undefined && { types }),
        ...(trust !== undefined && { trust }),
        bookedOn: ownerOf(call),
        signal: call.signal,
      });
      return { results: found.map(({ entry, score, explain }): MemoryHit => ({ ...briefOf(entry), score, explain })) };
    },

    'memory.browse': async ({ agentId, sort, memoryType = null, trustLevel = null, tags, offset, limit }, call) => {
      const { rows, total } = await db.search(browseMemories, {
        ...reachOf(agentId, call),
        memoryType,
        trustLevel,
        tags,
        atMs: clock.now(),
        order: sort,
        offset,
        limit,
        characters: previewCharacters + 1,
      });
      const entries = rows.map((row) => {
        const entry = briefOf(toEntry(row));
        return entry.content.length <= previewCharacters
          ? entry
          : { ...entry, content: `${entry.content.slice(0, previewCharacters - 1).toWellFormed()}…` };
      });
      return { entries, total, offset, limit, hasMore: offset + rows.length < total };
    },

    'memory.inspect': async ({ id }, call) => {
      const reach = reachOf(undefined, call);
      if (id === undefined) return { stats: await stats(reach) };
      const row = await db.read(inspectMemory, { id, reach, atMs: clock.now() });
      return row === undefined ? {} : { entry: wholeOf(toEntry(row)) };
    },

    'memory.stats': async ({ agentId }, call) => stats(reachOf(agentId, call)),

    'memory.embeddingCache': async (_params, call) => {
      if (embedder === undefined) return { enabled: false, vecAvailable: false, circuitBreaker: { state: 'closed' } };
      const { cache, name, breaker } = embedder;
      const [stored, pending] = await Promise.all([
        db.read(countCachedVectors, {}),
        isAdmin(call) ? db.search(countUnembedded, { fingerprint: deps.fingerprint() }) : undefined,
      ]);
      return {
        enabled: true,
        l1: { entries: cache.entries, maxEntries: maxMemoryVectors, hits: cache.hits, misses: cache.misses, hitRate: hitRate(cache) },
        l2: { entries: stored, maxEntries: maxCachedVectors },
        provider: name,
        vecAvailable: true,
        circuitBreaker: { state: breaker.state },
        ...(pending !== undefined && { pendingEntries: pending }),
      };
    },

    'memory.store': async ({ content, agentId = agents.defaultId, memoryType, trustLevel, tags, expiresAt, pinned }, call) => {
      refuseAgents('memory.store', call);
      if (expiresAt !== undefined && expiresAt <= clock.now())
        throw new AppError('invalid_params', 'expiresAt: expected a time in the future', { param: 'expiresAt' });
      const stored = await deps.api.store(
        {
          agentId: reachable(agentId, call, false),
          principalId: everybody,
          content,
          memoryType,
          trustLevel,
          source: { who: 'operator', channel: 'rpc' },
          tags: [...tags, 'operator-stored'],
          pinned,
          ...(expiresAt !== undefined && { expiresAtMs: expiresAt }),
        },
        call,
      );
      return { stored: true, ...stored };
    },

    'memory.delete': async ({ ids }, call) => {
      refuseAgents('memory.delete', call);
      const unique = [...new Set(ids)];
      const audit = auditRow(call, clock.now(), { actionType: 'memory.delete', classification: 'destructive' });
      const done = await db.write(deleteMemories, { ids: unique, reach: reachOf(undefined, call), audit });
      announceAudit(deps.bus, done.audit);
      return { deleted: done.deleted, failed: unique.length - done.deleted, total: unique.length };
    },

    'memory.flush': async ({ agentId }, call) => {
      refuseAgents('memory.flush', call);
      const { agentIds } = reachOf(agentId, call);
      // Entries stored meanwhile stay.
      const lastSeq = await db.read(lastMemory, {});
      let entriesRemoved = 0;
      for (let more = true; more;) {
        const audit = auditRow(call, clock.now(), { actionType: 'memory.flush', classification: 'destructive', target: agentId ?? everybody });
        const step = await db.write(flushMemories, { agentIds, lastSeq, audit });
        announceAudit(deps.bus, step.audit);
        entriesRemoved += step.removed;
        more = step.more;
      }
      embedder?.cache.clear();
      await db.telemetry(clearCachedVectors, {});
      return { flushed: true, entriesRemoved, scope: { tenantId, agentId: agentId ?? null } };
    },

    'memory.export': async ({ agentId, offset, limit }, call) => {
      refuseAgents('memory.export', call);
      const { rows, total } = await db.search(browseMemories, {
        ...reachOf(agentId, call),
        memoryType: null,
        trustLevel: null,
        tags: [],
        atMs: clock.now(),
        order: 'oldest',
        offset,
        limit,
        characters: memoryLimits.contentBytes,
      });
      return {
        entries: rows.map((row) => wholeOf(toEntry(row))),
        exportedAt: clock.now(),
        totalEntries: total,
        total,
        offset,
        limit,
        hasMore: offset + rows.length < total,
      };
    },
  };
}

function hitRate({ hits, misses }: MemoryEmbedder['cache']): number | null {
  return hits + misses === 0 ? null : hits / (hits + misses);
}

function briefOf({ id, content, memoryType, trustLevel, tags, agentId, proofCount, createdAtMs }: MemoryEntry) {
  return { id, content, memoryType, trustLevel, tags: [...tags], agentId, proofCount, createdAt: createdAtMs };
}

function wholeOf(entry: MemoryEntry): WireEntry {
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
