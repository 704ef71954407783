import { workspaceLimits } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import { entryInside, plainPath, readFileInside, statInside } from '../../../../kernel/safe-path.ts';
import type { ChangedPath } from './git-status.ts';
import { isInternal } from '../taint/internal-names.ts';

export interface Change {
  readonly path: string;
  readonly gone: boolean;
}

export const maxFileBytes = 16 * 1024 * 1024;
const maxTotalBytes = 256 * 1024 * 1024;
const author = 'Operator <operator@gatehouse.invalid>';

/** Selects the changes that can be committed: plain files with plain names, and deletions. Fails with `payload_too_large` beyond the limits. */
export async function committable(root: string, entries: readonly ChangedPath[]): Promise<readonly Change[]> {
  const changes: Change[] = [];
  let total = 0;
  for (const { path, status } of entries) {
    if (!isCommittableName(path)) continue;
    const found = await statInside(root, path);
    if (found === undefined) {
      if (status !== 'untracked' && (await entryInside(root, path)) === 'missing') changes.push({ path, gone: true });
      continue;
    }
    total += found.size;
    if (found.size > maxFileBytes)
      throw new AppError('payload_too_large', `${path} is larger than ${maxFileBytes} bytes: name it in .gitignore, or commit other paths`);
    if (total > maxTotalBytes)
      throw new AppError('payload_too_large', `The files are larger than ${maxTotalBytes} bytes together: commit some of them by paths`);
    changes.push({ path, gone: false });
  }
  // Deletions first, because a folder may now exist where a file was.
  return changes.toSorted((a, b) => Number(b.gone) - Number(a.gone));
}

function isCommittableName(path: string): boolean {
  try {
    return plainPath(path) === path && !isInternal(path);
  } catch {
    return false;
  }
}

/** One line without control characters. */
export function messageOf(text: string): string {
  const line = text
    .replaceAll(/[\s\u0000-\u001f\u007f-\u009f]+/gu, ' ')
    .trim()
    .slice(0, workspaceLimits.messageCharacters)
    .toWellFormed();
  return line === '' ? 'Operator commit via web console' : line;
}

/**
 * Formats one commit as input for `git fast-import`: the contents come from here, so git opens no file of the workspace.
 * Paths are plain (no quote, no line end) and need no quoting.
 */
export async function* commitStream(
  root: string,
  changes: readonly Change[],
  about: { readonly ref: string; readonly parent: string | undefined; readonly message: string; readonly atMs: number },
): AsyncGenerator<Uint8Array> {
  const by = `${author} ${Math.floor(about.atMs / 1000)} +0000`;
  const message = Buffer.from(about.message);
  yield Buffer.from(`commit ${about.ref}\ncommitter ${by}\ndata ${message.length}\n`);
  yield message;
  yield Buffer.from(about.parent === undefined ? '\n' : `\nfrom ${about.parent}\n`);
  for (const { path, gone } of changes) {
    if (gone) {
      yield Buffer.from(`D ${path}\n`);
      continue;
    }
    const bytes = await readFileInside(root, path, { maxBytes: maxFileBytes }).catch((error: unknown) => {
      throw new AppError('conflict', `${path} changed while it was committed; try again`, { cause: error });
    });
    yield Buffer.from(`M 100644 inline ${path}\ndata ${bytes.length}\n`);
    yield bytes;
    yield Buffer.from('\n');
  }
  yield Buffer.from('done\n');
}
