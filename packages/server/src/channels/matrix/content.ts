import type { OutgoingAttachment, OutgoingPart } from '../port.ts';

/** An event has 65,536 bytes, with what the homeserver adds. */
const mostContent = 60_000;

type Text = Pick<OutgoingPart, 'text' | 'markup'>;

const sizeOf = (content: object): number => Buffer.byteLength(JSON.stringify(content));

/** Whether a content fits into an event. */
export const fits = (content: object): boolean => sizeOf(content) <= mostContent;

/** Returns a text with its markup, where both fit into an event. It mentions nobody: a model must not ping people. */
function textOf({ text, markup }: Text, mostBytes: number): object {
  const plain = { body: text.toWellFormed(), 'm.mentions': {} };
  const both = { ...plain, format: 'org.matrix.custom.html', formatted_body: markup?.toWellFormed() };
  return markup === undefined || sizeOf(both) > mostBytes ? plain : both;
}

/** Returns the content of a message. */
export const messageContent = (part: OutgoingPart): object => ({ msgtype: 'm.text', ...textOf(part, mostContent), ...relationTo(part) });

/** Returns the content of a new version of a message, for clients that know edits and those that do not. */
export function editContent(eventId: string, part: Text): object {
  const next = { msgtype: 'm.text', ...textOf(part, mostContent / 2) };
  return {
    msgtype: 'm.text',
    body: `* ${part.text.toWellFormed()}`,
    'm.mentions': {},
    'm.new_content': next,
    'm.relates_to': { rel_type: 'm.replace', event_id: eventId },
  };
}

function relationTo({ threadId, replyTo }: OutgoingPart): object {
  const answers = (eventId: string) => ({ 'm.in_reply_to': { event_id: eventId } });
  if (threadId !== undefined)
    return {
      'm.relates_to': { rel_type: 'm.thread', event_id: threadId, is_falling_back: replyTo === undefined, ...answers(replyTo ?? threadId) },
    };
  return replyTo === undefined ? {} : { 'm.relates_to': answers(replyTo) };
}

const types: Readonly<Record<OutgoingAttachment['kind'], string>> = {
  image: 'm.image',
  file: 'm.file',
  audio: 'm.audio',
  video: 'm.video',
  voice: 'm.audio',
};

/** Returns the content of a file that is uploaded, with its caption. */
export function fileContent(part: OutgoingPart, { kind, name, mediaType, bytes }: OutgoingAttachment, url: string): object {
  const caption = part.text === '' ? { body: name, 'm.mentions': {} } : textOf(part, mostContent);
  return {
    ...caption,
    msgtype: types[kind],
    filename: name,
    url,
    info: { mimetype: mediaType, size: bytes },
    ...(kind === 'voice' && { 'org.matrix.msc3245.voice': {} }),
    ...relationTo(part),
  };
}
