import type { BatchOutcome, Client } from '@gatehouse/client';
import type { Result } from '@gatehouse/contract';
import { useCallback, useEffect, useRef } from 'react';
import { useSession } from './context.ts';
import type { Thread } from './chats.ts';
import { type Store, useStore } from './store.ts';
import type { Titles } from './titles.ts';
import { type Loaded, useLoad } from './use-load.ts';

export type Conversation = Result<'session.list'>['sessions'][number];

export interface ConversationList {
  /** Newest first, of all agents. */
  readonly conversations: readonly Conversation[];
  readonly total: number;
  /** Agents whose conversations are not in the list. */
  readonly agentsLeftOut: number;
}

/** One request for all of them, but each counts against the request limit of the token. */
const maxAgents = 10;

async function listConversations(client: Client, agentIds: readonly string[], limit: number, signal: AbortSignal): Promise<ConversationList> {
  const entries = agentIds.slice(0, maxAgents).map((agentId) => ({ method: 'session.list', params: { agentId, limit } }) as const);
  const outcomes: readonly BatchOutcome<'session.list'>[] = await client.batch(entries, { signal });
  const failed = outcomes.find((outcome) => !outcome.ok);
  if (failed !== undefined && !failed.ok) throw failed.error;
  const pages = outcomes.flatMap((outcome) => (outcome.ok ? [outcome.result] : []));
  return {
    conversations: pages.flatMap(({ sessions }) => sessions).toSorted((a, b) => b.updatedAt - a.updatedAt),
    total: pages.reduce((sum, page) => sum + page.total, 0),
    agentsLeftOut: Math.max(0, agentIds.length - maxAgents),
  };
}

const settleMs = 1_500;

/** The conversations that the token may see, of one agent or of the first of all, loaded anew when the event stream tells of a change. */
export function useConversations(limit: number, agentId?: string): Loaded<ConversationList> {
  const { client, agents, chats, defaultAgentId, live } = useSession();
  const known = useStore(agents);
  const list = useLoad(`conversations ${limit} ${agentId ?? ''}`, (signal) => {
    // Those that somebody talks with here come before those that merely exist.
    const talkedWith = chats.loaded().map((thread) => thread.get().agentId);
    const ids = agentId === undefined ? [...new Set([defaultAgentId, ...talkedWith.filter((id) => known.includes(id)), ...known])] : [agentId];
    return listConversations(client, ids, limit, signal);
  });
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const { reload } = list;
  const reloadSoon = useCallback(() => {
    clearTimeout(timer.current);
    timer.current = setTimeout(reload, settleMs);
  }, [reload]);
  useEffect(() => {
    const stop = live.listen(({ kind }) => {
      if (kind === 'session:created' || kind === 'gap') reloadSoon();
    });
    return () => {
      stop();
      clearTimeout(timer.current);
    };
  }, [live, reloadSoon]);
  return list;
}

/** Finds words in titles, keys and agents, and in the messages that this tab has loaded. */
export function searchConversations(
  conversations: readonly Conversation[],
  words: string,
  known: { readonly titles: Titles; readonly threads: readonly Store<Thread>[] },
): readonly Conversation[] {
  const wanted = words.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return conversations;
  const texts = new Map(known.threads.map((thread) => thread.get()).map(({ ref, messages }) => [ref, messages.map(({ text }) => text).join('\n')]));
  return conversations.filter(({ conversationRef, sessionKey, agentId }) => {
    const text = [known.titles.get(conversationRef), sessionKey, agentId, texts.get(conversationRef)].join('\n').toLocaleLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}
