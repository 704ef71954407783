import type { Client } from '@gatehouse/client';
import type { Result } from '@gatehouse/contract';

export const memoryTypes = ['working', 'episodic', 'semantic', 'procedural'] as const;
export const trustLevels = ['system', 'learned', 'external'] as const;
export const pageSize = 50;
const searchLimit = 50;

export interface Filters {
  readonly type: (typeof memoryTypes)[number] | undefined;
  readonly trust: (typeof trustLevels)[number] | undefined;
  readonly tag: string | undefined;
}
export const noFilters: Filters = { type: undefined, trust: undefined, tag: undefined };

type Hit = Result<'memory.search'>['results'][number];
export type Entry = Result<'memory.browse'>['entries'][number];
/** A listed entry; a search adds the score and its explanation. */
export type ListedEntry = Entry & Partial<Pick<Hit, 'score' | 'explain'>>;

export interface Found {
  readonly entries: readonly ListedEntry[];
  /** Total count when browsing; a search has none. */
  readonly total: number | undefined;
}

/** Searches when there is a query, otherwise browses the newest. */
export async function findMemories(
  client: Client,
  about: { readonly agentId: string; readonly query: string; readonly filters: Filters; readonly offset: number },
  signal: AbortSignal,
): Promise<Found> {
  const {
    agentId,
    query,
    filters: { type, trust, tag },
    offset,
  } = about;
  if (query === '') {
    const page = await client.call(
      'memory.browse',
      {
        agentId,
        offset,
        limit: pageSize,
        memoryType: type,
        trustLevel: trust,
        ...(tag !== undefined && { tags: [tag] }),
      },
      { signal },
    );
    return { entries: page.entries, total: page.total };
  }
  const { results } = await client.call(
    'memory.search',
    {
      agentId,
      query,
      limit: searchLimit,
      ...(type !== undefined && { types: [type] }),
      ...(trust !== undefined && { trust: [trust] }),
      ...(tag !== undefined && { tags: [tag] }),
    },
    { signal },
  );
  return { entries: results, total: undefined };
}

const exportPage = 1000;

/** Loads all memories of one agent, page by page. */
export async function exportMemories(client: Client, agentId: string): Promise<object> {
  const entries: Result<'memory.export'>['entries'] = [];
  for (;;) {
    const page = await client.call('memory.export', { agentId, offset: entries.length, limit: exportPage });
    entries.push(...page.entries);
    if (!page.hasMore) return { agentId, exportedAt: page.exportedAt, totalEntries: page.totalEntries, entries };
  }
}
