import type { ApiChatHistory, Params, StoredMessage } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { HandlersOf } from '../../../../kernel/handlers.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import type { SessionsApi } from '../api.ts';
import { tenantId } from '../conversation.ts';
import type { Indexer } from '../search/indexer.ts';
import type { PendingConversations } from './pending.ts';
import { type Addressing, reachOf, reachWithin } from './reach.ts';
import { type MessageSearch, searchMessages } from '../search/search-store.ts';
import { type ConversationRow, listConversations, type Reach, readMessages, readSaid, storedRefs } from '../store.ts';
import { dollars, identityOf, shownContent, toStoredMessage, toSummary } from './view.ts';
import { parseTextQuery } from '../search/terms.ts';

type ReadingMethods = HandlersOf<`session.${'status' | 'list' | 'history' | 'export' | 'search'}`>;

/** Page size of an export. */
const exportPage = 500;
/** How long a search waits for the index when too many messages are unindexed to scan them. */
const catchUpMs = 500;

export interface ReadingDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly agents: AgentsApi;
  readonly addressing: Addressing;
  readonly indexer: Pick<Indexer, 'catchUp'>;
  readonly pending: PendingConversations;
  /** Returns the primary model of an agent, as `provider/modelId`. */
  readonly modelOf: (agentId: string) => string;
  readonly laneOf: (ref: string) => { readonly running: boolean; readonly queued: number };
}

export function createReading(deps: ReadingDeps): { readonly methods: ReadingMethods; readonly said: SessionsApi['said'] } {
  const { db, addressing } = deps;

  function reachableAgent(agentId: string, call: CallContext): Agent {
    const agent = deps.agents.find(agentId);
    if (agent === undefined || reachWithin(reachOf(call), agentId).agentIds?.length === 0)
      throw new AppError('not_found', `Agent not found: ${agentId}`, { param: 'agentId' });
    return agent;
  }

  async function said({ offset, limit, ...address }: Parameters<SessionsApi['said']>[0], call: CallContext): Promise<ApiChatHistory> {
    const { named, row } = await addressing.ownOrExisting(address, call);
    if (row === undefined) reachableAgent(named.agentId, call);
    const { rows, total } = row === undefined ? { rows: [], total: 0 } : await db.read(readSaid, { conversationId: row.id, offset, limit });
    const messages = rows.map(({ createdAtMs, ...row }) => ({ role: row.role, content: shownContent(row), timestamp: createdAtMs }));
    return { ...identityOf(named), messages, total, offset, limit, hasMore: offset + rows.length < total };
  }

  async function allMessages(row: ConversationRow): Promise<StoredMessage[]> {
    const messages: StoredMessage[] = [];
    for (let offset = 0; offset < row.messageCount; offset += exportPage) {
      const limit = Math.min(exportPage, row.messageCount - offset);
      messages.push(...(await db.read(readMessages, { conversationId: row.id, offset, limit })).map(toStoredMessage));
    }
    return messages;
  }

  /** Searches in one read, or two when it has to wait for the index. */
  async function search(wanted: MessageSearch) {
    const first = await db.read(searchMessages, wanted);
    if (!first.behind) return first;
    await deps.indexer.catchUp(catchUpMs);
    return db.read(searchMessages, wanted);
  }

  /** Returns conversations whose first turn is running or queued, newest first. */
  async function unstored(reach: Reach): Promise<readonly ConversationRow[]> {
    const entered = deps.pending.list(reach);
    if (entered.length === 0) return entered;
    const stored = new Set(await db.read(storedRefs, { refs: entered.map(({ ref }) => ref) }));
    return entered.filter(({ ref }) => !stored.has(ref));
  }

  const methods: ReadingMethods = {
    'session.status': async (address, call) => {
      const { named, row } = await addressing.ownOrExisting(address, call);
      const agent = reachableAgent(named.agentId, call);
      return {
        ...identityOf(named),
        model: deps.modelOf(agent.id),
        agentName: agent.config.name,
        tokensUsed: { totalTokens: row === undefined ? 0 : row.inputTokens + row.outputTokens, totalCost: dollars(row?.costNano ?? 0) },
        stepsExecuted: row?.stepCount ?? 0,
        maxSteps: agent.config.maxSteps,
        ...deps.laneOf(named.ref),
      };
    },

    'session.list': async ({ agentId, allAgents, kind, sinceMinutes, offset, limit }, call) => {
      const reach = allAgents ? reachOf(call) : reachWithin(reachOf(call), agentId ?? call.agentCaller?.agentId ?? deps.agents.defaultId);
      const sinceMs = sinceMinutes === undefined ? null : deps.clock.now() - sinceMinutes * 60_000;
      // Started conversations without a row are the newest.
      const begun = (await unstored(reach)).filter((row) => (kind === 'all' || kind === row.kind) && row.updatedAtMs >= (sinceMs ?? 0));
      const shown = begun.slice(offset, offset + limit);
      const stored = { offset: Math.max(0, offset - begun.length), limit: Math.max(1, limit - shown.length) };
      const { rows, total } = await db.read(listConversations, { ...reach, kind, sinceMs, ...stored });
      const sessions = [...shown, ...rows].slice(0, limit).map(toSummary);
      const all = begun.length + total;
      return { sessions, total: all, offset, limit, hasMore: offset + sessions.length < all };
    },

    'session.history': async ({ offset, limit, ...address }, call) => {
      const row = await addressing.existing(address, call);
      const messages = await db.read(readMessages, { conversationId: row.id, offset, limit });
      return {
        session: {
          ...toSummary(row),
          inputTokens: row.inputTokens,
          outputTokens: row.outputTokens,
          toolCalls: row.toolCallCount,
          compactions: row.compactionCount,
          resetCount: row.resetCount,
          resetSeq: row.modelSeqFloor,
        },
        // Every stored message is committed.
        messages: messages.map((message) => ({ ...toStoredMessage(message), deliveryStatus: 'confirmed' as const })),
        total: row.messageCount,
        offset,
        limit,
        hasMore: offset + messages.length < row.messageCount,
      };
    },

    'session.export': async (address, call) => {
      const row = await addressing.existing(address, call);
      const messages = await allMessages(row);
      return {
        ...identityOf(row),
        metadata: {
          kind: row.kind,
          tenantId,
          tokensUsed: { input: row.inputTokens, output: row.outputTokens, total: row.inputTokens + row.outputTokens },
          totalCost: dollars(row.costNano),
          turns: row.turnCount,
        },
        messages,
        messageCount: messages.length,
        createdAt: row.createdAtMs,
        updatedAt: row.updatedAtMs,
      };
    },

    'session.search': async ({ agentId, query, scope, kind, limit }: Params<'session.search'>, call) => {
      const reach = agentId === undefined ? reachOf(call) : reachWithin(reachOf(call), agentId);
      if (query === undefined || query.trim() === '') {
        const { rows, total } = await db.read(listConversations, { ...reach, kind, sinceMs: null, offset: 0, limit });
        return { mode: 'recent' as const, sessions: rows.map(toSummary), total };
      }
      const text = parseTextQuery(query);
      if (text === undefined) return { mode: 'search' as const, results: [], total: 0, truncated: false };
      const orAll = (value: string) => (value === 'all' ? null : value);
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

  return { methods, said };
}
