import type { Client } from '@gatehouse/client';
import type { Params, Result } from '@gatehouse/contract';
import type { Thread } from './chat-thread.ts';
import { useSession } from './context.ts';
import type { Store } from './store.ts';
import { type Loaded, useLoad } from './use-load.ts';

export type ConversationList = Result<'session.list'>;
export type Conversation = ConversationList['sessions'][number];

const settleMs = 1_500;

export type ConversationFilter = Pick<Params<'session.list'>, 'agentId' | 'source' | 'shelf'>;

/** Loads the conversations that the token may see, of one agent or of all, newest first; reloads when an event reports a change. */
export function useConversations(limit: number, { agentId, source, shelf }: ConversationFilter = {}): Loaded<ConversationList> {
  const { client } = useSession();
  const of = agentId === undefined ? { allAgents: true } : { agentId };
  return useLoad(
    ['session.list', agentId, source, shelf, limit],
    (signal) => client.call('session.list', { ...of, source, shelf, limit }, { signal }),
    { changedBy: ['session:created', 'session:updated', 'session:expired'], settleMs },
  );
}

const maxPinned = 50;

export interface Chats {
  readonly pinned: readonly Conversation[];
  readonly list: ConversationList;
  /** The tags of all conversations, the most used first. */
  readonly tags: readonly string[];
}

/** Loads the newest conversations of people, and the pinned ones before them; instead of both those in the archive. With a tag only its own. */
export function useChats(limit: number, archived: boolean, tag: string | undefined): Loaded<Chats> {
  const { client } = useSession();
  const chats = { allAgents: true, source: 'chat' as const, ...(tag !== undefined && { tag }) };
  return useLoad(
    ['chats', archived, limit, tag],
    async (signal) => {
      const [list, tags, pinned] = await client.batch(
        [
          { method: 'session.list', params: { ...chats, shelf: archived ? 'archived' : 'list', limit } },
          { method: 'session.tags' },
          { method: 'session.list', params: { ...chats, shelf: 'pinned', limit: maxPinned } },
        ],
        { signal },
      );
      if (!list.ok) throw list.error;
      if (!pinned.ok) throw pinned.error;
      return {
        pinned: archived ? [] : pinned.result.sessions,
        list: list.result,
        tags: tags.ok ? tags.result.tags.map((one) => one.tag) : [],
      };
    },
    { changedBy: ['session:created', 'session:updated', 'session:expired'], settleMs, keepsPrevious: ([name]) => name === 'chats' },
  );
}

/** Lets a model give a new conversation its title; without one, the beginning of the first message stays. */
export function suggestTitle(client: Client, conversationRef: string): void {
  client.call('session.suggest_title', { conversationRef }).catch(() => {
    // A budget that is spent or a model that fails: nobody asked for the title.
  });
}

/** Searches titles, keys and agents, and the messages of loaded threads. */
export function searchConversations(
  conversations: readonly Conversation[],
  query: string,
  threads: readonly Store<Thread>[],
): readonly Conversation[] {
  const wanted = query.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return conversations;
  const texts = new Map(threads.map((thread) => thread.get()).map(({ ref, messages }) => [ref, messages.map(({ text }) => text).join('\n')]));
  return conversations.filter(({ conversationRef, sessionKey, agentId, title }) => {
    const text = [title, sessionKey, agentId, texts.get(conversationRef)].join('\n').toLocaleLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}
