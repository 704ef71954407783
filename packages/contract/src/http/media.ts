import * as z from 'zod';
import { once } from '../once.ts';
import { EpochMs } from '../shared/turn.ts';

/** Letters, digits, dots, hyphens and underscores (http-gateway.md §4.7); no leading dot, no `..`, no sidecar. */
export const MediaId = z
  .string()
  .max(200)
  .regex(
    /^(?!\.)(?!.*\.\.)(?!.*\.[mM][eE][tT][aA]$)[A-Za-z0-9._-]+$/,
    'expected letters, digits, ".", "-" and "_", without a leading dot, ".." or ".meta" at the end',
  )
  .meta({ id: 'MediaId' });

/** Facts of a stored media file: answer of `POST /media` and `GET /media/{id}/meta`. */
export const MediaInfo = once(() =>
  z
    .strictObject({
      mediaId: MediaId,
      contentType: z.string(),
      size: z.int().min(0).describe('Bytes.'),
      fileName: z.string().optional(),
      savedAt: EpochMs,
    })
    .meta({ id: 'MediaInfo' }),
);
export type MediaInfo = z.output<ReturnType<typeof MediaInfo>>;

/** Answer of `GET /media`: newest first. */
export const MediaList = once(() =>
  z
    .strictObject({
      media: z.array(MediaInfo()),
      total: z.int().min(0).describe('Files that match, on all pages.'),
      totalBytes: z.int().min(0).describe('Bytes of all of these.'),
    })
    .meta({ id: 'MediaList' }),
);
export type MediaList = z.output<ReturnType<typeof MediaList>>;

/** Page of a list in the query of `GET /media`. */
export const MediaPage = once(() =>
  z.strictObject({
    limit: z.coerce.number().int().min(1).max(200).default(50),
    offset: z.coerce.number().int().min(0).max(1_000_000).default(0),
    search: z.string().min(1).max(200).optional().describe('Only files whose name, id or content type contains it, in any case.'),
  }),
);
export type MediaPage = z.output<ReturnType<typeof MediaPage>>;
