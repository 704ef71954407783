import { type MemoryHit, memoryLimits } from '@gatehouse/contract';
import { ownerOf } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { AgentsApi } from '../../../agents/agents/api.ts';
import type { MemoryApi } from '../api.ts';
import type { MemoryMethods } from '../methods.ts';
import { browseMemories } from './browse-store.ts';
import { toEntry } from './memory-entry.ts';
import { reachableAgent, reachedOwner, reachOf, refuseAgents } from './reach.ts';
import { briefOf, wholeOf } from './view.ts';

interface ReadDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly agents: AgentsApi;
  readonly api: Pick<MemoryApi, 'search'>;
}

const previewCharacters = 500;

/** Creates the methods that search and list memories. */
export function createReadMethods({ db, clock, agents, api }: ReadDeps): Pick<MemoryMethods, `memory.${'search' | 'browse' | 'export'}`> {
  return {
    'memory.search': async ({ query, agentId: named, limit, minScore, types, trust, tags }, call) => {
      const agentId = named ?? call.agentCaller?.agentId ?? agents.defaultId;
      const found = await api.search({
        text: query,
        agentId: reachableAgent(agents, agentId, call),
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
        ...reachOf(agents, agentId, call),
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

    'memory.export': async ({ agentId, offset, limit }, call) => {
      refuseAgents('memory.export', call);
      const { rows, total } = await db.search(browseMemories, {
        ...reachOf(agents, agentId, call),
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
