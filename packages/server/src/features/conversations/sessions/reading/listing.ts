import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { HandlersOf } from '../../../../kernel/handlers.ts';
import type { AgentsApi } from '../../../agents/agents/api.ts';
import { type ConversationRow, listConversations, type Reach, storedRefs } from '../store.ts';
import type { PendingConversations } from './pending.ts';
import { reachOf, reachWithin } from './reach.ts';
import { toSummary } from './view.ts';

export interface ListingDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly agents: Pick<AgentsApi, 'defaultId'>;
  readonly pending: PendingConversations;
}

/** Lists conversations, newest first. */
export function createListing({ db, clock, agents, pending }: ListingDeps): HandlersOf<'session.list'> {
  /** Returns conversations whose first turn is running or queued, newest first. */
  async function unstored(reach: Reach): Promise<readonly ConversationRow[]> {
    const entered = pending.list(reach);
    if (entered.length === 0) return entered;
    const stored = new Set(await db.read(storedRefs, { refs: entered.map(({ ref }) => ref) }));
    return entered.filter(({ ref }) => !stored.has(ref));
  }

  return {
    'session.list': async ({ agentId, allAgents, kind, source = null, shelf = null, tag = null, sinceMinutes, offset, limit }, call) => {
      const reach = allAgents ? reachOf(call) : reachWithin(reachOf(call), agentId ?? call.agentCaller?.agentId ?? agents.defaultId);
      const sinceMs = sinceMinutes === undefined ? null : clock.now() - sinceMinutes * 60_000;
      // Started conversations without a row are the newest.
      const begun = (await unstored(reach)).filter(
        (row) =>
          (kind === 'all' || kind === row.kind) &&
          (source === null || source === row.source) &&
          (shelf === null || shelf === row.shelf) &&
          tag === null &&
          row.updatedAtMs >= (sinceMs ?? 0),
      );
      const shown = begun.slice(offset, offset + limit);
      const stored = { offset: Math.max(0, offset - begun.length), limit: Math.max(1, limit - shown.length) };
      const { rows, total } = await db.read(listConversations, { ...reach, kind, source, shelf, tag, sinceMs, ...stored });
      const sessions = [...shown, ...rows].slice(0, limit).map(toSummary);
      const all = begun.length + total;
      return { sessions, total: all, offset, limit, hasMore: offset + sessions.length < all };
    },
  };
}
