import { Worker } from 'node:worker_threads';
import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import { createLanes } from '../../../../kernel/lane.ts';
import type { Sniffed } from '../sniff.ts';
import { readDimensions } from './dimensions.ts';

export interface ShrinkOrder {
  readonly bytes: Uint8Array;
  readonly maxSide: number;
  readonly maxPixels: number;
  readonly maxBytes: number;
}

export type ShrunkPicture =
  | { readonly bytes: Uint8Array; readonly mimeType: string; readonly width: number; readonly height: number }
  | { readonly refused: string | undefined };

export interface Picture {
  readonly bytes: Uint8Array;
  readonly mimeType: string;
}

/**
 * Returns an image as models take it: PNG, JPEG, GIF or WebP of at most `maxSide` pixels a side; the same bytes when they are that already.
 * Fails with `payload_too_large` for images with too many pixels, `invalid_params` for those that cannot be read.
 */
export type FitPicture = (
  picture: Picture & Sniffed,
  limits: { readonly maxSide: number; readonly maxPixels: number },
  signal: AbortSignal,
) => Promise<Picture>;

/** Most of what vendors accept for one image. */
const maxModelBytes = 4 * 1024 * 1024;
const asIs: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);
/** Threads at once: each may hold an image of `media.vision.maxPixels`. */
const maxThreads = 1;
const shrinkMs = 60_000;
const resourceLimits = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 };
const Answer = z.union([
  z.strictObject({ bytes: z.instanceof(Uint8Array), mimeType: z.string(), width: z.number(), height: z.number() }),
  z.strictObject({ refused: z.string().optional() }),
]);

export function createFitPicture(clock: Clock, workerUrl: URL = defaultWorkerUrl()): FitPicture {
  const threads = createLanes();
  let pictures = 0;
  return async (picture, { maxSide, maxPixels }, signal) => {
    const claimed = readDimensions(picture.bytes);
    if (claimed !== undefined && claimed.width * claimed.height > maxPixels)
      throw tooLarge(`it has ${claimed.width}x${claimed.height} pixels, more than ${maxPixels}`);
    if (asIs.has(picture.mimeType)) {
      if (claimed === undefined || claimed.width === 0 || claimed.height === 0) throw unreadable('its header is broken');
      const fits = Math.max(claimed.width, claimed.height) <= maxSide && picture.bytes.byteLength <= maxModelBytes;
      if (fits) return picture;
    }
    pictures += 1;
    using _thread = await threads.acquire({ key: String(pictures), group: 'pictures', groupLimit: maxThreads, principalId: 'pictures', signal });
    const order: ShrinkOrder = { bytes: picture.bytes, maxSide, maxPixels, maxBytes: maxModelBytes };
    // No environment: it holds the keys of the installation.
    const worker = new Worker(workerUrl, { workerData: order, resourceLimits, env: {}, name: 'picture' });
    const outcome = Promise.withResolvers<z.output<typeof Answer>>();
    const onAbort = () => outcome.reject(new AppError('cancelled', 'The image was not read to its end'));
    signal.addEventListener('abort', onAbort, { once: true });
    const cancel = clock.after(shrinkMs, () => outcome.reject(new AppError('timeout', `The image was not read within ${shrinkMs} ms`)));
    worker.once('message', (message: unknown) => outcome.resolve(Answer.parse(message)));
    worker.once('error', (error) => outcome.reject(unreadable('it is too large or too broken', error)));
    worker.once('exit', () => outcome.reject(unreadable('it is too large or too broken')));
    try {
      const answer = await outcome.promise;
      if ('bytes' in answer) return { bytes: answer.bytes, mimeType: answer.mimeType };
      throw /more than/.test(answer.refused ?? '') ? tooLarge(answer.refused ?? '') : unreadable(answer.refused ?? 'it cannot be read');
    } finally {
      cancel();
      signal.removeEventListener('abort', onAbort);
      await worker.terminate();
    }
  };
}

const tooLarge = (why: string): AppError => new AppError('payload_too_large', `The image is too large: ${why}`);
const unreadable = (why: string, cause?: unknown): AppError =>
  new AppError('invalid_params', `The image cannot be read: ${why}`, cause === undefined ? {} : { cause });

/** The bundle has the worker next to the server. */
function defaultWorkerUrl(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './picture-worker.ts' : './picture-worker.js', import.meta.url);
}
