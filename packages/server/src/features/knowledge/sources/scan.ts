import { readdir, realpath } from 'node:fs/promises';
import { sep } from 'node:path';
import { AppError } from '../../../kernel/app-error.ts';
import { readTree } from '../../../kernel/safe-folder.ts';

/** Documents by extension: opening every file of a folder to see what it is would read videos and disk images whole. */
const extensions =
  /\.(?:txt|md|markdown|rst|org|adoc|log|csv|tsv|html?|xhtml|json|jsonl|ya?ml|toml|xml|rtf|pdf|docx|xlsx|pptx|odt|ods|odp|epub|eml)$/i;
/** Folders of programs; hidden ones are left out as well. */
const skipped: ReadonlySet<string> = new Set(['node_modules', '__pycache__', 'lost+found']);
const maxDepth = 24;
/** Entries of all kinds that a scan looks at. */
const maxEntries = 200_000;

export interface FoundFile {
  /** Relative to the folder, with "/". */
  readonly path: string;
  readonly stamp: string;
  readonly size: number;
}

export interface Scan {
  readonly files: readonly FoundFile[];
  /** Folders below it. */
  readonly folders: readonly string[];
  /** Folders below it that could not be read. */
  readonly unread: readonly string[];
  /** There are more than are indexed. */
  readonly more: boolean;
  /** The folder has no entry of any kind: a disk that belongs there may not be mounted. */
  readonly isEmpty: boolean;
}

/** Lists the documents of a folder; links are not followed. Fails with `not_found` when the folder is not there. */
export async function scanFolder(folder: string, { maxFiles, homeDir }: { readonly maxFiles: number; readonly homeDir: string }): Promise<Scan> {
  await refuseHome(folder, homeDir);
  const unread: string[] = [];
  const folders: string[] = [];
  const { entries, more } = await readTree(
    { base: folder, within: [] },
    {
      maxEntries,
      maxDepth,
      skip: (name) => name.startsWith('.') || skipped.has(name),
      onFolder: (path) => folders.push(path),
      onUnread: (path) => unread.push(path),
    },
  );
  const files = entries.filter(({ path, kind }) => kind === 'file' && extensions.test(path)).toSorted((a, b) => (a.path < b.path ? -1 : 1));
  return {
    files: files.slice(0, maxFiles).map(({ path, stamp, size }) => ({ path, stamp, size })),
    folders,
    unread,
    more: more || files.length > maxFiles,
    isEmpty: entries.length === 0 && (await readdir(folder)).length === 0,
  };
}

/** The home of the daemon has keys and everybody's conversations: no folder of knowledge is in it, or contains it. */
async function refuseHome(folder: string, homeDir: string): Promise<void> {
  const real = await realpath(folder).catch(() => undefined);
  if (real === undefined) throw new AppError('not_found', 'The folder does not exist');
  const home = await realpath(homeDir);
  const isIn = (inner: string, outer: string) => inner === outer || inner.startsWith(outer.endsWith(sep) ? outer : `${outer}${sep}`);
  if (isIn(real, home) || isIn(home, real)) throw new AppError('denied', 'The folder contains the home folder of the gateway, or is part of it');
}
