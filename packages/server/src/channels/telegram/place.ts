import type { MessageRef, Place } from '../port.ts';

export interface Target {
  readonly chat_id: number;
  readonly message_thread_id?: number;
}

/** Returns a number that Telegram gave out as an id; undefined for anything else. */
export function idOf(text: string): number | undefined {
  const number = /^-?\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(number) ? number : undefined;
}

/** Returns where a message goes; undefined when a coordinate is not one of Telegram's. */
export function targetOf({ conversationId, threadId }: Place): Target | undefined {
  const chat = idOf(conversationId);
  if (threadId === undefined) return chat === undefined ? undefined : { chat_id: chat };
  const thread = idOf(threadId);
  return chat === undefined || thread === undefined ? undefined : { chat_id: chat, message_thread_id: thread };
}

export function messageTargetOf({ conversationId, messageId }: MessageRef): { readonly chat_id: number; readonly message_id: number } | undefined {
  const [chat, message] = [idOf(conversationId), idOf(messageId)];
  return chat === undefined || message === undefined ? undefined : { chat_id: chat, message_id: message };
}
