import { AgentConfig } from '@gatehouse/contract';
import { expect } from 'vitest';
import { AppError } from '../../../../kernel/app-error.ts';
import { auditMigrations } from '../../../../kernel/db/audit.ts';
import type { CallContext, Identity } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import { openInlineDb } from '../../../../kernel/db/sqlite/inline.ts';
import { createEventBus } from '../../../../kernel/event-bus.ts';
import { silentLog } from '../../../../kernel/log.ts';
import type { Embeddings } from '../../../../llm/embeddings.ts';
import { hashingVector } from '../../../../llm/hashing-embedder.ts';
import { ModelError } from '../../../../llm/model.ts';
import type { AgentsApi } from '../../../agents/agents/api.ts';
import type { MemoryQuery, NewMemory, ScoredMemory } from '../api.ts';
import { browseOperations } from '../entries/browse-store.ts';
import { embeddingCacheOperations } from '../embeddings/embedding-cache-store.ts';
import { embeddingOperations } from '../embeddings/embedding-store.ts';
import { createMemory, type Memory } from '../memory.ts';
import { memoryMigrations } from '../migrations.ts';
import { memorySearchOperations } from '../recall/search-store.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';

type Embed = (work: {
  readonly texts: readonly string[];
  readonly agentId: string;
  readonly principalId: string;
  readonly signal: AbortSignal;
}) => Promise<Embeddings>;

export const hashingEmbed: Embed = async ({ texts }) => ({ vectors: texts.map((text) => hashingVector(text, 384)), model: 'hashing', tokens: 1 });

/** An embedder that never answers. */
export const hang: Embed = ({ signal }) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new ModelError('aborted', 'stopped'))));

export interface OpenedMemory extends Memory {
  readonly db: Awaited<ReturnType<typeof openInlineDb>>;
  /** Stores as the daemon would, with defaults for missing fields. */
  add(content: string, more?: Partial<NewMemory>): Promise<string>;
  /** Returns contents of the search results, best first. */
  find(text: string, more?: Partial<MemoryQuery>): Promise<string[]>;
  explain(text: string, more?: Partial<MemoryQuery>): Promise<readonly ScoredMemory[]>;
}

/** Memories on a database of the calling thread; with `embed`, or the built-in `hashing`, or `none`. */
export async function openMemory(options: {
  readonly clock: Clock;
  readonly embed?: Embed | 'none';
  readonly provider?: string;
  readonly model?: string;
  readonly dataDir?: string;
  readonly operations?: readonly Operation<never, unknown>[];
}): Promise<OpenedMemory> {
  const db = await openInlineDb({
    ...(options.dataDir !== undefined && { dataDir: options.dataDir }),
    migrations: [...auditMigrations, ...memoryMigrations],
    operations: [...browseOperations, ...memorySearchOperations, ...embeddingOperations, ...embeddingCacheOperations, ...(options.operations ?? [])],
  });
  const { embed = hashingEmbed } = options;
  const agents: AgentsApi = {
    defaultId: 'default',
    list: () => [],
    find: (id) =>
      ['default', 'other'].includes(id)
        ? { id, config: AgentConfig.parse({}), source: 'file', suspended: false, isDefault: id === 'default', workspaceDir: '/nonexistent' }
        : undefined,
    usable: () => {
      throw new AppError('not_found', 'no agents here');
    },
  };
  const memory = await createMemory({
    db,
    bus: createEventBus((error) => {
      throw error;
    }),
    clock: options.clock,
    log: silentLog,
    agents,
    embedder: embed === 'none' ? undefined : { provider: options.provider ?? 'test', model: options.model ?? 'hashing' },
    embed: embed === 'none' ? () => Promise.reject(new Error('not configured')) : embed,
  });
  const explain = (text: string, more: Partial<MemoryQuery> = {}) =>
    memory.api.search({ text, agentId: 'default', principalId: null, limit: 10, signal: new AbortController().signal, ...more });
  return {
    ...memory,
    db,
    async add(content, more = {}) {
      const entry = { agentId: 'default', principalId: '*', content, trustLevel: 'learned' as const, source: { who: 'test' }, ...more };
      return (await memory.api.store(entry, 'system')).id;
    },
    explain,
    find: async (text, more) => (await explain(text, more)).map(({ entry }) => entry.content),
    async [Symbol.asyncDispose]() {
      await memory[Symbol.asyncDispose]();
      await db[Symbol.asyncDispose]();
    },
  };
}

/** Returns how many entries still lack a vector. */
export async function pendingOf(memory: Memory): Promise<number> {
  return (await memory.methods['memory.embeddingCache']({}, adminCall())).pendingEntries ?? 0;
}

export async function untilEmbedded(memory: Memory): Promise<void> {
  await expect.poll(() => pendingOf(memory)).toBe(0);
}

export const adminCall = () => callOf({ principalId: 'token:root', tokenId: 'root', scopes: ['*'] });
export const rpcCall = () => callOf({ principalId: 'token:one', tokenId: 'one', scopes: ['rpc'] });

function callOf(identity: Identity): CallContext {
  return {
    identity,
    traceId: '0'.repeat(32),
    requestId: 'rq_1',
    signal: new AbortController().signal,
    transport: 'process',
  };
}
