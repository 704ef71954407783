import type { Adapter, MessageRef } from '../../../channels/port.ts';

/** Marks a message with an emoji until it is disposed. Failures have no effect. */
export function markMessage(adapter: Adapter | undefined, message: MessageRef, emoji: string | undefined): AsyncDisposable {
  const { signal } = new AbortController();
  const marked = emoji === undefined ? undefined : adapter?.react?.(message, emoji, { signal });
  return {
    async [Symbol.asyncDispose]() {
      if (emoji !== undefined && (await marked)?.is === 'done') await adapter?.unreact?.(message, emoji, { signal });
    },
  };
}
