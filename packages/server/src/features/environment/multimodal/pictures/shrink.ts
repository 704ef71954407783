import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import { createLanes } from '../../../../kernel/lane.ts';
import { runInProcess } from '../../../../kernel/run-in-process.ts';
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
const memoryMb = 128;
const Answer = z.union([
  z.strictObject({ bytes: z.instanceof(Uint8Array), mimeType: z.string(), width: z.number(), height: z.number() }),
  z.strictObject({ refused: z.string().optional() }),
]);

export function createFitPicture(clock: Clock, program: URL = defaultProgram()): FitPicture {
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
    const task = { program, order, input: picture.bytes, memoryMb, timeoutMs: shrinkMs, clock, signal, subject: 'The image' };
    const answer = Answer.parse(await runInProcess(task));
    if ('bytes' in answer) return { bytes: answer.bytes, mimeType: answer.mimeType };
    throw /more than/.test(answer.refused ?? '') ? tooLarge(answer.refused ?? '') : unreadable(answer.refused ?? 'it cannot be read');
  };
}

const tooLarge = (why: string): AppError => new AppError('payload_too_large', `The image is too large: ${why}`);
const unreadable = (why: string): AppError => new AppError('invalid_params', `The image cannot be read: ${why}`);

/** The bundle has the program next to the server. */
function defaultProgram(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './picture-process.ts' : './picture-process.js', import.meta.url);
}
