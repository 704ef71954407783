import { closeSync, constants, existsSync, openSync } from 'node:fs';

const gone: readonly string[] = ['ENOENT', 'ENOTDIR', 'ELOOP'];
const closed: readonly string[] = ['EACCES', 'EPERM'];
const hasCode = (error: unknown, codes: readonly string[]) =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' && codes.includes(error.code);
const descriptorPaths = process.platform === 'linux' && existsSync('/proc/self/fd');

export const isGone = (error: unknown): boolean => hasCode(error, gone);
export const isClosed = (error: unknown): boolean => hasCode(error, closed);

/**
 * Keeps a folder open, so that it stays the one that was found even if another takes its name. Skips a folder that is gone or has
 * become a link. `work` gets a path for names in it, in latin1. It blocks, so run it in a separate thread.
 */
export function holdFolder(path: Buffer, work: (folder: string) => void): void {
  let held: number;
  try {
    held = openSync(path, constants.O_RDONLY | (constants.O_DIRECTORY ?? 0) | (constants.O_NOFOLLOW ?? 0));
  } catch (error) {
    if (isGone(error)) return;
    throw error;
  }
  try {
    work(descriptorPaths ? `/proc/self/fd/${held}` : path.toString('latin1'));
  } finally {
    closeSync(held);
  }
}
