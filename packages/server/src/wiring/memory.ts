import type { AgentsApi } from '../features/agents/agents/api.ts';
import type { ModelWork } from '../features/access/budgets/api.ts';
import { createMemoryLife } from '../features/knowledge/memory/lifecycle/memory-life.ts';
import { createMemory, type MemoryDeps } from '../features/knowledge/memory/memory.ts';
import { createMemoryTools } from '../features/knowledge/memory/tool.ts';
import { failReview, findReviewable, keepReview, readReviewable } from '../transactions/review-conversation.ts';
import type { FenceText } from '../runtime/fence.ts';
import type { Assembly } from './assembly.ts';

export interface MemoryWiring {
  readonly agents: AgentsApi;
  readonly embedder: MemoryDeps['embedder'];
  readonly work: ModelWork;
  readonly fence: FenceText;
}

/** Wires agents' memories and their maintenance over time. */
export async function wireMemory({ building, core }: Assembly, wired: MemoryWiring) {
  const deps = { ...wired, ...core('memory') };
  const memory = building.use(await createMemory({ ...deps, embed: deps.work.embed }));
  const life = building.use(
    createMemoryLife({
      ...deps,
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
    /** The search index, for text that is not a memory. */
    index: { search: memory.api, stored: memory.stored },
  };
}
