import { randomUUIDv7 } from 'node:crypto';
import { memoryLimits } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { announceAudit, auditRow, recordAudit } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { Log } from '../../../kernel/log.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { ModelWork } from '../../access/budgets/api.ts';
import type { MemoryApi, NewMemory, TrustLevel } from './api.ts';
import { listRememberingAgents, storeMemory } from './entries/browse-store.ts';
import { createMemoryEmbedder, fingerprintOf, type MemoryEmbedder } from './embeddings/embedder.ts';
import { createEmbeddingQueue, type EmbeddingQueue } from './embeddings/embedding-queue.ts';
import { toEntry } from './entries/memory-entry.ts';
import { createMemoryMethods, type MemoryMethods } from './methods.ts';
import { scanMemory } from './entries/scan.ts';
import { createMemorySearch } from './recall/search.ts';

export interface MemoryDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly agents: AgentsApi;
  /** The configured embedder; undefined: only terms are searched. */
  readonly embedder: { readonly provider: string; readonly model: string } | undefined;
  readonly embed: ModelWork['embed'];
}

export interface Memory extends AsyncDisposable {
  readonly api: MemoryApi;
  readonly methods: MemoryMethods;
  /** Whether the agent has any memory, without a query; may stay true a little too long. */
  readonly remembers: (agentId: string) => boolean;
  /** Called after memories were stored other than by `api.store`, so that they are embedded. */
  readonly stored: (agentId: string) => void;
}

/** Unfinished work of an earlier process waits until the daemon has started. */
const afterStartMs = 2_000;

/** Stores memories, embeds them in the background and searches them. */
export async function createMemory(deps: MemoryDeps): Promise<Memory> {
  const { db, bus, clock } = deps;
  const stopping = new AbortController();
  const embedder: MemoryEmbedder | undefined = createMemoryEmbedder(deps, stopping.signal, () => queue?.wake());
  const queue: EmbeddingQueue | undefined = embedder === undefined ? undefined : createEmbeddingQueue({ ...deps, embedder }, stopping.signal);
  const remembering = new Set(await db.read(listRememberingAgents, {}));
  const find = createMemorySearch({ ...deps, embedder, signal: stopping.signal });
  const cancelFirst = remembering.size === 0 ? undefined : clock.after(afterStartMs, () => queue?.wake());

  function stored(agentId: string): void {
    remembering.add(agentId);
    queue?.wake();
  }

  async function store(entry: NewMemory, by: CallContext | 'system') {
    checkLimits(entry);
    if (entry.trustLevel === 'system' && by !== 'system')
      throw new AppError('denied', 'trustLevel: "system" is for the daemon itself', { param: 'trustLevel' });
    const { severity, patterns } = scanMemory(entry.content);
    const blocked = severity === 'critical';
    const tainted = severity === 'warn';
    const announceTaint = () =>
      bus.emit('security:memory_tainted', {
        agentId: entry.agentId,
        originalTrustLevel: entry.trustLevel,
        adjustedTrustLevel: blocked ? 'blocked' : 'external',
        patterns: [...patterns],
        blocked,
        timestamp: clock.now(),
      });
    if (blocked) {
      announceTaint();
      if (by !== 'system')
        await recordAudit(deps, by, {
          actionType: 'memory.store',
          classification: 'security',
          outcome: 'denied',
          target: entry.agentId,
          metadata: { patterns: [...patterns] },
        });
      throw new AppError('denied', `content: refused, because it contains what looks like a destructive command (${patterns.join(', ')})`, {
        param: 'content',
      });
    }
    const trustLevel: TrustLevel = tainted ? 'external' : entry.trustLevel;
    const id = randomUUIDv7();
    const atMs = clock.now();
    const audit =
      by === 'system'
        ? undefined
        : auditRow(by, atMs, { actionType: 'memory.store', classification: 'mutate', target: id, metadata: { agentId: entry.agentId, tainted } });
    await db.write(storeMemory, {
      memory: {
        id,
        agentId: entry.agentId,
        principalId: entry.principalId,
        content: entry.content,
        memoryType: entry.memoryType ?? 'semantic',
        trustLevel,
        taintLevel: tainted ? 'raw' : (entry.taintLevel ?? 'clean'),
        sourceWho: entry.source.who,
        sourceChannel: entry.source.channel ?? null,
        conversationRef: entry.source.conversationRef ?? null,
        sessionKey: entry.source.sessionKey ?? null,
        tags: JSON.stringify([...new Set([...(entry.tags ?? []), ...(tainted ? ['security-tainted'] : [])])]),
        createdAtMs: atMs,
        expiresAtMs: entry.expiresAtMs ?? null,
        confidence: entry.confidence ?? null,
        pinned: entry.pinned === true ? 1 : 0,
        cites: entry.cites ?? [],
      },
      audit,
    });
    if (audit !== undefined) announceAudit(bus, audit);
    if (tainted) announceTaint();
    stored(entry.agentId);
    return { id, trustLevel, tainted };
  }

  const api: MemoryApi = {
    store,
    async search(query) {
      const { found } = await find(query);
      return found.map(({ row, score, explain }) => ({ entry: toEntry(row), score, explain }));
    },
  };
  const methods = createMemoryMethods({ ...deps, api, embedder, fingerprint: () => queue?.fingerprint() ?? fingerprintOf(embedder?.name ?? '', 0) });

  return {
    api,
    methods,
    remembers: (agentId) => remembering.has(agentId),
    stored,
    async [Symbol.asyncDispose]() {
      cancelFirst?.();
      stopping.abort();
      await queue?.[Symbol.asyncDispose]();
    },
  };
}

function checkLimits({ content, tags = [], expiresAtMs }: NewMemory): void {
  const bytes = Buffer.byteLength(content);
  if (content.trim() === '') throw new AppError('invalid_params', 'content: expected some text', { param: 'content' });
  if (!content.isWellFormed()) throw new AppError('invalid_params', 'content: expected well-formed Unicode', { param: 'content' });
  if (bytes > memoryLimits.contentBytes)
    throw new AppError('invalid_params', `content: expected at most ${memoryLimits.contentBytes} bytes, got ${bytes}`, { param: 'content' });
  // One tag is reserved for the scan.
  if (tags.length >= memoryLimits.tags)
    throw new AppError('invalid_params', `tags: expected at most ${memoryLimits.tags - 1}, got ${tags.length}`, { param: 'tags' });
  if (tags.some((tag) => tag === '' || tag.length > memoryLimits.tagCharacters))
    throw new AppError('invalid_params', `tags: expected 1 to ${memoryLimits.tagCharacters} characters each`, { param: 'tags' });
  if (expiresAtMs !== undefined && !Number.isSafeInteger(expiresAtMs))
    throw new AppError('invalid_params', 'expiresAt: expected milliseconds since the epoch', { param: 'expiresAt' });
}
