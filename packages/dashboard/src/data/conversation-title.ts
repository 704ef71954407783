import { useConversations } from './conversations.ts';

const maxKnown = 200;

/** Returns the title of a conversation of the newest ones; undefined while it has none, or is not known. */
export function useConversationTitle(conversationRef: string | undefined): string | undefined {
  const { data } = useConversations(maxKnown);
  return data?.sessions.find((one) => one.conversationRef === conversationRef)?.title ?? undefined;
}
