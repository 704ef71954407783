import type { ReceivedAttachment, ReceivedMessage } from '../port.ts';
import { type MatrixEvent, type Relation, relationOf, textIn } from './events.ts';
import { isEventId, parseMxc } from './ids.ts';
import { names, withoutFallback, withoutMention } from './mention.ts';
import type { Recent } from './recent.ts';
import type { Rooms } from './rooms.ts';

/** What was seen of an event. */
export interface Seen {
  readonly sender: string;
  readonly threadId: string | undefined;
}

export interface Us {
  readonly rooms: Rooms;
  readonly seen: Recent<Seen>;
  readonly nowMs: number;
}

type Content = Readonly<Record<string, unknown>>;

/** Returns what somebody else wrote, changed or deleted; undefined for what is not for people, and for our own events. */
export function messageOf(event: MatrixEvent, roomId: string, us: Us): ReceivedMessage | undefined {
  const { event_id: id, sender, content } = event;
  if (id === undefined || !isEventId(id)) return undefined;
  const relation = relationOf(event);
  const threadId = relation.type === 'm.thread' && relation.eventId !== undefined && isEventId(relation.eventId) ? relation.eventId : undefined;
  if (event.type === 'm.room.message' && relation.type !== 'm.replace') us.seen.set(id, { sender, threadId });
  if (sender === us.rooms.userId || event.state_key !== undefined) return undefined;
  if (event.type === 'm.room.redaction') return deletionOf(event, id, roomId, us);
  if (event.type !== 'm.room.message') return undefined;
  if (relation.type === 'm.replace') return editOf(event, id, relation, roomId, us);
  const said = saidBy(content, relation, roomId, sender, us);
  return said && { ...said, eventKey: id, messageId: id, threadId, ...addressOf(event, roomId, us) };
}

function addressOf({ sender, content, origin_server_ts: at = Number.NaN }: MatrixEvent, roomId: string, { rooms, nowMs }: Us) {
  return {
    conversationId: roomId,
    conversationKind: rooms.isDirect(roomId) ? ('direct' as const) : ('shared' as const),
    senderId: sender,
    senderName: rooms.nameIn(roomId, sender),
    isBot: textIn(content, 'msgtype') === 'm.notice' || textIn(content, 'msgtype') === 'm.server_notice',
    sentAtMs: Number.isSafeInteger(at) && at > 0 ? at : nowMs,
  };
}

function deletionOf(event: MatrixEvent, id: string, roomId: string, us: Us): ReceivedMessage | undefined {
  const target = event.redacts ?? textIn(event.content, 'redacts');
  if (target === undefined || !isEventId(target)) return undefined;
  const original = us.seen.get(target);
  const said = { text: '', mentionsUs: false, ...addressOf(event, roomId, us) };
  // The homeserver decides who may delete it; it is the message of its author.
  const senderId = original?.sender ?? event.sender;
  return { ...said, senderId, eventKey: id, messageId: target, edits: target, isDeleted: true, threadId: original?.threadId };
}

/** An edit has no thread: it is that of the message. */
function editOf(event: MatrixEvent, id: string, { eventId }: Relation, roomId: string, us: Us): ReceivedMessage | undefined {
  const content = event.content['m.new_content'];
  if (eventId === undefined || !isEventId(eventId) || typeof content !== 'object' || content === null) return undefined;
  const original = us.seen.get(eventId);
  // Nobody edits what another one wrote; not every homeserver refuses it.
  if (original !== undefined && original.sender !== event.sender) return undefined;
  const said = saidBy(content as Content, relationOf({ content: {} }), roomId, event.sender, us);
  return said && { ...said, eventKey: id, messageId: eventId, edits: eventId, threadId: original?.threadId, ...addressOf(event, roomId, us) };
}

type Said = Pick<ReceivedMessage, 'text' | 'mentionsUs' | 'attachments'>;

/** Requests of a client to a client, not texts. */
const ofClients = /^m\.key\.verification\./;

function saidBy(content: Content, relation: Relation, roomId: string, sender: string, us: Us): Said | undefined {
  const [type, body] = [textIn(content, 'msgtype'), textIn(content, 'body')];
  if (type === undefined || body === undefined || ofClients.test(type)) return undefined;
  const { userId } = us.rooms;
  const own = us.rooms.ownNames(roomId);
  const { text: whole, quotes } = relation.replyTo === undefined ? { text: body, quotes: undefined } : withoutFallback(body);
  const attachment = attachmentOf(type, body, content);
  const answered = relation.replyTo ?? (relation.type === 'm.thread' ? relation.eventId : undefined);
  const isAnswer = answered !== undefined && us.seen.get(answered)?.sender === userId;
  const isNamed = isMentioned(content, whole, userId, own);
  const written = attachment === undefined ? whole : captionOf(whole, content);
  const text = isNamed ? withoutMention(written, userId, own) : written;
  return {
    text: type === 'm.emote' ? `* ${us.rooms.nameIn(roomId, sender)} ${text}` : text,
    mentionsUs: isAnswer || quotes === userId || isNamed,
    ...(attachment !== undefined && { attachments: [attachment] }),
  };
}

/** A client that lists whom it mentions mentions nobody else. */
function isMentioned(content: Content, text: string, userId: string, own: readonly string[]): boolean {
  const mentions = content['m.mentions'];
  if (typeof mentions !== 'object' || mentions === null) return names(text, [userId, ...own]);
  const users: unknown = Reflect.get(mentions, 'user_ids');
  return Array.isArray(users) && users.includes(userId);
}

const fileTypes: ReadonlySet<string> = new Set(['m.image', 'm.file', 'm.audio', 'm.video']);
const longestName = 255;

/** The caption of a file: its body is its name where it has no other one. */
function captionOf(body: string, content: Content): string {
  const name = textIn(content, 'filename');
  return name === undefined || name === body ? '' : body;
}

function attachmentOf(type: string, body: string, content: Content): ReceivedAttachment | undefined {
  const ref = textIn(content, 'url');
  if (!fileTypes.has(type) || ref === undefined || parseMxc(ref) === undefined) return undefined;
  const info = typeof content['info'] === 'object' && content['info'] !== null ? (content['info'] as Content) : {};
  const [mediaType, bytes] = [textIn(info, 'mimetype'), info['size']];
  return {
    ref,
    name: (textIn(content, 'filename') ?? body).slice(0, longestName),
    ...(mediaType !== undefined && mediaType.length <= 255 && { mediaType }),
    ...(typeof bytes === 'number' && Number.isSafeInteger(bytes) && bytes >= 0 && { bytes }),
    ...(type === 'm.audio' && isVoice(content) && { isVoice: true }),
  };
}

const isVoice = (content: Content): boolean =>
  ['org.matrix.msc3245.voice', 'm.voice'].some((flag) => typeof content[flag] === 'object' && content[flag] !== null);
