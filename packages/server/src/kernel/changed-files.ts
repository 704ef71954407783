import { lstat, opendir } from 'node:fs/promises';
import { hidingWhy, openDirectory, plainPath } from './safe-path.ts';

/** What was written in a folder: plain files by their paths, and folders of which no more can be said than that something in them was. */
export interface ChangedFiles {
  readonly files: readonly string[];
  readonly folders: readonly string[];
}

const maxEntries = 300_000;
const maxDepth = 48;

/**
 * Looks for everything inside `root` whose data or name changed at `sinceMs` or later, by the time of the file system, which
 * no program can set back. What has a name that no tool could ask for counts for the folder around it; so does what is too
 * much or too deep to look at.
 */
export async function findChangedFiles(root: string, folders: readonly string[], sinceMs: number): Promise<ChangedFiles> {
  const files: string[] = [];
  const whole = new Set<string>();
  let entries = 0;

  async function look(names: readonly string[], named: string): Promise<void> {
    if (names.length > maxDepth || entries > maxEntries) {
      whole.add(named);
      return;
    }
    const below: string[] = [];
    await hidingWhy(async () => {
      await using directory = await openDirectory(root, names, false);
      for await (const { name } of await opendir(directory.at('.'), { bufferSize: 256 })) {
        entries += 1;
        const stat = await lstat(directory.at(name)).catch(() => undefined);
        if (stat?.isDirectory() === true) below.push(name);
        else if (stat !== undefined && stat.ctimeMs >= sinceMs) {
          const path = pathOf(named, name);
          if (path === undefined || !stat.isFile() || stat.nlink > 1) whole.add(named);
          else files.push(path);
        }
      }
    }).catch(() => whole.add(named));
    for (const name of below) await look([...names, name], pathOf(named, name) ?? named);
  }

  for (const folder of folders) await look(folder === '.' ? [] : folder.split('/'), folder);
  return { files, folders: [...whole] };
}

/** Undefined for a name that nothing opens. */
function pathOf(folder: string, name: string): string | undefined {
  try {
    return plainPath(folder === '.' ? name : `${folder}/${name}`);
  } catch {
    return undefined;
  }
}
