import { useEffect, useState } from 'react';
import type { ChatMessage } from '../../data/chat-thread.ts';
import { sliceLength } from '../../markdown/slices.ts';

/** Characters of text that take as long to draw as the rest of a message. */
const frameLength = 1_500;

/**
 * Returns where the next slice of messages begins when those from `first` on are drawn: as many before it as one task draws, and at least one. Of a
 * long message only the first slice of its text counts, because the others are drawn later.
 */
export function earlierStart(messages: readonly Pick<ChatMessage, 'text'>[], first: number): number {
  let start = first;
  for (let left = sliceLength; start > 0; start -= 1) {
    left -= frameLength + Math.min(messages[start - 1]?.text.length ?? 0, sliceLength);
    if (left < 0 && start < first) break;
  }
  return start;
}

/**
 * Returns the index of the first message to draw. Messages that are there at once are drawn in slices from the end, which is read first, each in a
 * separate task: fifty answers in one would hold the page.
 */
export function useFirstDrawn(messages: readonly ChatMessage[]): number {
  const [firstKey, setFirstKey] = useState<string>();
  const found = firstKey === undefined ? messages.length : messages.findIndex(({ key }) => key === firstKey);
  // Messages that were loaded again under other keys were drawn.
  const first = Math.max(0, found);
  const start = earlierStart(messages, first);
  const nextKey = start < first ? messages[start]?.key : undefined;
  useEffect(() => {
    if (nextKey === undefined) return undefined;
    const timer = setTimeout(() => setFirstKey(nextKey));
    return () => clearTimeout(timer);
  }, [nextKey]);
  return start;
}
