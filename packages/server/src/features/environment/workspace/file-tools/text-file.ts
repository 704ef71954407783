import { isUtf8 } from 'node:buffer';
import { AppError } from '../../../../kernel/app-error.ts';
import { readFileInside } from '../../../../kernel/safe-path.ts';

/** Size limit of files that tools write or edit in place. */
export const maxWriteBytes = 1024 * 1024;

/** Returns a file that can be edited as text; fails with `unsupported_media_type` when writing it back would change other bytes. */
export async function readText(root: string, path: string): Promise<string> {
  const bytes = await readFileInside(root, path, { maxBytes: maxWriteBytes });
  if (bytes.includes(0) || !isUtf8(bytes)) throw new AppError('unsupported_media_type', `${path} is not UTF-8 text`);
  return bytes.toString();
}

/** Converts line ends to those of the file: models write "\n". */
export function withLineEndsOf(file: string, text: string): string {
  return /\r\n/.test(file) && !/(?:^|[^\r])\n/.test(file) ? text.replaceAll(/\r?\n/g, '\r\n') : text;
}
