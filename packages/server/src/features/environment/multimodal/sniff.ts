import { AppError } from '../../../kernel/app-error.ts';

/** A type as the bytes show it. */
export interface Sniffed {
  readonly mimeType: string;
  /** Without the dot. */
  readonly extension: string;
}

export type Family = 'audio' | 'image' | 'video';

const headBytes = 64 * 1024;
/** Containers of audio or video: the requested family decides. */
const both = /^(?:video\/(?:mp4|webm|quicktime|ogg)|audio\/(?:mp4|x-m4a|ogg|webm)|application\/ogg)$/;

/** Returns the type that magic bytes show; undefined when they show none. Whatever the sender declared is ignored. */
export async function sniff(bytes: Uint8Array): Promise<Sniffed | undefined> {
  const { fileTypeFromBuffer } = await import('file-type');
  // Untrusted, truncated input: any parser error means "unknown type".
  const found = await fileTypeFromBuffer(bytes.subarray(0, headBytes)).catch(() => undefined);
  const mimeType = found?.mime.split(';')[0]?.trim().toLowerCase();
  if (found === undefined || mimeType === undefined || !/^[a-z]+\/[a-z0-9.+-]+$/.test(mimeType)) {
    // Music often starts with a picture that is longer than the head.
    return Buffer.from(bytes.subarray(0, 3)).toString('latin1') === 'ID3' ? { mimeType: 'audio/mpeg', extension: 'mp3' } : undefined;
  }
  return { mimeType, extension: /^[a-z0-9]{1,10}$/.test(found.ext) ? found.ext : 'bin' };
}

/** Returns the type of a file that must belong to a family; fails with `invalid_params` otherwise. */
export async function sniffAs(family: Family, bytes: Uint8Array, param: string): Promise<Sniffed> {
  const found = await sniff(bytes);
  const isOf = found !== undefined && (found.mimeType.startsWith(`${family}/`) || (family !== 'image' && both.test(found.mimeType)));
  // Scripts and external entities: a picture that is a program is not one.
  if (!isOf || found.mimeType === 'image/svg+xml')
    throw new AppError(
      'invalid_params',
      `${param}: expected ${family === 'image' ? 'an image' : family === 'audio' ? 'audio' : 'a video'}, but the bytes are ${found?.mimeType ?? 'of an unknown type'}`,
      {
        param,
      },
    );
  return family === 'audio' ? asAudio(found) : found;
}

/** Audio alone in a container that may hold video. */
function asAudio({ mimeType, extension }: Sniffed): Sniffed {
  if (mimeType === 'application/ogg' || mimeType === 'video/ogg') return { mimeType: 'audio/ogg', extension: 'ogg' };
  if (mimeType === 'audio/x-m4a') return { mimeType: 'audio/mp4', extension: 'm4a' };
  return { mimeType, extension: extension === 'opus' ? 'ogg' : extension };
}
