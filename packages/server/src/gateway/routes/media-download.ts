import { pipeline } from 'node:stream/promises';
import type { MediaInfo } from '@gatehouse/contract';
import type { OpenMediaFile } from '../../features/environment/media/api.ts';
import { AppError } from '../../kernel/app-error.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/log.ts';
import type { HttpCall } from '../http-call.ts';
import { sendEmpty, sendError } from '../reply.ts';
import { checkPreconditions, chooseRange, type Representation } from './media-range.ts';

/** How long a reader may read nothing at all before it counts as gone. */
const stallMs = 30_000;

/** Types that a browser shows without running anything. All others, known or not, are offered for download. */
const shown = /^(?:image\/(?:png|apng|jpeg|gif|webp|avif|bmp)|audio\/[a-z0-9.+-]+|video\/[a-z0-9.+-]+|text\/plain)$/;

/** Answers with a media file, the requested part of it, or that the client already has it (RFC 9110 §13 to §15). */
export async function sendMediaFile(call: HttpCall, mediaFile: OpenMediaFile, deps: { readonly clock: Clock; readonly log: Log }): Promise<void> {
  const { info, etag } = mediaFile;
  const { headers, method } = call.incoming;
  const representation: Representation = { etag, modifiedMs: info.savedAt, size: info.size };
  call.setHeader('etag', etag);
  call.setHeader('last-modified', new Date(info.savedAt).toUTCString());
  call.setHeader('accept-ranges', 'bytes');
  call.setHeader('cache-control', 'private, no-cache');
  call.setHeader('content-security-policy', "default-src 'none'; sandbox");
  call.setHeader('cross-origin-resource-policy', 'same-origin');
  call.setHeader('referrer-policy', 'no-referrer');
  const precondition = checkPreconditions(headers, representation);
  if (precondition === 'not_modified') return sendEmpty(call, 304);
  if (precondition === 'failed')
    return sendError(call, new AppError('precondition_failed', 'The media file is not the one in If-Match or If-Unmodified-Since'), deps.log, 412);
  // Defined for GET alone (RFC 9110 §14.2).
  const range = method === 'GET' ? chooseRange(headers, representation) : undefined;
  if (range === 'unsatisfiable') {
    call.setHeader('content-range', `bytes */${info.size}`);
    return sendError(call, new AppError('invalid_params', `Range: expected bytes of 0 to ${info.size - 1}`, { param: 'Range' }), deps.log, 416);
  }
  const { start, end } = range ?? { start: 0, end: info.size - 1 };
  call.setHeader('content-type', info.contentType.startsWith('text/') ? `${info.contentType}; charset=utf-8` : info.contentType);
  call.setHeader('content-disposition', dispositionOf(info));
  call.setHeader('content-length', String(end - start + 1));
  if (range !== undefined) call.setHeader('content-range', `bytes ${start}-${end}/${info.size}`);
  call.writeHead(range === undefined ? 200 : 206);
  if (method === 'HEAD' || info.size === 0) return void call.outgoing.end();
  await stream(call, mediaFile, { start, end }, deps.clock);
}

async function stream(
  call: HttpCall,
  mediaFile: OpenMediaFile,
  { start, end }: { readonly start: number; readonly end: number },
  clock: Clock,
): Promise<void> {
  const { outgoing } = call;
  const bytes = mediaFile.stream(start, end);
  let sent = 0;
  let sentBefore = -1;
  bytes.on('data', (chunk: Buffer) => (sent += chunk.length));
  let cancelWatch = clock.after(stallMs, watch);
  function watch(): void {
    if (sent === sentBefore) return call.cut();
    sentBefore = sent;
    cancelWatch = clock.after(stallMs, watch);
  }
  try {
    await pipeline(bytes, outgoing, { end: false });
    // With fewer bytes than announced, the next response on this connection would be taken for the rest.
    if (sent === end - start + 1) outgoing.end();
    else outgoing.destroy();
  } catch (error) {
    // The client disconnected or was cut: there is nobody to answer.
    if (!(error instanceof Error && 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE')) throw error;
  } finally {
    cancelWatch();
  }
}

/** Returns `Content-Disposition` with the name in ASCII, and unchanged where that differs (RFC 6266). */
function dispositionOf({ mediaId, contentType, fileName = mediaId }: MediaInfo): string {
  const ascii = fileName.replaceAll(/[^\x20-\x7e]|["\\%]/g, '_');
  const encoded = encodeURIComponent(fileName).replaceAll(/['()*!]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
  return `${shown.test(contentType) ? 'inline' : 'attachment'}; filename="${ascii}"${ascii === fileName ? '' : `; filename*=UTF-8''${encoded}`}`;
}
