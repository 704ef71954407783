import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { Log } from '../../../kernel/log.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { ModelWork } from '../../access/budgets/api.ts';
import type { MemoryApi } from './api.ts';
import { storeEntry } from './entries/store-entry.ts';
import { listRememberingAgents } from './entries/browse-store.ts';
import { fingerprintOf, MemoryEmbedder } from './embeddings/embedder.ts';
import { EmbeddingQueue } from './embeddings/embedding-queue.ts';
import { toEntry } from './entries/memory-entry.ts';
import { createMemoryMethods, type MemoryMethods } from './methods.ts';
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
  const { db, clock } = deps;
  const stopping = new AbortController();
  const embedder: MemoryEmbedder | undefined =
    deps.embedder === undefined ? undefined : new MemoryEmbedder(deps, deps.embedder, { stopped: stopping.signal, onLength: () => queue?.wake() });
  const queue: EmbeddingQueue | undefined = embedder === undefined ? undefined : new EmbeddingQueue({ ...deps, embedder }, stopping.signal);
  const remembering = new Set(await db.read(listRememberingAgents, {}));
  const find = createMemorySearch({ ...deps, embedder, signal: stopping.signal });
  const cancelFirst = remembering.size === 0 ? undefined : clock.after(afterStartMs, () => queue?.wake());

  function stored(agentId: string): void {
    remembering.add(agentId);
    queue?.wake();
  }

  const api: MemoryApi = {
    async store(entry, by) {
      const made = await storeEntry(deps, entry, by);
      stored(entry.agentId);
      return made;
    },
    async search(query) {
      const { found } = await find(query);
      return found.map(({ row, score, explain }) => ({ entry: toEntry(row), score, explain }));
    },
  };
  const methods = createMemoryMethods({ ...deps, api, embedder, fingerprint: () => queue?.fingerprint ?? fingerprintOf(embedder?.name ?? '', 0) });

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
