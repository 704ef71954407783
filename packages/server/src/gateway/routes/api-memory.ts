import { AgentId, type ApiMemorySearch, type ApiMemoryStats } from '@gatehouse/contract';
import * as z from 'zod';
import type { Handlers } from '../../kernel/handlers.ts';
import type { HttpCall } from '../http-call.ts';
import { parseQuery, wholeNumber } from '../query.ts';
import { sendJson } from '../reply.ts';

const SearchQuery = z.strictObject({
  q: z.string().min(1, 'expected some words').max(32_768),
  limit: wholeNumber(1, 100).default(10),
  agentId: AgentId.optional(),
});
const StatsQuery = z.strictObject({ agentId: AgentId.optional() });

/** `GET /api/memory/search` and `GET /api/memory/stats`: the methods of the same names, with parameters from the query. */
export function createApiMemoryRoutes(
  methods: Pick<Handlers, 'memory.search' | 'memory.stats'>,
): Readonly<Record<'search' | 'stats', (call: HttpCall) => Promise<void>>> {
  return {
    async search(call) {
      const { q, ...query } = parseQuery(SearchQuery, call);
      const { results } = await methods['memory.search']({ ...query, query: q, minScore: 0, tags: [] }, call.context());
      sendJson(call, 200, { results } satisfies ApiMemorySearch);
    },
    async stats(call) {
      const stats = await methods['memory.stats'](parseQuery(StatsQuery, call), call.context());
      sendJson(call, 200, { stats } satisfies ApiMemoryStats);
    },
  };
}
