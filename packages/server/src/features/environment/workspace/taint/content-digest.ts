import { createHash } from 'node:crypto';
import { AppError } from '../../../../kernel/app-error.ts';
import { openInside } from '../../../../kernel/safe-path.ts';

/** Size limit of files that file tools read. */
const maxDigested = 16 * 1024 * 1024;

/** Returns the SHA-256 of a file; undefined when no tool can read it. */
export async function digestContent(workspaceDir: string, path: string): Promise<string | undefined> {
  try {
    await using handle = await openInside(workspaceDir, path);
    if ((await handle.stat()).size > maxDigested) return undefined;
    const hash = createHash('sha256');
    for await (const part of handle.createReadStream({ autoClose: false, end: maxDigested })) hash.update(part);
    return hash.digest('hex');
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}
