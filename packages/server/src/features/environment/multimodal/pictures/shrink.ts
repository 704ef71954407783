import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import { createLanes } from '../../../../kernel/lane.ts';
import type { Sniffed } from '../sniff.ts';
import { readDimensions } from './dimensions.ts';

export interface ShrinkOrder {
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
/** Processes at once: each takes 100 MB and more. */
const maxProcesses = 1;
const shrinkMs = 60_000;
const execArgv = ['--max-old-space-size=128', '--max-semi-space-size=16'];
const Answer = z.union([
  z.strictObject({ bytes: z.instanceof(Uint8Array), mimeType: z.string(), width: z.number(), height: z.number() }),
  z.strictObject({ refused: z.string().optional() }),
]);

export function createFitPicture(clock: Clock, processUrl: URL = defaultProcessUrl()): FitPicture {
  const processes = createLanes();
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
    using _slot = await processes.acquire({ key: String(pictures), group: 'pictures', groupLimit: maxProcesses, principalId: 'pictures', signal });
    const order: ShrinkOrder = { maxSide, maxPixels, maxBytes: maxModelBytes };
    // No environment: it holds the keys of the installation.
    const child = fork(fileURLToPath(processUrl), [JSON.stringify(order)], {
      env: {},
      execArgv,
      serialization: 'advanced',
      stdio: ['pipe', 'ignore', 'ignore', 'ipc'],
    });
    const ended = new Promise((resolve) => child.once('close', resolve));
    const outcome = Promise.withResolvers<z.output<typeof Answer>>();
    const onAbort = () => outcome.reject(new AppError('cancelled', 'The image was not read to its end'));
    signal.addEventListener('abort', onAbort, { once: true });
    const cancel = clock.after(shrinkMs, () => outcome.reject(new AppError('timeout', `The image was not read within ${shrinkMs} ms`)));
    child.once('message', (message: unknown) => outcome.resolve(Answer.parse(message)));
    child.once('error', (error) =>
      outcome.reject(new AppError('unavailable', 'The image was not read: its process did not start', { cause: error })),
    );
    // All that it sent was read before.
    child.once('disconnect', () => outcome.reject(unreadable('it is too large or too broken')));
    // It may end before it has read everything.
    child.stdin?.on('error', () => {}).end(picture.bytes);
    try {
      const answer = await outcome.promise;
      if ('bytes' in answer) return { bytes: answer.bytes, mimeType: answer.mimeType };
      throw /more than/.test(answer.refused ?? '') ? tooLarge(answer.refused ?? '') : unreadable(answer.refused ?? 'it cannot be read');
    } finally {
      cancel();
      signal.removeEventListener('abort', onAbort);
      child.kill('SIGKILL');
      await ended;
    }
  };
}

const tooLarge = (why: string): AppError => new AppError('payload_too_large', `The image is too large: ${why}`);
const unreadable = (why: string, cause?: unknown): AppError =>
  new AppError('invalid_params', `The image cannot be read: ${why}`, cause === undefined ? {} : { cause });

/** The bundle has the program next to the server. */
function defaultProcessUrl(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './picture-process.ts' : './picture-process.js', import.meta.url);
}
