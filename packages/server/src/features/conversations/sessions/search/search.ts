import type { Db } from '../../../../kernel/db/db.ts';
import type { HandlersOf } from '../../../../kernel/handlers.ts';
import { reachOf, reachWithin } from '../reading/reach.ts';
import { identityOf, toSummary } from '../reading/view.ts';
import { listConversations } from '../store.ts';
import type { Indexer } from './indexer.ts';
import { type MessageSearch, searchMessages } from './search-store.ts';
import { parseTextQuery } from './terms.ts';

/** How long a search waits for the index when too many messages are unindexed to scan them. */
const catchUpMs = 500;

/** Searches messages; lists the latest conversations when nothing is asked for. */
export function createSearch({ db, indexer }: { readonly db: Db; readonly indexer: Pick<Indexer, 'catchUp'> }): HandlersOf<'session.search'> {
  /** Searches in one read, or two when it has to wait for the index. */
  async function search(wanted: MessageSearch) {
    const first = await db.read(searchMessages, wanted);
    if (!first.behind) return first;
    await indexer.catchUp(catchUpMs);
    return db.read(searchMessages, wanted);
  }

  return {
    'session.search': async ({ agentId, query, scope, kind, limit }, call) => {
      const reach = agentId === undefined ? reachOf(call) : reachWithin(reachOf(call), agentId);
      if (query === undefined || query.trim() === '') {
        const { rows, total } = await db.read(listConversations, {
          ...reach,
          kind,
          source: null,
          shelf: null,
          tag: null,
          sinceMs: null,
          offset: 0,
          limit,
        });
        return { mode: 'recent' as const, sessions: rows.map(toSummary), total };
      }
      const text = parseTextQuery(query);
      if (text === undefined) return { mode: 'search' as const, results: [], total: 0, truncated: false };
      const orAll = <Value extends string>(value: Value | 'all') => (value === 'all' ? null : value);
      const { hits, total, more, behind } = await search({ ...reach, text, role: orAll(scope), kind: orAll(kind), limit });
      const results = hits.map((hit) => ({
        ...identityOf(hit),
        ...(hit.title !== null && { title: hit.title }),
        seq: hit.seq,
        turnId: hit.turnId,
        role: hit.role,
        snippet: hit.snippet.text,
        marks: [...hit.snippet.marks],
        score: hit.score,
        timestamp: hit.createdAtMs,
      }));
      return { mode: 'search' as const, results, total, truncated: more || behind };
    },
  };
}
