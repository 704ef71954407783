import type { MessageAttachment } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { ModelInfo, ModelMessage, ModelPart } from '../../../../llm/model.ts';
import type { FenceLabel } from '../../../../runtime/fence.ts';
import type { MediaApi } from '../../../environment/media/api.ts';
import type { PastAttachments } from '../../sessions/api.ts';
import { imageTypes, userMessage } from './completion.ts';

type Kind = 'image' | 'pdf' | 'text';

const textType =
  /^(?:text\/.+|image\/svg\+xml|application\/(?:.+\+(?:json|xml)|json|x-ndjson|xml|yaml|x-yaml|toml|sql|javascript|x-javascript|typescript|x-sh|rtf))$/;
const accepted = `${[...imageTypes].join(', ')}, application/pdf, and types of text`;

/** Bytes of one; more than what vendors take of an image, or what is worth its tokens as a text, is refused while it can be said. */
const maxBytes: Readonly<Record<Kind, number>> = { image: 5_242_880, pdf: 20_971_520, text: 524_288 };
/** Of all that go with one call, those of earlier messages included; a third more on the wire, where vendors take 32 MB. */
const maxTotalBytes = 20_971_520;
/** Earlier messages whose attachments are shown to the model again; of older ones a note is left. */
const recentMessages = 4;

export interface AttachmentsDeps {
  readonly media: Pick<MediaApi, 'find' | 'read'>;
  readonly fence: (text: string, label: FenceLabel) => string;
}

export interface Attachments {
  /** The facts of media that the caller may use; `not_found` for others, `invalid_params` for what no model is sent. */
  find(ids: readonly string[], call: CallContext): Promise<readonly MessageAttachment[]>;
  /** The message as the model gets it: images and PDF files as parts, text inside fences and shown to `inspect` before. */
  attach(message: string, attachments: readonly MessageAttachment[], inspect: (text: string) => void): Promise<ModelMessage>;
  /** A conversation with its attachments put back, as far as `input` of the model and the room beside `beside` allow. */
  restore(
    messages: readonly ModelMessage[],
    past: readonly PastAttachments[],
    room: { readonly input: ModelInfo['input']; readonly beside: readonly MessageAttachment[] },
  ): Promise<readonly ModelMessage[]>;
}

/** Stored media in messages: who may attach them was decided when the message was taken, so they are read again without asking. */
export function createAttachments({ media, fence }: AttachmentsDeps): Attachments {
  async function load(attachment: MessageAttachment, inspect?: (text: string) => void): Promise<ModelPart | undefined> {
    const bytes = await media.read(attachment.mediaId);
    if (bytes === undefined) return undefined;
    const { contentType } = attachment;
    const name = nameOf(attachment);
    const kind = kindOf(contentType);
    if (kind === 'text') {
      const text = bytes.toString('utf8');
      inspect?.(text);
      return { type: 'text', text: fence(text, { source: 'attachment', name }) };
    }
    const url = `data:${contentType};base64,${bytes.toString('base64')}`;
    return kind === 'image' ? { type: 'image', url } : { type: 'file', url, name };
  }

  async function past(attachments: readonly MessageAttachment[], fits: (attachment: MessageAttachment) => boolean): Promise<ModelPart[]> {
    const parts: ModelPart[] = [];
    for (const attachment of attachments) {
      const part = fits(attachment) ? await load(attachment) : undefined;
      parts.push(
        part ?? { type: 'text', text: fence(`${attachment.contentType}, not shown again`, { source: 'attachment', name: nameOf(attachment) }) },
      );
    }
    return parts;
  }

  return {
    async find(ids, call) {
      const found: MessageAttachment[] = [];
      for (const id of new Set(ids)) {
        const { mediaId, contentType, size, fileName } = await media.find(id, call).catch((error: unknown) => {
          throw error instanceof AppError && error.code === 'not_found' ? unknownMedium(`attachments.${ids.indexOf(id)}.mediaId`) : error;
        });
        const kind = kindOf(contentType);
        if (kind === undefined) throw refuse(`${id} is of type ${contentType}; expected one of ${accepted}`);
        if (size > maxBytes[kind]) throw refuse(`${id} has ${size} bytes; a file of type ${contentType} may have ${maxBytes[kind]}`);
        found.push({ mediaId, contentType, size, ...(fileName !== undefined && { fileName }) });
      }
      if (bytesOf(found) > maxTotalBytes) throw refuse(`the files have ${bytesOf(found)} bytes; together they may have ${maxTotalBytes}`);
      return found;
    },

    async attach(message, attachments, inspect) {
      const parts: ModelPart[] = [];
      for (const attachment of attachments) {
        const part = await load(attachment, inspect);
        if (part === undefined) throw unknownMedium('attachments');
        parts.push(part);
      }
      return withParts(message, parts);
    },

    async restore(messages, history, { input, beside }) {
      const restored = [...messages];
      let left = maxTotalBytes - bytesOf(beside);
      for (const [age, { index, attachments }] of history.toReversed().entries()) {
        const message = restored[index];
        if (message === undefined) continue;
        const parts = await past(attachments, ({ contentType, size }) => {
          const kind = kindOf(contentType);
          if (age >= recentMessages || kind === undefined || size > left || !input.includes(kind)) return false;
          left -= size;
          return true;
        });
        restored[index] = withParts(message.content, parts);
      }
      return restored;
    },
  };
}

/** The kinds beside text that attachments need a model for. */
export function mediaOf(attachments: readonly MessageAttachment[]): ReadonlySet<'image' | 'pdf'> {
  const kinds = attachments.map(({ contentType }) => kindOf(contentType));
  return new Set(kinds.filter((kind) => kind === 'image' || kind === 'pdf'));
}

const refuse = (message: string) => new AppError('invalid_params', `attachments: ${message}`, { param: 'attachments' });
const unknownMedium = (param: string) => new AppError('not_found', `${param}: there is no such medium`, { param });
const nameOf = ({ fileName, mediaId }: MessageAttachment) => fileName ?? mediaId;
const bytesOf = (attachments: readonly MessageAttachment[]) => attachments.reduce((sum, { size }) => sum + size, 0);

function kindOf(contentType: string): Kind | undefined {
  if (imageTypes.has(contentType)) return 'image';
  if (contentType === 'application/pdf') return 'pdf';
  return textType.test(contentType) ? 'text' : undefined;
}

/** Texts become one with the message unless there is something else. */
function withParts(message: string, parts: readonly ModelPart[]): ModelMessage {
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  if (texts.length === parts.length) return { role: 'user', content: [message, ...texts].join('\n\n') };
  return userMessage(message, [{ type: 'text', text: message }, ...parts]);
}
