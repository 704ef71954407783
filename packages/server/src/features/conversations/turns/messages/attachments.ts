import type { MessageAttachment } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { ModelInfo, ModelMessage, ModelPart } from '../../../../llm/model.ts';
import type { FenceText } from '../../../../runtime/fence.ts';
import type { MediaApi } from '../../../environment/media/api.ts';
import type { PastAttachments } from '../../sessions/api.ts';
import { imageTypes, userMessage } from './completion.ts';

type Kind = 'image' | 'pdf' | 'text';

const textType =
  /^(?:text\/.+|image\/svg\+xml|application\/(?:.+\+(?:json|xml)|json|x-ndjson|xml|yaml|x-yaml|toml|sql|javascript|x-javascript|typescript|x-sh|rtf))$/;
const accepted = `${[...imageTypes].join(', ')}, application/pdf, and types of text`;

/** Maximum bytes of one attachment: vendor limits for images, and a limit for texts worth their tokens. Checked early to return a clear error. */
const maxBytes: Readonly<Record<Kind, number>> = { image: 5_242_880, pdf: 20_971_520, text: 524_288 };
/** Maximum bytes of all attachments of one call, including earlier messages; a third more on the wire, where vendors accept 32 MB. */
const maxTotalBytes = 20_971_520;
/** Number of earlier messages whose attachments are sent again; older ones are replaced by a note. */
const recentMessages = 4;

export interface AttachmentsDeps {
  readonly media: Pick<MediaApi, 'find' | 'read'>;
  readonly fence: FenceText;
}

export interface Attachments {
  /** Returns the metadata of media that the caller may use; throws `not_found` for others, `invalid_params` for unsupported types. */
  find(ids: readonly string[], call: CallContext): Promise<readonly MessageAttachment[]>;
  /** Returns the message for the model: images and PDF files as parts, texts fenced after passing through `inspect`. */
  attach(message: string, attachments: readonly MessageAttachment[], inspect: (text: string) => void): Promise<ModelMessage>;
  /** Restores the attachments of a conversation, as far as the model's `input` and the size limit, less `own`, allow. */
  restore(
    messages: readonly ModelMessage[],
    past: readonly PastAttachments[],
    limits: { readonly input: ModelInfo['input']; readonly own: readonly MessageAttachment[] },
  ): Promise<readonly ModelMessage[]>;
}

/** Handles stored media in messages. Access was checked when the message was accepted, so they are read again without a check. */
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
          throw error instanceof AppError && error.code === 'not_found' ? unknownMediaFile(`attachments.${ids.indexOf(id)}.mediaId`) : error;
        });
        const kind = kindOf(contentType);
        if (kind === undefined) throw refuse(`${id} is of type ${contentType}; expected one of ${accepted}`);
        if (size > maxBytes[kind]) throw refuse(`${id} has ${size} bytes; the limit for ${contentType} is ${maxBytes[kind]}`);
        found.push({ mediaId, contentType, size, ...(fileName !== undefined && { fileName }) });
      }
      if (bytesOf(found) > maxTotalBytes) throw refuse(`the files have ${bytesOf(found)} bytes; the total limit is ${maxTotalBytes}`);
      return found;
    },

    async attach(message, attachments, inspect) {
      const parts: ModelPart[] = [];
      for (const attachment of attachments) {
        const part = await load(attachment, inspect);
        if (part === undefined) throw unknownMediaFile('attachments');
        parts.push(part);
      }
      return withParts(message, parts);
    },

    async restore(messages, history, { input, own }) {
      const restored = [...messages];
      let left = maxTotalBytes - bytesOf(own);
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

/** Returns the non-text kinds that a model must support for the attachments. */
export function mediaOf(attachments: readonly MessageAttachment[]): ReadonlySet<'image' | 'pdf'> {
  const kinds = attachments.map(({ contentType }) => kindOf(contentType));
  return new Set(kinds.filter((kind) => kind === 'image' || kind === 'pdf'));
}

const refuse = (message: string) => new AppError('invalid_params', `attachments: ${message}`, { param: 'attachments' });
const unknownMediaFile = (param: string) => new AppError('not_found', `${param}: media file not found`, { param });
const nameOf = ({ fileName, mediaId }: MessageAttachment) => fileName ?? mediaId;
const bytesOf = (attachments: readonly MessageAttachment[]) => attachments.reduce((sum, { size }) => sum + size, 0);

function kindOf(contentType: string): Kind | undefined {
  if (imageTypes.has(contentType)) return 'image';
  if (contentType === 'application/pdf') return 'pdf';
  return textType.test(contentType) ? 'text' : undefined;
}

/** Merges texts into the message when there are no other parts. */
function withParts(message: string, parts: readonly ModelPart[]): ModelMessage {
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  if (texts.length === parts.length) return { role: 'user', content: [message, ...texts].join('\n\n') };
  return userMessage(message, [{ type: 'text', text: message }, ...parts]);
}
