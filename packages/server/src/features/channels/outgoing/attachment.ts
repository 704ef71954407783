import type { MediaInfo, Params } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Egress } from '../../../kernel/egress.ts';
import type { MediaLibrary } from '../../environment/media/api.ts';
import type { OutgoingFile } from '../delivery/api.ts';

export interface AttachmentDeps {
  readonly media: Pick<MediaLibrary, 'find' | 'save' | 'maxFileBytes'>;
  readonly egress: Pick<Egress, 'request'>;
}

type Asked = Pick<Params<'message.attach'>, 'attachment_url' | 'attachment_type' | 'mime_type' | 'file_name'>;

const fetchMs = 60_000;
const mediaPath = '/media/';

/** Returns the file to send: one of the media store, or one that is fetched into it from a public address. */
export function createFindFile({ media, egress }: AttachmentDeps) {
  return async (asked: Asked, mostBytes: number, call: CallContext): Promise<OutgoingFile> => {
    const info = /^https?:/i.test(asked.attachment_url)
      ? await fetched(asked, mostBytes, call)
      : await media.find(idOf(asked.attachment_url), call).catch((error: unknown) => Promise.reject(namedError(error)));
    if (info.size > mostBytes) throw tooLarge(mostBytes);
    const { mediaId, contentType, size, fileName } = info;
    return { mediaId, kind: asked.attachment_type, name: asked.file_name ?? fileName ?? mediaId, mediaType: contentType, bytes: size };
  };

  async function fetched({ attachment_url: url, mime_type, file_name }: Asked, mostBytes: number, call: CallContext): Promise<MediaInfo> {
    const most = Math.min(mostBytes, media.maxFileBytes);
    const { body, truncated, headers } = await egress.request({
      url,
      maxBytes: most,
      timeoutMs: fetchMs,
      signal: call.signal,
      accept({ status }) {
        if (status < 200 || status > 299) throw new AppError('unavailable', `attachment_url: its server answered with status ${status}`);
      },
    });
    if (truncated) throw tooLarge(most);
    const name = file_name ?? nameOf(url);
    return media.save(
      {
        body: toChunks(body),
        size: body.byteLength,
        contentType: mime_type ?? headers['content-type'],
        ...(name !== undefined && { fileName: name }),
      },
      call,
    );
  }
}

async function* toChunks(body: Uint8Array): AsyncGenerator<Uint8Array> {
  yield body;
}

const idOf = (text: string): string => (text.startsWith(mediaPath) ? text.slice(mediaPath.length) : text);

/** Returns the last name of the path of an address; the store cleans it. */
function nameOf(url: string): string | undefined {
  const last = URL.parse(url)?.pathname.split('/').at(-1);
  return last === undefined || last === '' ? undefined : last;
}

/** The error about a file names the parameter of this method. */
function namedError(error: unknown): unknown {
  if (!(error instanceof AppError) || error.code !== 'not_found') return error;
  return new AppError('not_found', 'attachment_url: expected the id of a media file, /media/<id>, or an http(s) address', {
    param: 'attachment_url',
  });
}

const tooLarge = (most: number): AppError =>
  new AppError('payload_too_large', `attachment_url: the file is larger than ${most} bytes, the most that this channel takes`, {
    param: 'attachment_url',
  });
