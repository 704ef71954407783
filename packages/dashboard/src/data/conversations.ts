import type { Result } from '@gatehouse/contract';
import type { Thread } from './chat-thread.ts';
import { useSession } from './context.ts';
import type { Store } from './store.ts';
import { type Loaded, useLoad } from './use-load.ts';

export type ConversationList = Result<'session.list'>;
export type Conversation = ConversationList['sessions'][number];

const settleMs = 1_500;

/** Loads the conversations that the token may see, of one agent or of all, newest first; reloads when an event reports a change. */
export function useConversations(limit: number, agentId?: string): Loaded<ConversationList> {
  const { client } = useSession();
  return useLoad(
    ['session.list', agentId, limit],
    (signal) => client.call('session.list', agentId === undefined ? { allAgents: true, limit } : { agentId, limit }, { signal }),
    { changedBy: ['session:created', 'session:expired'], settleMs },
  );
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
