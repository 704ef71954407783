import type { MessageAttachment } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { ModelInfo, ModelMessage, ModelPart } from '../../../../llm/model.ts';
import type { Models } from '../../../../llm/models.ts';
import type { FenceText } from '../../../../runtime/fence.ts';
import type { DocumentsApi } from '../../../environment/documents/api.ts';
import type { MediaApi } from '../../../environment/media/api.ts';
import type { PastAttachments } from '../../sessions/api.ts';
import { imageTypes, userMessage } from './completion.ts';
import { fittingModels } from './media-support.ts';

/** `document`: its text is extracted, and a long one is shown as an outline with its beginning. */
type Kind = 'image' | 'pdf' | 'text' | 'document';

const textType =
  /^(?:text\/.+|image\/svg\+xml|application\/(?:.+\+(?:json|xml)|json|x-ndjson|xml|yaml|x-yaml|toml|sql|javascript|x-javascript|typescript|x-sh))$/;
const accepted = `${[...imageTypes].join(', ')}, application/pdf, types of text, and documents (DOCX, XLSX, PPTX, ODT, EPUB, RTF, mail, archives)`;

/** Maximum bytes of one attachment that is sent as a file: the limits of vendors. Checked early to return a clear error. */
const maxFileBytes = { image: 5_242_880, pdf: 20_971_520 } as const;
/** Texts up to here are sent whole. */
const maxWholeBytes = 65_536;
/** Maximum bytes of all attachments of one call, including earlier messages; a third more on the wire, where vendors accept 32 MB. */
const maxTotalBytes = 20_971_520;
/** Number of earlier messages whose attachments are sent again; older ones are replaced by a note. */
const recentMessages = 4;

export interface AttachmentsDeps {
  readonly media: Pick<MediaApi, 'find' | 'read'>;
  readonly documents: DocumentsApi;
  readonly fence: FenceText;
}

/** The kinds that the first model of a turn takes; the text of others is extracted where that is possible. */
type Input = ModelInfo['input'];

export interface Attachments {
  /** Returns the metadata of media that the caller may use; throws `not_found` for others, `invalid_params` for unsupported types. */
  find(ids: readonly string[], call: CallContext): Promise<readonly MessageAttachment[]>;
  /**
   * Returns the message for the model: images and PDF files as parts, texts fenced after passing through `inspect`. A document that cannot be
   * read becomes a note with the reason.
   */
  attach(
    message: string,
    attachments: readonly MessageAttachment[],
    how: { readonly input: Input; readonly inspect: (text: string) => void; readonly call: CallContext },
  ): Promise<ModelMessage>;
  /** Restores the attachments of a conversation, as far as the model's `input` and the size limit, less `own`, allow. */
  restore(
    messages: readonly ModelMessage[],
    past: readonly PastAttachments[],
    limits: { readonly input: Input; readonly own: readonly MessageAttachment[]; readonly call: CallContext },
  ): Promise<readonly ModelMessage[]>;
}

/** Handles stored media in messages. Access was checked when the message was accepted, so they are read again without a check. */
export function createAttachments({ media, documents, fence }: AttachmentsDeps): Attachments {
  const nameFenced = (text: string, attachment: MessageAttachment) => fence(text, { source: 'attachment', name: nameOf(attachment) });

  async function load(
    attachment: MessageAttachment,
    { input, inspect, call }: { readonly input: Input; readonly inspect?: (text: string) => void; readonly call: CallContext },
  ): Promise<ModelPart | undefined> {
    const bytes = await media.read(attachment.mediaId);
    if (bytes === undefined) return undefined;
    const { contentType } = attachment;
    const kind = kindOf(attachment, input);
    if (kind === 'text' || kind === 'document') {
      const text = kind === 'text' ? bytes.toString('utf8') : await read(attachment, bytes, call);
      inspect?.(text);
      return { type: 'text', text: nameFenced(text, attachment) };
    }
    const url = `data:${contentType};base64,${bytes.toString('base64')}`;
    return kind === 'image' ? { type: 'image', url } : { type: 'file', url, name: nameOf(attachment) };
  }

  /** Returns the text of a document, or why it cannot be read. */
  async function read(attachment: MessageAttachment, bytes: Uint8Array, call: CallContext): Promise<string> {
    try {
      const document = await documents.extract({ bytes, fileName: nameOf(attachment) }, call);
      return documents.show(document, { more: `the tool read_document, media_id ${attachment.mediaId}` });
    } catch (error) {
      if (call.signal.aborted || !(error instanceof AppError) || error.code === 'internal') throw error;
      return `${attachment.contentType}, not shown: ${error.message}`;
    }
  }

  async function past(
    attachments: readonly MessageAttachment[],
    fits: (attachment: MessageAttachment) => boolean,
    how: { readonly input: Input; readonly call: CallContext },
  ): Promise<ModelPart[]> {
    const parts: ModelPart[] = [];
    for (const attachment of attachments) {
      const part = fits(attachment) ? await load(attachment, how) : undefined;
      parts.push(part ?? { type: 'text', text: nameFenced(`${attachment.contentType}, not shown again`, attachment) });
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
        const attachment = { mediaId, contentType, size, ...(fileName !== undefined && { fileName }) };
        const kind = kindOf(attachment, everything);
        if (kind === 'document' && !textType.test(contentType) && !documents.reads(contentType))
          throw refuse(`${id} is of type ${contentType}; expected one of ${accepted}`);
        const limit = kind === 'image' || kind === 'pdf' ? maxFileBytes[kind] : documents.maxFileBytes;
        if (size > limit) throw refuse(`${id} has ${size} bytes; the limit for ${contentType} is ${limit}`);
        found.push(attachment);
      }
      if (bytesOf(found) > maxTotalBytes) throw refuse(`the files have ${bytesOf(found)} bytes; the total limit is ${maxTotalBytes}`);
      return found;
    },

    async attach(message, attachments, how) {
      const parts: ModelPart[] = [];
      for (const attachment of attachments) {
        const part = await load(attachment, how);
        if (part === undefined) throw unknownMediaFile('attachments');
        parts.push(part);
      }
      return withParts(message, parts);
    },

    async restore(messages, history, { input, own, call }) {
      const restored = [...messages];
      let left = maxTotalBytes - bytesOf(own);
      for (const [age, { index, attachments }] of history.toReversed().entries()) {
        const message = restored[index];
        if (message === undefined) continue;
        const fits = (attachment: MessageAttachment) => {
          const kind = kindOf(attachment, input);
          const size = sentBytes(attachment);
          if (age >= recentMessages || size > left || (kind === 'image' && !input.includes(kind))) return false;
          left -= size;
          return true;
        };
        const parts = await past(attachments, fits, { input, call });
        restored[index] = withParts(message.content, parts);
      }
      return restored;
    },
  };
}

/**
 * Returns the models of a turn that take the attachments; throws `invalid_params` when the first one does not. For a first model without PDF
 * files their text is extracted.
 */
export function modelsTaking(
  models: readonly ModelInfo[],
  attachments: readonly MessageAttachment[],
  unsupported: Models['unsupported'],
): readonly ModelInfo[] {
  const kinds = attachments.map((attachment) => kindOf(attachment, models[0]?.input ?? everything));
  const media = new Set(kinds.filter((kind) => kind === 'image' || kind === 'pdf'));
  return fittingModels(models, { media, mediaParam: 'attachments' }, unsupported);
}

const refuse = (message: string) => new AppError('invalid_params', `attachments: ${message}`, { param: 'attachments' });
const unknownMediaFile = (param: string) => new AppError('not_found', `${param}: media file not found`, { param });
const nameOf = ({ fileName, mediaId }: MessageAttachment) => fileName ?? mediaId;
/** Returns the bytes that count against the limit: of a document at most the beginning is sent. */
const sentBytes = (attachment: MessageAttachment) =>
  kindOf(attachment, everything) === 'document' ? Math.min(attachment.size, maxWholeBytes) : attachment.size;
const bytesOf = (attachments: readonly MessageAttachment[]) => attachments.reduce((sum, one) => sum + sentBytes(one), 0);

const everything: Input = ['text', 'image', 'pdf'];

function kindOf({ contentType, size }: Pick<MessageAttachment, 'contentType' | 'size'>, input: Input): Kind {
  if (imageTypes.has(contentType)) return 'image';
  if (contentType === 'application/pdf') return input.includes('pdf') ? 'pdf' : 'document';
  return textType.test(contentType) && size <= maxWholeBytes ? 'text' : 'document';
}

/** Merges texts into the message when there are no other parts. */
function withParts(message: string, parts: readonly ModelPart[]): ModelMessage {
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  if (texts.length === parts.length) return { role: 'user', content: [message, ...texts].join('\n\n') };
  return userMessage(message, [{ type: 'text', text: message }, ...parts]);
}
