import type { AgentsApi } from '../features/agents/agents/api.ts';
import type { ModelWork } from '../features/access/budgets/api.ts';
import { createMemoryLife } from '../features/knowledge/memory/lifecycle/memory-life.ts';
import { createMemory, type MemoryDeps } from '../features/knowledge/memory/memory.ts';
import { createMemoryTools } from '../features/knowledge/memory/tool.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Db } from '../kernel/db/db.ts';
import type { EventBus } from '../kernel/event-bus.ts';
import { failReview, findReviewable, keepReview, readReviewable } from '../transactions/review-conversation.ts';
import type { FenceLabel } from '../runtime/fence.ts';
import type { ServerOptions } from '../server-handle.ts';

export interface MemoryWiring {
  /** Owns everything built here. */
  readonly building: AsyncDisposableStack;
  readonly options: ServerOptions;
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly agents: AgentsApi;
  readonly embedder: MemoryDeps['embedder'];
  readonly work: ModelWork;
  readonly fence: (text: string, label: FenceLabel) => string;
}

/** Wires agents' memories and their maintenance over time. */
export async function wireMemory({ building, options, ...deps }: MemoryWiring) {
  const log = options.log.module('memory');
  const memory = building.use(await createMemory({ ...deps, log, embed: deps.work.embed }));
  const life = building.use(
    createMemoryLife({
      ...deps,
      log,
      search: memory.api.search,
      remembers: memory.remembers,
      stored: memory.stored,
      operations: { find: findReviewable, read: readReviewable, keep: keepReview, fail: failReview },
    }),
  );
  return {
    methods: { ...memory.methods, ...life.methods },
    tools: createMemoryTools({ methods: memory.methods, api: memory.api }),
    recall: life.recall,
    life: life.api,
  };
}
