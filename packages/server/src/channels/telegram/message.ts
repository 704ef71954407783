import type { ReceivedAttachment, ReceivedMessage } from '../port.ts';
import type { Entity, File, Message, Press, Update, User } from './update.ts';

export interface Us {
  readonly id: number;
  /** Without `@`. */
  readonly username: string;
}

/** Returns what somebody said, changed or pressed; undefined for what is not for an agent, such as a note that somebody joined. */
export function messageOf(update: Update, eventKey: string, us: Us, nowMs: number): ReceivedMessage | undefined {
  const { message, edited_message: edited, callback_query: press } = update;
  if (message !== undefined) return saidOf(message, eventKey, us);
  if (press !== undefined) return pressedOf(press, eventKey, nowMs);
  const changed = edited && saidOf(edited, eventKey, us);
  return changed && { ...changed, edits: changed.messageId };
}

function saidOf(message: Message, eventKey: string, us: Us): ReceivedMessage | undefined {
  const { chat, from, sender_chat: as, message_id: id, date, edit_date: editedAt } = message;
  // The content of a channel that we are a member of is addressed to nobody.
  if (chat.type === 'channel' || from?.id === us.id || (from === undefined && as === undefined)) return undefined;
  const attachments = attachmentsOf(message);
  const raw = message.text ?? message.caption ?? otherTextOf(message);
  if (raw === undefined && attachments.length === 0) return undefined;
  const mention = mentionOf(raw ?? '', message.entities ?? message.caption_entities ?? [], us);
  return {
    eventKey,
    messageId: String(id),
    ...placeOf(message),
    ...(as === undefined ? senderOf(from as User) : { senderId: String(as.id), senderName: nameOfChat(message), isBot: false }),
    text: mention.text,
    mentionsUs: mention.isMentioned || answersUs(message, us),
    ...((message.forward_origin !== undefined || message.via_bot !== undefined) && { isForwarded: true }),
    sentAtMs: (editedAt ?? date) * 1_000,
    ...(attachments.length > 0 && { attachments }),
  };
}

/** A press is answered only where its message is known. */
function pressedOf({ from, message, data }: Press, eventKey: string, nowMs: number): ReceivedMessage | undefined {
  if (message === undefined || data === undefined) return undefined;
  return {
    eventKey,
    messageId: String(message.message_id),
    ...placeOf(message),
    ...senderOf(from),
    text: data,
    mentionsUs: true,
    sentAtMs: nowMs,
  };
}

function placeOf({ chat, message_thread_id: thread, is_topic_message: isTopic }: NonNullable<Press['message']>) {
  return {
    conversationId: String(chat.id),
    // Outside of topics it names a chain of answers.
    ...(isTopic === true && thread !== undefined && { threadId: String(thread) }),
    conversationKind: chat.type === 'private' ? ('direct' as const) : ('shared' as const),
  };
}

const senderOf = (user: User) => ({ senderId: String(user.id), senderName: nameOf(user), isBot: user.is_bot });

export const nameOf = ({ first_name: first, last_name: last }: Pick<User, 'first_name' | 'last_name'>): string =>
  last === undefined ? first : `${first} ${last}`;

/** An anonymous administrator writes as the group, other people as a channel of theirs: both come from a bot of Telegram's, which is nobody. */
function nameOfChat({ sender_chat: chat, author_signature: signature }: Message): string {
  const title = chat?.title ?? String(chat?.id);
  return signature === undefined ? title : `${title} (${signature})`;
}

/** What answers nothing in a topic that we created seems to answer the note of its creation. */
function answersUs({ reply_to_message: answered }: Message, us: Us): boolean {
  return answered?.from?.id === us.id && answered.forum_topic_created === undefined;
}

/** Returns whether a text names us, and the text without our name at its beginning. Offsets count UTF-16 units, as JavaScript does. */
function mentionOf(text: string, entities: readonly Entity[], us: Us): { readonly isMentioned: boolean; readonly text: string } {
  const named = entities.filter((entity) => namesUs(text, entity, us));
  const [first] = named;
  if (first === undefined) return { isMentioned: false, text };
  if (text.slice(0, first.offset).trim() !== '') return { isMentioned: true, text };
  const [from, to] = [first.offset, first.offset + first.length];
  const rest = text.slice(to);
  if (first.type === 'bot_command') return { isMentioned: true, text: `${text.slice(from, to).replace(/@.*$/s, '')}${rest}` };
  return { isMentioned: true, text: rest.replace(/^[\s,:]+/, '') };
}

function namesUs(text: string, { type, offset, length, user }: Entity, us: Us): boolean {
  const part = text.slice(offset, offset + length).toLowerCase();
  const ours = `@${us.username.toLowerCase()}`;
  switch (type) {
    case 'mention':
      return part === ours;
    case 'bot_command':
      return part.endsWith(ours);
    case 'text_mention':
      return user?.id === us.id;
    default:
      return false;
  }
}

function otherTextOf({ sticker, location, contact }: Message): string | undefined {
  if (sticker !== undefined) return sticker.emoji;
  if (location !== undefined) return `Location: ${location.latitude}, ${location.longitude}`;
  return contact && `Contact: ${nameOf(contact)}, ${contact.phone_number}`;
}

function attachmentsOf(message: Message): ReceivedAttachment[] {
  const { photo, voice, audio, video, video_note: note, animation, sticker } = message;
  const largest = photo?.toSorted((a, b) => b.width * b.height - a.width * a.height)[0];
  // The same file comes as a document, too.
  const document = animation === undefined ? message.document : undefined;
  return [
    largest && attachmentOf(largest, 'photo.jpg', 'image/jpeg'),
    document && attachmentOf(document, 'document'),
    voice && { ...attachmentOf(voice, 'voice.ogg', 'audio/ogg'), isVoice: true },
    audio && attachmentOf(audio, 'audio.mp3', 'audio/mpeg'),
    video && attachmentOf(video, 'video.mp4', 'video/mp4'),
    note && attachmentOf(note, 'video-note.mp4', 'video/mp4'),
    animation && attachmentOf(animation, 'animation.mp4', 'video/mp4'),
    sticker && stickerOf(sticker),
  ].filter((one) => one !== undefined);
}

function attachmentOf(
  { file_id: ref, file_name: name, mime_type: type, file_size: bytes }: File,
  otherName: string,
  otherType?: string,
): ReceivedAttachment {
  return { ref, name: name ?? otherName, mediaType: type ?? otherType, bytes };
}

function stickerOf(sticker: NonNullable<Message['sticker']>): ReceivedAttachment {
  if (sticker.is_video === true) return attachmentOf(sticker, 'sticker.webm', 'video/webm');
  return sticker.is_animated === true
    ? attachmentOf(sticker, 'sticker.tgs', 'application/gzip')
    : attachmentOf(sticker, 'sticker.webp', 'image/webp');
}
