import { lstat, opendir } from 'node:fs/promises';
import { hidingWhy, openDirectory, plainPath } from './safe-path.ts';

/** What was written in a folder: plain files by path, and folders of which only "something in them changed" is known. */
export interface ChangedFiles {
  readonly files: readonly string[];
  readonly folders: readonly string[];
}

/** Locations of folders, by inode: renaming a folder changes nothing inside it, not even the time of its last change. */
export type FolderPlaces = ReadonlyMap<string, number>;

const maxEntries = 300_000;
const maxDepth = 48;

/**
 * Finds everything inside `root` whose data or name changed at `sinceMs` or later, by the file system's clock, which no program can
 * set back. All files of a folder that was elsewhere `before` count; when that is unknown, all files of a folder whose name or entries
 * changed. A file whose name no tool could ask for is reported as its folder; so is anything too large or too deep to scan.
 */
export async function findChangedFiles(
  root: string,
  folders: readonly string[],
  sinceMs: number,
  before: FolderPlaces | undefined,
): Promise<ChangedFiles> {
  const files: string[] = [];
  const whole = new Set<string>();
  let entries = 0;

  /** `isPlain`: a tool could ask for the entries of this folder by name. */
  async function scan(names: readonly string[], named: string, isPlain: boolean, fromMs: number): Promise<void> {
    if (names.length > maxDepth || entries > maxEntries) {
      whole.add(named);
      return;
    }
    const below: { readonly name: string; readonly fromMs: number }[] = [];
    await hidingWhy(async () => {
      await using directory = await openDirectory(root, names, false);
      for await (const { name } of await opendir(directory.at('.'), { bufferSize: 256 })) {
        entries += 1;
        const stat = await lstat(directory.at(name)).catch(() => undefined);
        if (stat?.isDirectory() === true) {
          const isMoved = before === undefined ? stat.ctimeMs >= sinceMs : before.get([...names, name].join('/')) !== stat.ino;
          below.push({ name, fromMs: isMoved ? -Infinity : fromMs });
        } else if (stat !== undefined && stat.ctimeMs >= fromMs) {
          const path = isPlain ? pathOf(named, name) : undefined;
          if (path === undefined || !stat.isFile() || stat.nlink > 1) whole.add(named);
          else files.push(path);
        }
      }
    }).catch(() => whole.add(named));
    for (const { name, fromMs: from } of below) {
      const path = isPlain ? pathOf(named, name) : undefined;
      await scan([...names, name], path ?? named, path !== undefined, from);
    }
  }

  for (const folder of folders) await scan(folder === '.' ? [] : folder.split('/'), folder, true, sinceMs);
  return { files, folders: [...whole] };
}

/** Returns where the folders in `folders` of the root are, except those whose name or entries changed at `untilMs` or later. */
export async function findFolders(root: string, folders: readonly string[], untilMs: number): Promise<FolderPlaces> {
  const found = new Map<string, number>();
  let entries = 0;

  async function scan(names: readonly string[]): Promise<void> {
    if (names.length > maxDepth || entries > maxEntries) return;
    const below: string[] = [];
    await hidingWhy(async () => {
      await using directory = await openDirectory(root, names, false);
      for await (const { name } of await opendir(directory.at('.'), { bufferSize: 256 })) {
        entries += 1;
        const stat = await lstat(directory.at(name)).catch(() => undefined);
        if (stat?.isDirectory() !== true) continue;
        if (stat.ctimeMs < untilMs) found.set([...names, name].join('/'), stat.ino);
        below.push(name);
      }
      // A folder that cannot be read has no location and counts as moved.
    }).catch(() => {});
    for (const name of below) await scan([...names, name]);
  }

  for (const folder of folders) {
    found.set(folder, 0);
    await scan([folder]);
  }
  return found;
}

/** Whether a folder around the file was elsewhere or missing. */
export async function isInMovedFolder(root: string, path: string, before: FolderPlaces): Promise<boolean> {
  const around = path.split('/').slice(0, -1);
  // The root's own folders have not moved, and nothing can be moved in those that were not scanned.
  if (around[0] === undefined || !before.has(around[0])) return false;
  for (let depth = 2; depth <= around.length; depth += 1) {
    const names = around.slice(0, depth);
    const inode = await hidingWhy(async () => {
      await using directory = await openDirectory(root, names.slice(0, -1), false);
      return (await lstat(directory.at(names.at(-1) ?? ''))).ino;
    }).catch(() => undefined);
    if (before.get(names.join('/')) !== inode) return true;
  }
  return false;
}

/** Returns undefined for a name that cannot be opened. */
function pathOf(folder: string, name: string): string | undefined {
  try {
    return plainPath(folder === '.' ? name : `${folder}/${name}`);
  } catch {
    return undefined;
  }
}
