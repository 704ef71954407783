import type { ReceivedAttachment, ReceivedMessage } from '../../../channels/port.ts';
import { headOf } from '../../../kernel/cut-text.ts';
import type { Destination } from '../delivery/api.ts';
import type { InstanceConfig } from '../instances/api.ts';
import type { MessageChange, MessageRow } from './store.ts';

/** Longer messages are cut before they reach an agent. */
const maxText = 32_768;
const maxName = 128;
/** New text of a message that has only files now: no text would mean that it was deleted. */
const noText = '(no text)';
const maxAttachments = 10;

/** Returns a text as one line that is safe to show: without control characters and marks of direction. */
const oneLine = (text: string): string =>
  text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim();

/** Returns the name of a sender, as it is shown. */
export const nameOf = ({ senderName, senderId }: ReceivedMessage): string => headOf(oneLine(senderName) || senderId, maxName);

/** Returns the files of a message that are kept. */
export const filesOf = ({ attachments = [] }: ReceivedMessage): ReceivedAttachment[] =>
  attachments.slice(0, maxAttachments).map((file) => ({ ...file, name: headOf(oneLine(file.name), maxName) }));

/** Returns what an agent reads: the text, and how many files it does not get. */
export function textOf({ text, attachments = [] }: ReceivedMessage): string {
  const more = attachments.length - maxAttachments;
  return more > 0
    ? `${headOf(text, maxText)}\n\n[${more} more files are not shown: at most ${maxAttachments} of a message are]`
    : headOf(text, maxText);
}

/** Returns what places a reply next to a message, on platforms where texts have subjects. */
export const threadOf = ({ subject, platformId }: MessageRow) => (subject === null ? {} : { subject, replyTo: platformId ?? undefined });

/** Returns the change of an earlier message that a message is. */
export function changesOf(
  instance: string,
  { edits, conversationId, senderId, text, isDeleted = false }: ReceivedMessage,
  atMs: number,
): MessageChange[] {
  if (edits === undefined) return [];
  return [{ instance, conversationId, platformId: edits, senderId, text: isDeleted ? '' : headOf(text, maxText) || noText, atMs }];
}

/** Returns where a message came from. */
export function destinationOf(
  instance: string,
  config: InstanceConfig,
  { conversationId, threadId, conversationKind }: ReceivedMessage,
): Destination {
  return { instance, channelType: config.type, conversationId, threadId: threadId ?? null, conversationKind };
}
