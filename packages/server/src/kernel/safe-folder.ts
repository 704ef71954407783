import { randomBytes } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { lstat, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { AppError } from './app-error.ts';
import { isOutOfDescriptors } from './descriptors.ts';
import { type Directory, hidingWhy, openDirectory, parseRelativePath } from './safe-path.ts';

/** A folder below a trusted folder; the names of `within` may be untrusted and are never followed through links. */
export interface FolderPlace {
  readonly base: string;
  readonly within: readonly string[];
}

export interface TreeEntry {
  /** Relative to the folder, with "/". */
  readonly path: string;
  readonly kind: 'file' | 'link' | 'special';
  readonly size: number;
  readonly executable: boolean;
  /** Changes whenever the file does. */
  readonly stamp: string;
}

const noFollow = constants.O_NOFOLLOW ?? 0;
const unfinished = /^\.[0-9a-f]{24}\.(?:new|old\.(.+))$/;

/** Lists the folders directly in a place, without hidden ones; empty when the place does not exist. Links are listed separately. */
export async function listFolders(place: FolderPlace): Promise<readonly { readonly name: string; readonly isLink: boolean }[]> {
  try {
    return await hidingWhy(async () => {
      await using directory = await openDirectory(place.base, place.within, false);
      const found: { name: string; isLink: boolean }[] = [];
      for (const name of await readdir(directory.at('.'))) {
        if (name.startsWith('.')) continue;
        const stat = await lstat(directory.at(name)).catch(() => undefined);
        if (stat?.isDirectory() === true || stat?.isSymbolicLink() === true) found.push({ name, isLink: stat.isSymbolicLink() });
      }
      return found;
    });
  } catch (error) {
    if (error instanceof AppError && error.code === 'not_found') return [];
    throw error;
  }
}

/** Returns everything below a place that is not a folder, links not followed; stops, with `more`, beyond the bounds. Fails with `not_found`. */
export async function readTree(
  place: FolderPlace,
  bounds: {
    readonly maxEntries: number;
    readonly maxDepth: number;
    /** Names that are left out, with everything below them. */
    readonly skip?: (name: string) => boolean;
    /** Called with the path of each folder below the place. */
    readonly onFolder?: (path: string) => void;
    /** Called with the path of a folder below the place that cannot be read; without it that fails. */
    readonly onUnread?: (path: string) => void;
  },
): Promise<{ readonly entries: readonly TreeEntry[]; readonly more: boolean }> {
  const entries: TreeEntry[] = [];
  let more = false;
  async function walk(names: readonly string[]): Promise<void> {
    if (names.length > bounds.maxDepth) {
      more = true;
      return;
    }
    for (const name of await list(names)) {
      try {
        await walk([...names, name]);
      } catch (error) {
        if (bounds.onUnread === undefined || isOutOfDescriptors(error)) throw error;
        // One that is gone by now is as if it had not been listed.
        if (!isMissing(error)) bounds.onUnread([...names, name].join('/'));
      }
    }
  }
  /** Adds what is directly in a folder; returns its folders. */
  async function list(names: readonly string[]): Promise<readonly string[]> {
    const below: string[] = [];
    await using directory = await openDirectory(place.base, [...place.within, ...names], false);
    for (const name of await readdir(directory.at('.'))) {
      if (entries.length >= bounds.maxEntries) {
        more = true;
        return [];
      }
      if (bounds.skip?.(name) === true) continue;
      const stat = await lstat(directory.at(name)).catch((error: unknown) => {
        if (bounds.onUnread !== undefined && !isMissing(error)) throw error;
        return undefined;
      });
      if (stat === undefined) continue;
      if (stat.isDirectory()) {
        below.push(name);
        bounds.onFolder?.([...names, name].join('/'));
      } else entries.push(toEntry([...names, name].join('/'), stat));
    }
    return below;
  }
  await hidingWhy(() => walk([]));
  return { entries, more };
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

function toEntry(path: string, stat: Stats): TreeEntry {
  // A file's second name is in a place that is not visible here.
  const kind = stat.isSymbolicLink() ? 'link' : stat.isFile() && stat.nlink === 1 ? 'file' : 'special';
  return {
    path,
    kind,
    size: stat.size,
    executable: (stat.mode & 0o111) !== 0,
    stamp: `${stat.ino} ${stat.size} ${stat.mtimeMs} ${stat.ctimeMs} ${stat.mode}`,
  };
}

/** A folder that has been published and can still be rolled back. */
export interface Published {
  /** Removes what it replaced; after that it is permanent. */
  settle(): Promise<void>;
  undo(): Promise<void>;
}

/**
 * Writes a whole folder (0700, files 0600): first under a hidden name, synced, then renamed. Readers see all of it or
 * what was there before. `replace: false` fails with `conflict` when the name is taken, `replace: true` with
 * `not_found` when it is not. Refuses a link of that name.
 */
export async function publishFolder(
  place: FolderPlace,
  name: string,
  files: readonly { readonly path: string; readonly bytes: Uint8Array }[],
  { replace }: { readonly replace: boolean },
): Promise<Published> {
  checkName(name);
  await mkdir(place.base, { recursive: true, mode: 0o700 });
  return hidingWhy(async () => {
    const parent = await openDirectory(place.base, place.within, true);
    const id = randomBytes(12).toString('hex');
    const draft = `.${id}.new`;
    const old = `.${id}.old.${name}`;
    try {
      const existing = await lstat(parent.at(name)).catch(() => undefined);
      if (existing !== undefined && (!replace || !existing.isDirectory())) throw new AppError('conflict', `${name} exists already`);
      if (existing === undefined && replace) throw new AppError('not_found', `There is no ${name}`);
      await writeDraft(place, draft, files);
      if (replace) await rename(parent.at(name), parent.at(old));
      await rename(parent.at(draft), parent.at(name));
      await parent.sync();
    } catch (error) {
      await rm(parent.at(draft), { recursive: true, force: true });
      await restore(parent, old, name);
      await parent[Symbol.asyncDispose]();
      if (error instanceof Error && 'code' in error && (error.code === 'ENOTEMPTY' || error.code === 'EEXIST'))
        throw new AppError('conflict', `${name} exists already`);
      throw error;
    }
    return {
      async settle() {
        await rm(parent.at(old), { recursive: true, force: true });
        await parent[Symbol.asyncDispose]();
      },
      async undo() {
        await rename(parent.at(name), parent.at(draft));
        await restore(parent, old, name);
        await rm(parent.at(draft), { recursive: true, force: true });
        await parent.sync();
        await parent[Symbol.asyncDispose]();
      },
    };
  });
}

async function restore(parent: Directory, old: string, name: string): Promise<void> {
  if ((await lstat(parent.at(name)).catch(() => undefined)) === undefined) await rename(parent.at(old), parent.at(name)).catch(() => {});
}

async function writeDraft(place: FolderPlace, draft: string, files: readonly { readonly path: string; readonly bytes: Uint8Array }[]): Promise<void> {
  const folders = new Set<string>(['']);
  for (const { path, bytes } of files) {
    const names = parseRelativePath(path);
    for (let depth = 1; depth < names.length; depth += 1) folders.add(names.slice(0, depth).join('/'));
    await using directory = await openDirectory(place.base, [...place.within, draft, ...names.slice(0, -1)], true);
    await using handle = await open(directory.at(names.at(-1) ?? ''), constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | noFollow, 0o600);
    await handle.writeFile(bytes);
    await handle.sync();
  }
  for (const folder of folders) {
    await using directory = await openDirectory(place.base, [...place.within, draft, ...(folder === '' ? [] : folder.split('/'))], false);
    await directory.sync();
  }
}

/** Removes a folder with all its content: it loses its name first. Returns false when there is none; a link is removed itself. */
export async function removeFolder(place: FolderPlace, name: string): Promise<boolean> {
  checkName(name);
  try {
    await hidingWhy(async () => {
      await using parent = await openDirectory(place.base, place.within, false);
      const gone = `.${randomBytes(12).toString('hex')}.new`;
      await rename(parent.at(name), parent.at(gone));
      await parent.sync();
      await rm(parent.at(gone), { recursive: true, force: true });
    });
    return true;
  } catch (error) {
    if (error instanceof AppError && error.code === 'not_found') return false;
    throw error;
  }
}

/** Cleans up after a crash: a folder that lost its name to one that never came gets it back, drafts are removed. */
export async function tidyFolders(place: FolderPlace): Promise<void> {
  try {
    await hidingWhy(async () => {
      await using parent = await openDirectory(place.base, place.within, false);
      for (const left of await readdir(parent.at('.'))) {
        const match = unfinished.exec(left);
        if (match === null) continue;
        if (match[1] !== undefined) await restore(parent, left, match[1]);
        await rm(parent.at(left), { recursive: true, force: true });
      }
    });
  } catch (error) {
    if (!(error instanceof AppError && error.code === 'not_found')) throw error;
  }
}

function checkName(name: string): void {
  if (parseRelativePath(name).length !== 1) throw new AppError('not_found', 'There is no such folder');
}
