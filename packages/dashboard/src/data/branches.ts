import type { Conversation } from './conversations.ts';

/** Longer chains of forks are not followed. */
const maxDepth = 200;

/** Returns a conversation with everything that was forked from the same one, oldest first. */
export function familyOf(
  reference: string,
  conversations: readonly Pick<Conversation, 'conversationRef' | 'forkedFrom' | 'createdAt'>[],
): readonly string[] {
  const parents = new Map(conversations.map(({ conversationRef, forkedFrom }) => [conversationRef, forkedFrom]));
  const rootOf = (ref: string): string => {
    let root = ref;
    for (let depth = 0; depth < maxDepth; depth++) {
      const parent = parents.get(root);
      if (parent === undefined) break;
      root = parent;
    }
    return root;
  };
  const root = rootOf(reference);
  return conversations
    .filter(({ conversationRef }) => rootOf(conversationRef) === root)
    .toSorted((a, b) => a.createdAt - b.createdAt)
    .map(({ conversationRef }) => conversationRef);
}
