import { StringDecoder } from 'node:string_decoder';
import { AppError } from '../../../../kernel/app-error.ts';
import { openInside } from '../../../../kernel/safe-path.ts';

export interface WantedLines {
  /** The first line, counted from 1. */
  readonly offset: number;
  readonly limit: number;
  /** Bytes of the returned lines, line ends included. */
  readonly maxCharacters: number;
  /** A larger file fails with `payload_too_large`. */
  readonly maxBytes: number;
}

export interface TextLines {
  readonly lines: readonly string[];
  /** Lines of the whole file. */
  readonly total: number;
  /** Shown characters of the only returned line, which has more. */
  readonly cutAt?: number;
}

const pieceBytes = 32 * 1024;
const lineEnd = 10;

/** Reads lines of a text file inside `root` in chunks: as one string, a long file would block the event loop. Fails as `openInside` does. */
export async function readLines(root: string, relative: string, { offset, limit, maxCharacters, maxBytes }: WantedLines): Promise<TextLines> {
  await using handle = await openInside(root, relative);
  const buffer = Buffer.allocUnsafe(pieceBytes);
  const decoder = new StringDecoder();
  const lines: string[] = [];
  let line = '';
  let characters = 0;
  let cutAt: number | undefined;
  let isFull = false;
  /** Complete lines so far. */
  let ended = 0;
  let bytes = 0;
  let isOpen = false;
  const isWanted = () => !isFull && ended + 1 >= offset && lines.length < limit;
  const endLine = () => {
    if (isWanted()) {
      characters += line.length + 1;
      if (characters > maxCharacters && lines.length > 0) isFull = true;
      else if (line.length > maxCharacters) {
        cutAt = maxCharacters;
        isFull = true;
        lines.push(line.slice(0, maxCharacters).toWellFormed());
      } else lines.push(line);
    }
    line = '';
    ended += 1;
  };
  for (;;) {
    const { bytesRead } = await handle.read(buffer, 0, pieceBytes, null);
    if (bytesRead === 0) break;
    bytes += bytesRead;
    if (bytes > maxBytes) throw new AppError('payload_too_large', `The file is larger than ${maxBytes} bytes`);
    const piece = buffer.subarray(0, bytesRead);
    if (piece.includes(0)) throw new AppError('unsupported_media_type', 'The file is not text');
    for (let from = 0; from < bytesRead;) {
      const end = piece.indexOf(lineEnd, from);
      const to = end < 0 ? bytesRead : end;
      // Beyond what can be shown, keep only enough to detect the overflow.
      if (isWanted() && line.length <= maxCharacters) line += decoder.write(piece.subarray(from, to));
      isOpen = end < 0;
      if (end >= 0) {
        if (isWanted()) line += decoder.end();
        endLine();
      }
      from = to + 1;
    }
  }
  if (isOpen) {
    if (isWanted()) line += decoder.end();
    endLine();
  }
  return { lines, total: ended, ...(cutAt !== undefined && { cutAt }) };
}
