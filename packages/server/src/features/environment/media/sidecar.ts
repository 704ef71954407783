import { EpochMs, once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import { parseJson } from '../../../kernel/json.ts';
import { readFileInside } from '../../../kernel/safe-path.ts';
import { mediaType } from './content-type.ts';

const maxSidecarBytes = 16 * 1024;

/**
 * `<id>.meta`, next to the file (http-gateway.md §4.7). What it does not say is unknown: a media file without an owner is
 * for admins, one without a type is known by its extension.
 */
const Sidecar = once(() =>
  z.object({
    contentType: z.string().regex(mediaType).optional(),
    savedAt: EpochMs.optional(),
    /** Expiry; from then on the media file counts as deleted. */
    expiresAt: EpochMs.optional(),
    size: z.int().min(0).optional(),
    fileName: z.string().min(1).max(500).optional(),
    /** Principal who uploaded it. */
    owner: z.string().optional(),
    sha256: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .optional(),
  }),
);
export type Sidecar = z.output<ReturnType<typeof Sidecar>>;

export function sidecarOf(id: string): string {
  return `${id}.meta`;
}

/** Used when the sidecar is missing or unreadable. */
export async function readSidecar(dir: string, id: string): Promise<Sidecar> {
  try {
    const bytes = await readFileInside(dir, sidecarOf(id), { maxBytes: maxSidecarBytes });
    const parsed = Sidecar().safeParse(parseJson(bytes.toString()));
    return parsed.success ? parsed.data : {};
  } catch (error) {
    if (error instanceof AppError) return {};
    throw error;
  }
}
