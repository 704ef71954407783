import { MediaId, MediaPage } from '@gatehouse/contract';
import * as z from 'zod';
import type { MediaLibrary, Upload } from '../../features/environment/media/api.ts';
import { AppError } from '../../kernel/app-error.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/log.ts';
import type { HttpCall } from '../http-call.ts';
import { issuesOf, sentenceOf } from '../../kernel/issues.ts';
import { pacedBody } from '../paced-body.ts';
import { parseQuery } from '../query.ts';
import { sendEmpty, sendJson } from '../reply.ts';
import { sendMediaFile } from './media-download.ts';
import { multipartOverheadBytes, multipartUpload } from './multipart-upload.ts';

export interface MediaRoutesDeps {
  readonly media: MediaLibrary;
  readonly clock: Clock;
  readonly log: Log;
}

/** A raw body cannot carry a name; the query can. */
const UploadQuery = z.strictObject({ fileName: z.string().optional() });

type RouteHandler = (call: HttpCall) => Promise<void>;

/** Upload, download, listing and removal of media (http-gateway.md §4.7). Another caller's media file does not exist for the caller. */
export function createMediaRoutes(deps: MediaRoutesDeps): Readonly<Record<'upload' | 'list' | 'get' | 'info' | 'remove', RouteHandler>> {
  const { media } = deps;
  return {
    async upload(call) {
      const over = new AbortController();
      try {
        const info = await media.save(await uploadOf(call, deps, over.signal), call.context());
        call.setHeader('location', `/media/${info.mediaId}`);
        sendJson(call, 201, info);
      } catch (error) {
        if (!call.incoming.complete) {
          // The rest of the body must not be taken for a request.
          call.setHeader('connection', 'close');
          call.discardsBody = true;
        }
        throw error;
      } finally {
        over.abort();
      }
    },
    async list(call) {
      sendJson(call, 200, await media.list(parseQuery(MediaPage(), call), call.context()));
    },
    async get(call) {
      await using mediaFile = await media.open(idOf(call), call.context());
      await sendMediaFile(call, mediaFile, deps);
    },
    async info(call) {
      sendJson(call, 200, await media.find(idOf(call), call.context()));
    },
    async remove(call) {
      await media.remove(idOf(call), call.context());
      sendEmpty(call, 204);
    },
  };
}

/** Returns the id as sent, undecoded: no encoding leads to a name that the rule did not see. */
function idOf(call: HttpCall): string {
  const id = MediaId.safeParse(call.params['id']);
  if (!id.success) throw new AppError('invalid_params', `mediaId: ${sentenceOf(issuesOf(id.error))}`, { param: 'mediaId' });
  return id.data;
}

async function uploadOf(call: HttpCall, { media, clock }: MediaRoutesDeps, signal: AbortSignal): Promise<Upload> {
  const { headers } = call.incoming;
  const { fileName } = parseQuery(UploadQuery, call);
  const contentType = headers['content-type'];
  const declared = headers['content-length'] === undefined ? undefined : Number(headers['content-length']);
  if (contentType === undefined || !/^multipart\/form-data\s*(;|$)/i.test(contentType))
    return { body: pacedBody(call, { limit: media.maxFileBytes, clock }), contentType, fileName, size: declared };
  if (fileName !== undefined)
    throw new AppError('invalid_params', 'fileName: expected in the part of a multipart body, not in the query', { param: 'fileName' });
  const limit = media.maxFileBytes + multipartOverheadBytes;
  if (declared !== undefined && declared > limit)
    throw new AppError('payload_too_large', `The file must not be larger than ${media.maxFileBytes} bytes (media.maxFileBytes)`);
  return multipartUpload(contentType, pacedBody(call, { limit, clock }), signal);
}
