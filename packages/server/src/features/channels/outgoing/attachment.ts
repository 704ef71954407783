import type { MediaInfo, Params } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Egress } from '../../../kernel/egress.ts';
import { notHere, plainPath, readFileInside } from '../../../kernel/safe-path.ts';
import type { MediaLibrary } from '../../environment/media/api.ts';
import type { OutgoingFile } from '../delivery/api.ts';

export interface AttachmentDeps {
  readonly media: Pick<MediaLibrary, 'find' | 'save' | 'maxFileBytes'>;
  readonly egress: Pick<Egress, 'request'>;
  /** Returns the folder of an agent. */
  readonly workspaceOf: (agentId: string) => string | undefined;
  /** Whether a path names a repository, or a file of the daemon, in a workspace. */
  readonly isInternal: (path: string) => boolean;
}

type Asked = Pick<Params<'message.attach'>, 'attachment_url' | 'attachment_type' | 'mime_type' | 'file_name'>;

const fetchMs = 60_000;
const mediaPath = '/media/';
/** Before the path of a file in the workspace of an agent that calls. */
export const workspaceScheme = 'workspace:';

/** Returns the file to send: one of the media store, or one that is put there, from a public address or the workspace of the calling agent. */
export function createFindFile({ media, egress, workspaceOf, isInternal }: AttachmentDeps) {
  return async (asked: Asked, mostBytes: number, call: CallContext): Promise<OutgoingFile> => {
    const info = await find(asked, mostBytes, call);
    if (info.size > mostBytes) throw tooLarge(mostBytes);
    const { mediaId, contentType, size, fileName } = info;
    return { mediaId, kind: asked.attachment_type, name: asked.file_name ?? fileName ?? mediaId, mediaType: contentType, bytes: size };
  };

  async function find(asked: Asked, mostBytes: number, call: CallContext): Promise<MediaInfo> {
    const { attachment_url: url } = asked;
    if (/^https?:/i.test(url)) return fetched(asked, mostBytes, call);
    const folder = call.agentCaller && workspaceOf(call.agentCaller.agentId);
    if (folder !== undefined && url.startsWith(workspaceScheme)) return kept(folder, url.slice(workspaceScheme.length), mostBytes, call);
    return media.find(idOf(url), call).catch((error: unknown) => Promise.reject(namedError(error)));
  }

  async function kept(folder: string, text: string, mostBytes: number, call: CallContext): Promise<MediaInfo> {
    const path = plainPath(text);
    if (isInternal(path)) throw notHere();
    const bytes = await readFileInside(folder, path, { maxBytes: Math.min(mostBytes, media.maxFileBytes) });
    return media.save({ body: toChunks(bytes), size: bytes.byteLength, fileName: path.split('/').at(-1) }, call);
  }

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
